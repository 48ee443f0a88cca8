//! People in voice calls: they talk over each other, stop, say "mhm", leave in mid-word, opt out, and type. Their final results come late, twice, empty,
//! or never, are noise or an echo, and are reported again after a crash. Calls are in guilds of their own and have random numbers of their own, so that
//! the stories of other seeds stay the same.

mod doing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::acts::{Act, PEOPLE, Say};
use super::dice::Dice;
use super::interruptions::number_of;
use super::plan::{CAST, FloorEvent, Guild, Room, Strike, Target, When, alias};
use crate::domain::id::Seq;
use crate::journeys::mouth;
use crate::ports::voice_call::InboundSegment;

pub(super) use doing::begin;

/// The word of a guild with a call.
pub(super) const WORD: &str = "ombrelune";
/// The share of seeds with a call.
const SHARE: f64 = 0.2;
/// The time between two reports of voice.
const HOP: Duration = Duration::from_millis(100);

/// What somebody does in a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallAct {
    Join(&'static str),
    Leave(&'static str),
    Mute(&'static str),
    LoseSocket(&'static str),
    /// Somebody opts out of this call alone.
    OptOut(&'static str),
    /// Somebody presses Stop.
    Stop,
    Talk(Talk),
}

/// What somebody says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Talk {
    pub(super) number: usize,
    pub(super) person: &'static str,
    pub(super) text: String,
    /// The companion that it names.
    names: Option<&'static str>,
    stop: bool,
    hops: u32,
    has_partial: bool,
    result: FinalResult,
    /// From the end of speech to the final result.
    late_by: Duration,
    /// The person waits for a reply, to talk into it.
    is_into_reply: bool,
    /// The recogniser takes it for no speech.
    is_no_speech: bool,
    /// The microphone picks up what was just played, instead of words.
    is_echo: bool,
    /// The recogniser still returns it when the person has opted out meanwhile.
    outlives_opt_out: bool,
}

/// The call's room, and what it adds to the settings.
pub(super) struct Planned {
    pub(super) room: usize,
    /// The stop phrases that people type.
    pub(super) phrases: Vec<String>,
    /// Settings of voice.
    voice: Value,
}

impl Planned {
    pub(super) fn add_settings(&self, settings: &mut Value) {
        settings["voice"] = self.voice.clone();
    }
}

/// What becomes of a final result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinalResult {
    Comes,
    ComesTwice,
    Empty,
    Never,
}

/// The accepted segments, by room and number of the talk: the sequence number and the words on record.
type Accepted = BTreeMap<(usize, usize), (Seq, Arc<str>)>;

/// What is known of the calls.
#[derive(Default)]
pub(super) struct Calls {
    /// Whether a person is in the call of a room, for each person who ever joined it.
    present: Mutex<BTreeMap<(usize, &'static str), bool>>,
    /// The reports of `present` that are under way, by life, room and person.
    reporting: Mutex<BTreeSet<(u64, usize, &'static str)>>,
    opted_out: Mutex<BTreeSet<(usize, &'static str)>>,
    /// When each person opted out.
    pub(super) opted_out_at: Mutex<BTreeMap<(usize, &'static str), Duration>>,
    pub(super) accepted: Mutex<Accepted>,
    /// Final results that nobody has accepted yet.
    pub(super) unreported: Mutex<BTreeMap<(usize, usize), InboundSegment>>,
    /// When somebody said a stop word, or may have been heard to.
    pub(super) stops: Mutex<Vec<(usize, Duration)>>,
    /// When something happened in a call, in order of time.
    pub(super) activity: Mutex<Vec<(usize, Duration)>>,
    /// What was played.
    pub(super) ledger: mouth::Shared,
}

/// Adds a room with a call to the plan of some seeds.
pub(super) fn add(
    guilds: &mut Vec<Guild>,
    rooms: &mut Vec<Room>,
    acts: &mut Vec<(Duration, Act)>,
    calm_at: Duration,
    dice: &mut Dice,
) -> Option<Planned> {
    if !dice.chance(SHARE) {
        return None;
    }
    let (room, guild) = (rooms.len(), guilds.len());
    guilds.push(Guild { id: format!("g{guild}"), word: WORD });
    let mut companions: Vec<_> = CAST.iter().map(|(id, _)| *id).collect();
    let several = *dice.pick(&[1, 1, 2, 3]);
    while companions.len() > several {
        companions.remove(dice.below(companions.len() as u64) as usize);
    }
    rooms.push(Room {
        id: format!("room{room}"),
        guild,
        companions: companions.clone(),
        has_external: false,
        is_on_platform: false,
        within: None,
        is_direct: false,
        has_call: true,
    });
    let (mut typed, mut phrases) = (Vec::new(), Vec::new());
    let mut message = acts.iter().filter_map(number_of).max().unwrap_or_default();
    let mut plan = |at: Duration, what: CallAct| acts.push((at, Act::Call { room, what }));
    let people = &PEOPLE[..dice.between(1, 3) as usize];
    let mut at = Duration::from_millis(500);
    for person in people {
        plan(at, CallAct::Join(person));
        at += dice.millis(0, 2_000);
    }
    let until = calm_at.min(Duration::from_secs(240));
    let mut number = 0;
    while at < until {
        number += 1;
        let person = *dice.pick(people);
        let talk = talk(number, person, &companions, dice);
        let lasts = HOP * talk.hops;
        plan(at, CallAct::Talk(talk));
        let during = at + lasts.mul_f64(dice.fraction());
        match dice.below(40) {
            0 => {
                plan(during, CallAct::Leave(person));
                plan(during + dice.millis(500, 20_000), CallAct::Join(person));
            }
            1 => plan(during, CallAct::Mute(person)),
            2 => {
                plan(during, CallAct::LoseSocket(person));
                plan(during + dice.millis(500, 20_000), CallAct::Join(person));
            }
            3 if number > 6 => plan(during, CallAct::OptOut(person)),
            4 | 5 => plan(at + lasts + dice.millis(0, 8_000), CallAct::Stop),
            6..9 => {
                message += 1;
                let say = typed_by(dice.pick::<&str>(people), message, room, &companions, &mut phrases, dice);
                typed.push((at + lasts + dice.millis(0, 8_000), Act::Say(say)));
            }
            _ => {}
        }
        at += match dice.below(10) {
            // They talk over each other, and into the answers.
            0..3 => lasts.mul_f64(dice.fraction()),
            3..6 => lasts + dice.millis(0, 3_000),
            _ => lasts + dice.millis(4_000, 14_000),
        };
    }
    acts.extend(typed);
    if dice.chance(0.2) {
        acts.push((dice.millis(5_000, until.as_millis() as u64), Act::Clear(room)));
    }
    if dice.chance(0.2) {
        let pauses_at = dice.millis(5_000, until.as_millis() as u64);
        let pause = |paused| Act::Pause { room, companion: None, paused };
        acts.push((pauses_at, pause(true)));
        acts.push((pauses_at + dice.millis(2_000, 20_000), pause(false)));
    }
    acts.sort_by_key(|(at, _)| *at);
    let voice = json!({
        "max_spoken_chars": *dice.pick(&[50, 200, 600]), "read_text_aloud": dice.chance(0.2),
        "follow_up_secs": *dice.pick(&[0, 10, 10]), "address_timeout_secs": *dice.pick(&[1, 1, 1, 3, 60]),
    });
    Some(Planned { room, phrases, voice })
}

/// A message that somebody types in the room of a call. Some are stop phrases.
fn typed_by(
    from: &'static str,
    number: usize,
    room: usize,
    companions: &[&'static str],
    phrases: &mut Vec<String>,
    dice: &mut Dice,
) -> Say {
    let mark = format!("{WORD} m{number}m");
    let text = match dice.below(3) {
        0 => format!("{mark} {}, what of it?", alias(dice.pick::<&str>(companions))),
        1 => format!("{mark} and so it goes"),
        _ => {
            phrases.push(format!("{mark} stop"));
            format!("{mark} stop!")
        }
    };
    Say::new(number, room, from, text, true)
}

fn talk(number: usize, person: &'static str, companions: &[&'static str], dice: &mut Dice) -> Talk {
    let id = *dice.pick(companions);
    let alias = alias(id);
    let (text, names, stop) = match dice.below(20) {
        0..8 => (format!("{alias}, {WORD} v{number}v, what of it?"), Some(id), false),
        8..12 => ("mhm".to_owned(), None, false),
        12 | 13 => ("stop".to_owned(), None, true),
        14 => (format!("{alias}, wait, {WORD} v{number}v"), Some(id), true),
        _ => (format!("{WORD} v{number}v and so it goes"), None, false),
    };
    let result = match dice.below(20) {
        0 => FinalResult::Never,
        1 => FinalResult::Empty,
        2 | 3 => FinalResult::ComesTwice,
        _ => FinalResult::Comes,
    };
    let late_by = if dice.chance(0.2) { dice.millis(500, 7_000) } else { dice.millis(50, 500) };
    let (hops, has_partial) = match dice.below(50) {
        // A fan, or somebody who does not stop.
        0 | 1 => (dice.between(220, 340), dice.chance(0.5)),
        2 | 3 => (dice.between(56, 80), false),
        4..7 => (dice.between(41, 46), dice.chance(0.6)),
        7..17 => (dice.between(25, 80), dice.chance(0.6)),
        _ => (dice.between(2, 20), dice.chance(0.6)),
    };
    Talk {
        number,
        person,
        text,
        names,
        stop,
        hops: hops as u32,
        has_partial,
        result,
        late_by,
        is_into_reply: dice.chance(0.35),
        is_no_speech: dice.chance(0.03),
        is_echo: dice.chance(0.04),
        outlives_opt_out: dice.chance(0.5),
    }
}

/// Plans kills just after hand-overs, and just after the events that spoken replies journal.
pub(super) fn strikes(room: usize, dice: &mut Dice) -> Vec<Strike> {
    let several = dice.below(6);
    let strike = |_| {
        let target = match dice.below(10) {
            0..5 => Target::Channel(room),
            5 => Target::Writer,
            6 => Target::ReplyOrDelivery(room),
            _ => Target::Process,
        };
        let event = *dice.pick(&FloorEvent::OF_CALLS);
        let when = When::Floor(event, dice.between(1, if event == FloorEvent::Extended { 1 } else { 5 }));
        Strike { when, steps: *dice.pick(&[0, 0, 1, 2, 4, 8, 16, 24]), target }
    };
    (0..several).map(strike).collect()
}
