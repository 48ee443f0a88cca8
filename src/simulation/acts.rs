//! What people and operators do in a simulation, planned from its seed.

use std::time::Duration;

use super::dice::Dice;
use super::manners::Turn;
use super::plan::{CAST, Guild, Room, Weather};
use crate::domain::conversation::poison;

/// Something that somebody does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Say(Say),
    /// The same message comes once more, with other words.
    Again(usize),
    Edit(usize),
    Unsay(usize),
    Forget {
        guild: usize,
        person: &'static str,
        /// What was answered to them goes, too.
        answers: bool,
    },
    /// Somebody does not want to be heard in a guild, or wants to again.
    Ignore {
        guild: usize,
        person: &'static str,
        ignored: bool,
    },
    /// A connection has read what was said while it was not there, and may have left something out.
    CaughtUp {
        room: usize,
        read: u32,
        has_gap: bool,
    },
    /// The platform takes us out of a guild.
    LoseGuild(usize),
    Clear(usize),
    /// Others live in a room from now on.
    Move {
        room: usize,
        companions: Vec<&'static str>,
        has_external: bool,
    },
    Pause {
        room: usize,
        whom: Option<&'static str>,
        paused: bool,
    },
    InterjectionPolicy {
        room: usize,
        whom: &'static str,
        tier: &'static str,
    },
    /// Other companions are configured from now on.
    Recast(Vec<&'static str>),
    /// The wall clock is set by so many seconds.
    Jump(i64),
    /// So many handlers panic while they draw.
    Panic(u64),
    /// A message is set aside, and its channel is begun anew.
    DeadLetter(usize),
    /// A room is deleted with all that was said in it.
    Delete(usize),
    /// An operator looks after what was kept away and set aside, and tries it again or gives it up.
    Operate {
        retry: bool,
    },
    /// Somebody looks at everything.
    Look(usize),
}

/// Something that is said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Say {
    /// Counted over the whole run.
    pub(super) number: usize,
    pub(super) room: usize,
    pub(super) from: &'static str,
    pub(super) text: String,
    /// By an id it can be said again where nobody knows whether it was heard.
    pub(super) has_id: bool,
    pub(super) is_by_bot: bool,
    pub(super) turn: Turn,
    /// It was said so many seconds before it is heard.
    pub(super) late_by: u64,
    /// It kills whoever handles it.
    pub(super) is_deadly: bool,
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
            let say = said_in(room, number, rooms, guilds, weather, dice);
            let said_at = Duration::from_millis(at % until);
            if say.has_id && dice.chance(0.06) {
                // While it may still be on its way.
                acts.push((said_at + dice.millis(0, 60), Act::Again(number)));
            }
            acts.push((said_at, Act::Say(say)));
            number += 1;
        }
    }
    let others = dice.below(16);
    for _ in 0..others {
        let (room, message) = (dice.below(rooms.len() as u64) as usize, dice.below(number as u64) as usize);
        let home = &rooms[room];
        let whom = *dice.pick(&home.companions);
        let act = match dice.below(31) {
            0..4 => Act::Again(message),
            4..6 => Act::Edit(message),
            6..8 => Act::Unsay(message),
            8 => Act::Forget { guild: home.guild, person: dice.pick::<&str>(&PEOPLE), answers: false },
            9..11 => Act::Clear(room),
            11..14 if home.opens_by_itself() => Act::Look(room),
            11..14 => {
                let mut companions: Vec<_> = CAST.iter().map(|(id, _)| *id).filter(|_| dice.chance(0.5)).collect();
                if companions.is_empty() {
                    companions.push(whom);
                }
                Act::Move { room, companions, has_external: dice.chance(0.2) }
            }
            14..17 => Act::Pause { room, whom: dice.chance(0.6).then_some(whom), paused: dice.chance(0.6) },
            17 => Act::InterjectionPolicy { room, whom, tier: dice.pick::<&str>(&TIERS) },
            18..20 => Act::Recast(CAST.iter().map(|(id, _)| *id).filter(|_| dice.chance(0.8)).collect()),
            20 => Act::Panic(dice.between(1, 6)),
            21 if weather.is_deadly => Act::DeadLetter(message),
            22 | 23 if weather.has_jumps => {
                let secs = *dice.pick(&[5, 60, 600, 4_000]);
                Act::Jump(if dice.chance(0.5) { secs } else { -secs })
            }
            24 | 25 => {
                let (companions, has_external) = (home.companions.clone(), home.has_external);
                let deleted_at = dice.millis(0, until);
                if !home.opens_by_itself() && dice.chance(0.7) {
                    let again_at = deleted_at + dice.millis(10, 20_000);
                    acts.push((again_at, Act::Move { room, companions, has_external }));
                }
                acts.push((deleted_at, Act::Delete(room)));
                continue;
            }
            26..28 => Act::Operate { retry: dice.chance(0.5) },
            _ => Act::Look(room),
        };
        if weather.is_deadly || !matches!(act, Act::Panic(_)) {
            acts.push((dice.millis(0, until), act));
        }
    }
    acts.sort_by_key(|(at, _)| *at);
    acts
}

/// Some of what is said is taken back within seconds: while it is asked about, or answered.
pub(super) fn regretted(acts: &mut Vec<(Duration, Act)>, dice: &mut Dice) {
    let said = acts.iter().filter_map(|(at, act)| match act {
        Act::Say(say) => Some((*at, say.number)),
        _ => None,
    });
    let regretted: Vec<_> = said.filter(|_| dice.chance(0.12)).collect();
    acts.extend(regretted.into_iter().map(|(at, number)| (at + dice.millis(0, 5_000), Act::Unsay(number))));
    acts.sort_by_key(|(at, _)| *at);
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
    let poison = if is_deadly { *dice.pick(&[poison::TAKEN_IN, poison::GONE_ON, poison::WOKEN]) } else { "" };
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
    }
}
