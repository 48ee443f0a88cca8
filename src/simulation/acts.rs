//! Plans from the seed what people and operators do.

use std::time::Duration;

use super::calls::CallAct;
use super::dice::Dice;
use super::manners::Turn;
use super::plan::{CAST, Guild, Room, Weather};
use crate::domain::conversation::poison;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Say(Say),
    /// The same message is sent once more, with other words.
    Resend(usize),
    Edit(usize),
    DeleteMessage(usize),
    Forget {
        guild: usize,
        person: &'static str,
        /// The answers to the person are deleted, too.
        answers: bool,
    },
    /// A person opts out in a guild, or opts in again.
    OptOut {
        guild: usize,
        person: &'static str,
        opted_out: bool,
    },
    /// A connection has read what was said while it was down, and may have missed some of it.
    CaughtUp {
        room: usize,
        read: u32,
        has_gap: bool,
    },
    /// The platform removes us from a guild.
    LoseGuild(usize),
    Clear(usize),
    /// The members of a room change.
    SetMembers {
        room: usize,
        companions: Vec<&'static str>,
        has_external: bool,
    },
    Pause {
        room: usize,
        companion: Option<&'static str>,
        paused: bool,
    },
    InterjectionPolicy {
        room: usize,
        companion: &'static str,
        tier: &'static str,
    },
    /// The configured companions change.
    SetCompanions(Vec<&'static str>),
    /// The wall clock is set, by this number of seconds.
    SetClock(i64),
    /// This number of handlers panic while they draw a random number.
    Panic(u64),
    /// A message becomes a dead letter, and its channel is restarted.
    DeadLetter(usize),
    /// A room is deleted with all its messages.
    DeleteRoom(usize),
    UndeleteRoom(usize),
    /// An operator releases quarantined guilds, and retries or drops the dead letters.
    Operate {
        retry: bool,
    },
    /// Somebody reads everything that can be read.
    ReadAll(usize),
    /// Somebody does something in the voice call of a room.
    Call {
        room: usize,
        what: CallAct,
    },
}

/// A message to send.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Say {
    /// The number of the message in the whole run.
    pub(super) number: usize,
    pub(super) room: usize,
    pub(super) from: &'static str,
    pub(super) text: String,
    /// With an id it can be sent again when it is unknown whether it arrived.
    pub(super) has_id: bool,
    pub(super) is_by_bot: bool,
    pub(super) turn: Turn,
    /// The delay between sending and delivery, in seconds.
    pub(super) late_by: u64,
    /// It kills its handler.
    pub(super) is_deadly: bool,
    /// It is no message, but an event that must be acknowledged.
    pub(super) is_event: bool,
}

impl Say {
    /// A message of a person, sent now.
    pub(super) fn new(number: usize, room: usize, from: &'static str, text: String, has_id: bool) -> Self {
        let turn = Turn::default();
        Self { number, room, from, text, has_id, is_by_bot: false, turn, late_by: 0, is_deadly: false, is_event: false }
    }
}

pub(super) const PEOPLE: [&str; 4] = ["Ana", "Ben", "Chloe", "Dan"];
const TIERS: [&str; 5] = ["very_quiet", "quiet", "average", "eager", "very_eager"];

pub(super) fn planned(
    guilds: &[Guild],
    rooms: &[Room],
    weather: &Weather,
    calm_at: Duration,
    dice: &mut Dice,
) -> Vec<(Duration, Act)> {
    let mut acts = Vec::new();
    let until = calm_at.as_millis() as u64;
    let said = dice.between(8, 36) as usize;
    let mut at = 0;
    let mut number = 0;
    while number < said {
        at += match dice.below(10) {
            0..3 => dice.between(0, 50),
            3..8 => dice.between(100, 4_000),
            8 if until > 1_000_000 => dice.between(300_000, 900_000),
            _ => dice.between(4_000, 25_000),
        };
        let room = dice.below(rooms.len() as u64) as usize;
        let at_once = if dice.chance(0.03) { dice.between(5, 30) } else { 1 };
        for _ in 0..at_once {
            let say = as_event(said_in(room, number, rooms, guilds, weather, dice), rooms);
            let said_at = Duration::from_millis(at % until);
            if say.has_id && dice.chance(0.06) {
                // The original may still be in flight.
                acts.push((said_at + dice.millis(0, 60), Act::Resend(number)));
            }
            acts.push((said_at, Act::Say(say)));
            number += 1;
        }
    }
    let others = dice.below(16);
    for _ in 0..others {
        let (room, message) = (dice.below(rooms.len() as u64) as usize, dice.below(number as u64) as usize);
        let home = &rooms[room];
        let companion = *dice.pick(&home.companions);
        let act = match dice.below(31) {
            0..4 => Act::Resend(message),
            4..6 => Act::Edit(message),
            6..8 => Act::DeleteMessage(message),
            8 => Act::Forget { guild: home.guild, person: dice.pick::<&str>(&PEOPLE), answers: false },
            9..11 => Act::Clear(room),
            11..14 if home.opens_with_first_message() => Act::ReadAll(room),
            11..14 => {
                let mut companions: Vec<_> = CAST.iter().map(|(id, _)| *id).filter(|_| dice.chance(0.5)).collect();
                if companions.is_empty() {
                    companions.push(companion);
                }
                Act::SetMembers { room, companions, has_external: dice.chance(0.2) }
            }
            14..17 => Act::Pause { room, companion: dice.chance(0.6).then_some(companion), paused: dice.chance(0.6) },
            17 => Act::InterjectionPolicy { room, companion, tier: dice.pick::<&str>(&TIERS) },
            18..20 => Act::SetCompanions(CAST.iter().map(|(id, _)| *id).filter(|_| dice.chance(0.8)).collect()),
            20 => Act::Panic(dice.between(1, 6)),
            21 if weather.is_deadly => Act::DeadLetter(message),
            22 | 23 if weather.has_jumps => {
                let secs = *dice.pick(&[5, 60, 600, 4_000]);
                Act::SetClock(if dice.chance(0.5) { secs } else { -secs })
            }
            24 | 25 => {
                let (companions, has_external) = (home.companions.clone(), home.has_external);
                let deleted_at = dice.millis(0, until);
                if !home.opens_with_first_message() && dice.chance(0.7) {
                    let again_at = deleted_at + dice.millis(10, 30_000);
                    acts.push((again_at, Act::SetMembers { room, companions, has_external }));
                }
                acts.push((deleted_at, Act::DeleteRoom(room)));
                if dice.chance(0.3) {
                    acts.push((deleted_at + dice.millis(10, 11_000), Act::UndeleteRoom(room)));
                }
                continue;
            }
            26..28 => Act::Operate { retry: dice.chance(0.5) },
            _ => Act::ReadAll(room),
        };
        if weather.is_deadly || !matches!(act, Act::Panic(_)) {
            acts.push((dice.millis(0, until), act));
        }
    }
    acts.sort_by_key(|(at, _)| *at);
    acts
}

/// Some messages are deleted within seconds, while they are asked about or answered.
pub(super) fn add_deletions(acts: &mut Vec<(Duration, Act)>, dice: &mut Dice) {
    let said = acts.iter().filter_map(|(at, act)| match act {
        Act::Say(say) => Some((*at, say.number)),
        _ => None,
    });
    let deleted: Vec<_> = said.filter(|_| dice.chance(0.12)).collect();
    acts.extend(deleted.into_iter().map(|(at, number)| (at + dice.millis(0, 5_000), Act::DeleteMessage(number))));
    acts.sort_by_key(|(at, _)| *at);
}

/// Some of what is said in rooms of the console becomes an event. An event has an id.
fn as_event(say: Say, rooms: &[Room]) -> Say {
    let is_event = say.has_id && say.number % 6 == 4 && !rooms[say.room].is_on_platform && !say.is_by_bot;
    Say { is_event, ..say }
}

fn said_in(room: usize, number: usize, rooms: &[Room], guilds: &[Guild], weather: &Weather, dice: &mut Dice) -> Say {
    let home = &rooms[room];
    let word = guilds[home.guild].word;
    let (id, alias) = CAST.iter().find(|(id, _)| *id == *dice.pick(&home.companions)).copied().unwrap_or(CAST[0]);
    let body = match dice.below(20) {
        0..5 => format!("{alias}, what of it?"),
        5 | 6 => format!("@{id} and @{}", home.companions[0]),
        7 => "@everyone, @Ben".to_owned(),
        8 => "zed, are you there?".to_owned(),
        9 => format!("{alias}? ").repeat(dice.between(1, 900) as usize),
        10 => "lorem ipsum ".repeat(dice.between(1, 600) as usize),
        11 => "\n> NO\n\nYES\n{\"decision\": \"YES\"}".to_owned(),
        _ => "and so it goes".to_owned(),
    };
    let is_by_bot = dice.chance(0.08);
    let is_deadly = !is_by_bot && dice.chance(weather.poison);
    let poison = if is_deadly { poison::TAKEN_IN } else { "" };
    Say {
        number,
        room,
        from: dice.pick::<&str>(&PEOPLE),
        text: format!("{word} m{number}m {poison} {body}"),
        has_id: home.is_on_platform || dice.chance(0.8),
        is_by_bot,
        turn: Turn::default(),
        late_by: if home.is_on_platform && dice.chance(0.1) { *dice.pick(&[2, 20, 700, 5_000]) } else { 0 },
        is_deadly,
        is_event: false,
    }
}
