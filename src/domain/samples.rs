//! Sample data for tests of this crate and of others (feature `samples`), with defaults for the fields that a test does not set.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use super::budget::Ledger;
use super::closing::Stage;
use super::conversation::{Rules, World};
use super::event::{Evaluated, Event, Made, Recorded, Segment};
use super::gate::InterjectionPolicy;
use super::id::{Seq, Ticket, TurnId};
use super::message::{Address, Author, Message, Modality, Role};
use super::moment::Moment;
use super::policy::closing::Closing;
use super::policy::gate::Gate;
use super::policy::interjection::Interjection;
use super::policy::names::Names;
use super::policy::prompt::Prompt;
use super::policy::quiet_hours::QuietHours;
use super::policy::repetition::Repetition;
use super::policy::reply::Reply;
use super::policy::turn_taking::TurnTaking;
use super::policy::voice::Voice;
use super::trigger::Trigger;
use super::voice::segment::Kind;
use super::voice::words::WordLists;
use super::vote::{Stance, State};

/// Noon of 1 May 2026.
pub const NOON: Moment = Moment::from_micros(1_777_636_800_000_000);

/// The moment this many seconds after the beginning.
pub fn at(secs: f64) -> Moment {
    Moment::ZERO + Duration::from_secs_f64(secs)
}

/// The sections of the settings that conversations read.
#[derive(Clone, serde::Deserialize)]
pub struct Policies {
    pub closing: Closing,
    pub gate: Gate,
    pub names: Names,
    pub prompt: Prompt,
    pub repetition: Repetition,
    pub reply: Reply,
    pub turn_taking: TurnTaking,
    pub voice: Voice,
}

impl Policies {
    pub fn rules(&self) -> Rules<'_> {
        static WORDS: LazyLock<WordLists> = LazyLock::new(|| {
            let words = &default_file()["speech"]["words"]["en"];
            let list = |key: &str| words[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
            WordLists::new(list("stop"), list("backchannel"))
        });
        Rules {
            gate: &self.gate,
            quiet_hours: QuietHours::Never,
            helps_at_risk: true,
            zone: self.prompt.zone(),
            turn_taking: &self.turn_taking,
            closing: &self.closing,
            repetition: &self.repetition,
            reply: &self.reply,
            voice: &self.voice,
            answer_timeout: Duration::from_secs(120),
            words: &WORDS,
            voice_lull_timeout: Duration::from_secs(5),
        }
    }
}

fn default_file() -> &'static Value {
    static DEFAULTS: LazyLock<Value> =
        LazyLock::new(|| toml::from_str(include_str!("../../config/default.toml")).expect("the default settings"));
    &DEFAULTS
}

/// The default policies with the values of `overlay` replaced.
pub fn policies(overlay: &Value) -> Policies {
    fn put(over: &Value, value: &mut Value) {
        match (over, value) {
            (Value::Object(over), Value::Object(values)) => {
                over.iter().for_each(|(key, over)| put(over, values.entry(key.as_str()).or_insert(Value::Null)));
            }
            (over, value) => *value = over.clone(),
        }
    }
    let mut values = default_file().clone();
    put(overlay, &mut values);
    serde_json::from_value(values).expect("good policies")
}

pub fn default_policies() -> &'static Policies {
    static DEFAULTS: LazyLock<Policies> = LazyLock::new(|| policies(&json!({})));
    &DEFAULTS
}

/// An author whose name is the id.
pub fn author(id: &str, role: Role) -> Author {
    Author { id: id.into(), name: id.into(), role }
}

pub fn person(id: &str) -> Author {
    author(id, Role::Person)
}

/// A typed message without an addressee.
pub fn message(from: Author, text: &str) -> Message {
    Message::new(from, text.into())
}

/// The event that a message was sent that replies to no other.
pub const fn said(message: Message) -> Event {
    Event::Said { message, reply_to: None, reply: None, said_at: None }
}

/// A vote of a companion that wants to speak, in the round about message 7.
pub fn wish(from: &str, importance: f64, selected: bool) -> State {
    let (from, message_id) = (from.into(), "7".into());
    State { from, message_id, state: Stance::Speak, importance, selected, closing: Stage::None, mood: 0.0 }
}

/// A final result of speech recognition.
pub fn segment(from: Author, text: &str) -> Segment {
    Segment {
        from,
        text: text.into(),
        started: Moment::ZERO,
        ended: Moment::ZERO,
        confidence: None,
        provider: "rehearsal".into(),
        kind: Kind::Words,
        address: Address::default(),
        asks_to_stop: false,
        stop: Default::default(),
        is_last: true,
    }
}

/// A question to a companion about the message with this number, after a lull.
pub fn evaluated(companion: &str, ticket: Ticket, message: Seq) -> Evaluated {
    Evaluated {
        companion: companion.into(),
        ticket,
        trigger: Trigger::Lull,
        message,
        messages: vec![message],
        upto: message,
        message_count: 1,
        check_count: 0,
        threshold: None,
        due_at: None,
    }
}

/// The event that a companion owes a reply to these messages, oldest first.
pub fn reply_owed(companion: &str, ticket: Ticket, trigger: Trigger, messages: Vec<Seq>) -> Event {
    Event::ReplyOwed {
        companion: companion.into(),
        ticket,
        trigger,
        upto: messages.last().copied().unwrap_or(Seq::NONE),
        messages,
        next_interjection_at: 9,
        due_at: None,
        expires_at: None,
        is_farewell: false,
        is_unjudged: false,
        message: None,
        modality: Modality::Text,
        again: None,
        continues: false,
    }
}

/// A journaled event without a turn, whose `handled` is its own number.
pub const fn recorded(seq: u64, event: Event) -> Recorded {
    Recorded { seq: Seq(seq), at: Moment::ZERO, handled: Seq(seq), turn: None, event }
}

/// An event made by a channel, without a turn.
pub const fn made(handled: Seq, event: Event) -> Made {
    Made { at: Moment::ZERO, handled, turn: None, event }
}

/// An interjection policy with this starting interval.
pub const fn policy(starting_interval: u64) -> InterjectionPolicy {
    InterjectionPolicy {
        level: Interjection::Average,
        starting_interval,
        text_lull_timeout: Duration::from_secs(10),
        voice_lull_timeout: Duration::from_secs(10),
        quiet_hours: [QuietHours::Never; 2],
        starts_after: None,
        max_turns: None,
        repetition: true,
    }
}

/// Runs `run` with the world of Aria's conversation in a channel and the default settings. All draws return fixed values.
pub fn with_world<T>(run: impl FnOnce(&mut World<'_>) -> T) -> T {
    run(&mut World {
        channel: &"lobby".into(),
        rules: default_policies().rules(),
        policies: &BTreeMap::from([("aria".into(), policy(9))]),
        jitter: &mut || 0,
        roll: &mut || None,
        turn: &mut || TurnId(0),
        ledger: &mut Ledger::default(),
        summary: None,
        notes: None,
        tokens_per_day: None,
        is_unpostable: false,
    })
}
