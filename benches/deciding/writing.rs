//! Building prompts, and encoding and decoding records.

use divan::Bencher;
use divan::counter::BytesCount;
use jiff::tz::TimeZone;
use tertulia::domain::closing::Stage;
use tertulia::domain::event::{Event, Recorded};
use tertulia::domain::filter::Filtered;
use tertulia::domain::id::{CompanionId, Seq, Ward};
use tertulia::domain::message::Modality;
use tertulia::domain::moment::Moment;
use tertulia::domain::prompt::{self, Character, PromptInput, Said, Scene, StatementInput};
use tertulia::domain::trigger::Trigger;
use tertulia::journal::key;
use tertulia::journal::record::{SnapshotRecord, decode, decode_event, encode_event, encode_snapshot};
use tertulia::ports::store::key::{ChannelNo, Key};
use tertulia::settings::Settings;

use super::room::{Room, message};

const TEXT: &str = "I thought that the bread would be done by now, but nobody opened the oven since then";

/// The prompt of a decision about this number of messages.
#[divan::bench(args = [1, 10, 200])]
fn wording_a_decision(bencher: Bencher<'_, '_>, messages: usize) {
    let (id, settings) = (CompanionId::from("aria"), settings());
    let (input, scene) = (input(Trigger::Interjection, messages), scene());
    bencher.bench(|| prompt::vote(character(&id, &settings), &scene, &input, &settings.prompt));
}

/// The prompt of a statement.
#[divan::bench(args = [1, 10, 200])]
fn wording_a_statement(bencher: Bencher<'_, '_>, messages: usize) {
    let (id, settings) = (CompanionId::from("aria"), settings());
    let input = PromptInput { speaker: Some("Ana".into()), summary: None, ..input(Trigger::DirectAddress, messages) };
    let reason = Some("I know bread.".into());
    let (summary_upto, recalled) = (Seq::NONE, Vec::new());
    let statement = StatementInput {
        input,
        reason,
        tries: 0,
        is_spoken: false,
        may_pass: false,
        goal: Default::default(),
        summary_upto,
        left_out: 0,
        recalled,
        notes: Vec::new(),
        people: Vec::new(),
        page_tokens: 0,
        elsewhere: Vec::new(),
        is_anew: false,
        lore: None,
    };
    let scene = scene();
    bencher.bench(|| prompt::statement(character(&id, &settings), &scene, &statement, &settings.prompt));
}

fn input(trigger: Trigger, messages: usize) -> PromptInput {
    let buffer = said_by_now(messages);
    PromptInput {
        trigger,
        stage: Stage::None,
        modality: Modality::Text,
        message_count: 9,
        minutes: 1,
        speaker: None,
        is_repetitive: false,
        summary: Some("They talk about bread.".into()),
        recent: buffer[..buffer.len().min(5)].to_vec(),
        buffer,
        filtered: Filtered::default(),
        about_risk: false,
    }
}

/// Encoding a message for the store.
#[divan::bench]
fn encoding_a_message(bencher: Bencher<'_, '_>) {
    let recorded = said();
    let bytes = encode_event(&recorded).len();
    bencher.counter(BytesCount::new(bytes)).bench(|| encode_event(&recorded));
}

/// The same, read back.
#[divan::bench]
fn decoding_a_message(bencher: Bencher<'_, '_>) {
    let key = Key::event(Ward(7), ChannelNo(3), Seq(1_000));
    let value = encode_event(&said());
    bencher.counter(BytesCount::new(value.len())).bench(|| decode_event(&key, &value));
}

/// Encoding the snapshot of a conversation with this number of companions, between two messages.
#[divan::bench(args = [1, 3, 8])]
fn encoding_a_snapshot(bencher: Bencher<'_, '_>, companions: usize) {
    let room = talked(companions);
    let bytes = encode_snapshot(Seq(1), &room.conversation).len();
    bencher.counter(BytesCount::new(bytes)).bench(|| encode_snapshot(Seq(1), &room.conversation));
}

/// The same, read back.
#[divan::bench(args = [1, 3, 8])]
fn decoding_a_snapshot(bencher: Bencher<'_, '_>, companions: usize) {
    let key = key::snapshot(Ward(7), ChannelNo(3));
    let value = encode_snapshot(Seq(1), &talked(companions).conversation);
    bencher.counter(BytesCount::new(value.len())).bench(|| decode::<SnapshotRecord>(&key, &value));
}

fn talked(companions: usize) -> Room {
    let mut room = Room::new(companions, 9);
    for _ in 0..50 {
        room.handle_message(None);
    }
    room
}

fn said() -> Recorded {
    let event = Event::Said { message: message(TEXT), reply_to: None, reply: None, said_at: None };
    Recorded { seq: Seq(1_000), at: Moment::from_micros(1_790_000_000_000_000), handled: Seq(1_000), turn: None, event }
}

fn said_by_now(messages: usize) -> Vec<Said> {
    let said = |number| Said::new(Seq(number), Moment::from_micros(number * 10_000_000), message(TEXT).into());
    (1..=messages as u64).map(said).collect()
}

fn scene() -> Scene {
    Scene {
        now: Moment::from_micros(3_600_000_000),
        zone: TimeZone::UTC,
        others: Vec::new(),
        is_call: false,
        place: None,
        has_minors: false,
        words: Default::default(),
        described: Default::default(),
    }
}

fn settings() -> Settings {
    Settings::overlay(serde_json::json!({})).expect("the defaults are fine")
}

fn character<'a>(id: &'a CompanionId, settings: &'a Settings) -> Character<'a> {
    Character {
        id,
        name: "Aria",
        persona: &settings.companion_defaults.persona,
        chattiness: &settings.companion_defaults.chattiness,
        tier: "average",
        brief: None,
        tone: "",
    }
}
