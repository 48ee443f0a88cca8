//! The world from a seed: who is where, under which rules, in which weather, and what will happen.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::acts::{self, Act};
use super::dice::Dice;

/// Who may live in a guild, and what else each is called.
pub(super) const CAST: [(&str, &str); 5] =
    [("aria", "ari"), ("bruno", "bru"), ("cleo", "clee"), ("dora", "dodo"), ("eli", "elias")];
/// The companion that a program outside plays.
pub(super) const EXTERNAL: &str = "zed";
/// A word for each guild that nobody outside it may ever see.
const WORDS: [&str; 3] = ["qalamarine", "vexolith", "zumbrota"];

/// A world and its fate.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) settings: Value,
    pub(super) rules: Rules,
    pub(super) guilds: Vec<Guild>,
    pub(super) rooms: Vec<Room>,
    pub(super) weather: Weather,
    /// What people and operators do, in the order of time.
    pub(super) acts: Vec<(Duration, Act)>,
    pub(super) strikes: Vec<Strike>,
    /// What goes wrong with which commit, counted over all lives.
    pub(super) store_faults: BTreeMap<u64, StoreFault>,
    /// When the disk is full.
    pub(super) full: Option<(Duration, Duration)>,
    /// When commits are slow.
    pub(super) slow: Option<(Duration, Duration)>,
    /// When faults are over.
    pub(super) calm_at: Duration,
}

/// The settings that are checked by themselves.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) state_timeout: f64,
    pub(super) side_timeout: f64,
    pub(super) streak: u32,
    pub(super) max_buffer: usize,
    pub(super) evaluations_per_hour: u32,
    pub(super) guild_evaluations_per_hour: u32,
    pub(super) guild_statements_per_day: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Guild {
    pub(super) id: String,
    pub(super) word: &'static str,
}

#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) id: String,
    pub(super) guild: usize,
    pub(super) companions: Vec<&'static str>,
    pub(super) has_external: bool,
    pub(super) is_on_platform: bool,
}

/// How likely things go wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Weather {
    pub(super) wants_to_speak: f64,
    pub(super) model_errors: f64,
    pub(super) model_hangs: f64,
    pub(super) model_panics: f64,
    pub(super) malformed: f64,
    pub(super) model_millis: u64,
    pub(super) repeats: f64,
    pub(super) names_others: f64,
    pub(super) closes: f64,
    pub(super) platform_later: f64,
    pub(super) platform_unknown: f64,
    pub(super) platform_refuses: f64,
    pub(super) unreadable: f64,
    pub(super) slow_reads: f64,
    pub(super) commit_millis: u64,
    /// Actors are killed, and the process.
    pub(super) is_deadly: bool,
    pub(super) has_jumps: bool,
}

/// What a strike may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Beat {
    Committed,
    Asked,
    Answered,
    Left,
    Arrived,
    Said,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum When {
    At(Duration),
    Beat(Beat, u64),
}

/// Somebody dies so many steps of the scheduler after something happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Strike {
    pub(super) when: When,
    pub(super) steps: u32,
    pub(super) target: Target,
}

impl Strike {
    pub(super) const fn at(&self) -> Option<Duration> {
        match self.when {
            When::At(at) => Some(at),
            When::Beat(..) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    Channel(usize),
    Companion(usize, usize),
    Guild(usize),
    Guilds,
    Scribe,
    Pool,
    Switchboard,
    Manager(usize),
    /// Replies and deliveries of a room.
    Making(usize),
    Process,
    /// A channel again and again, until its guild is kept away.
    Storm(usize),
}

/// What goes wrong with a commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum StoreFault {
    /// Nothing is stored, and the store takes no more.
    Failed,
    /// So much of the group is stored, and the answer is lost.
    Unknown(f64),
    /// So much of the group is stored when the process dies.
    Crash(f64),
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed, "plan");
        let weather = weather(&mut dice);
        let (settings, rules) = settings(&mut dice);
        let guilds: Vec<_> = (0..dice.between(1, 3) as usize).map(|at| Guild { id: format!("g{at}"), word: WORDS[at] }).collect();
        let mut rooms = Vec::new();
        for guild in 0..guilds.len() {
            for _ in 0..dice.between(1, 2) {
                rooms.push(room(guild, rooms.len(), &mut dice));
            }
        }
        // In some worlds there are pauses so long that channels fall asleep.
        let calm_at = Duration::from_secs(if dice.chance(0.25) { dice.between(1_000, 4_000) } else { dice.between(60, 300) });
        let acts = acts::planned(&guilds, &rooms, &weather, calm_at, &mut Dice::new(seed, "acts"));
        let strikes = if weather.is_deadly { strikes(&rooms, calm_at, &mut dice) } else { Vec::new() };
        let (mut store_faults, mut full) = (BTreeMap::new(), None);
        if weather.is_deadly {
            for _ in 0..dice.below(4) {
                let share = *dice.pick(&[0.0, 1.0, dice.clone().fraction()]);
                let fault = match dice.below(5) {
                    0 => StoreFault::Failed,
                    1 | 2 => StoreFault::Unknown(share),
                    _ => StoreFault::Crash(share),
                };
                store_faults.insert(dice.between(3, 250), fault);
            }
            if dice.chance(0.1) {
                let from = dice.millis(1_000, calm_at.as_millis() as u64 - 20_000);
                full = Some((from, from + dice.millis(1_000, 20_000)));
            }
        }
        let slow = dice.chance(0.2).then(|| {
            let from = dice.millis(0, calm_at.as_millis() as u64 - 20_000);
            (from, from + dice.millis(1_000, 20_000))
        });
        Self { seed, settings, rules, guilds, rooms, weather, acts, strikes, store_faults, full, slow, calm_at }
    }

    /// The word of a guild, by its id.
    pub(super) fn word_of(&self, guild: &str) -> &'static str {
        self.guilds.iter().find(|known| known.id == guild).map_or("nobody", |known| known.word)
    }

    /// The word of another guild that a text holds.
    pub(super) fn foreign_word(&self, guild: &str, text: &str) -> Option<&'static str> {
        self.guilds.iter().filter(|other| other.id != guild).map(|other| other.word).find(|word| text.contains(word))
    }
}

fn weather(dice: &mut Dice) -> Weather {
    let mut sometimes = |share: f64, most: f64| if dice.chance(share) { dice.fraction() * most } else { 0.0 };
    let mut weather = Weather {
        wants_to_speak: 0.2 + sometimes(0.9, 0.75),
        model_errors: sometimes(0.5, 0.4),
        model_hangs: sometimes(0.3, 0.15),
        model_panics: sometimes(0.15, 0.1),
        malformed: sometimes(0.4, 0.4),
        repeats: sometimes(0.3, 1.0),
        names_others: sometimes(0.6, 0.8),
        closes: sometimes(0.5, 0.4),
        platform_later: sometimes(0.4, 0.4),
        platform_unknown: sometimes(0.5, 0.5),
        platform_refuses: sometimes(0.2, 0.2),
        unreadable: sometimes(0.2, 0.4),
        slow_reads: sometimes(0.4, 0.4),
        ..Weather::default()
    };
    weather.model_millis = *dice.pick(&[1, 300, 2_000, 6_000]);
    weather.commit_millis = *dice.pick(&[0, 2, 10, 40]);
    weather.is_deadly = dice.chance(0.75);
    weather.has_jumps = dice.chance(0.2);
    weather
}

/// Rules that are met within minutes, and budgets that bite now and then.
fn settings(dice: &mut Dice) -> (Value, Rules) {
    let side_timeout = dice.between(3, 15) as f64;
    let main_timeout = dice.between(5, 60) as f64;
    let mut rare = |usual: u32, from: u64, to: u64| if dice.chance(0.2) { dice.between(from, to) as u32 } else { usual };
    let (evaluations_per_hour, guild_evaluations_per_hour) = (rare(120, 3, 20), rare(5_000, 5, 40));
    let (guild_statements_per_day, addresses_per_minute) = (rare(5_000, 1, 12), rare(20, 1, 4));
    let rules = Rules {
        state_timeout: side_timeout + dice.between(1, 10) as f64,
        side_timeout,
        streak: dice.between(1, 4) as u32,
        max_buffer: *dice.pick(&[3, 8, 40, 200]),
        evaluations_per_hour,
        guild_evaluations_per_hour,
        guild_statements_per_day,
    };
    let mut settings = json!({
        "gate": {
            "skip_when_other_addressed": dice.chance(0.7),
            "foreign_bots": dice.pick(&["ignore", "mentions", "all"]),
            "max_buffer": rules.max_buffer,
            "stale_after_secs": *dice.pick(&[30.0, 120.0, 600.0]),
            "stale_address_after_secs": *dice.pick(&[120.0, 3_600.0]),
            "evaluations_per_hour": evaluations_per_hour,
            "guild_evaluations_per_hour": guild_evaluations_per_hour,
            "addresses_per_minute": addresses_per_minute,
            "guild_statements_per_day": guild_statements_per_day,
        },
        "turn_taking": {
            "turn_delay_secs": *dice.pick(&[0.0, 0.5, 2.0]),
            "state_timeout_secs": rules.state_timeout,
            "max_companion_streak": rules.streak,
            "external_statement_timeout_secs": *dice.pick(&[5.0, 60.0]),
        },
        "closing": {
            "reopen_after": dice.between(2, 9),
            "episode_idle_secs": *dice.pick(&[20.0, 120.0, 1_800.0]),
        },
        "repetition": { "enabled": dice.chance(0.8), "judge": dice.pick(&["lexical", "model", "both"]) },
        "prompt": { "summary_after": *dice.pick(&[5, 12, 40]) },
        "models": {
            "side": {
                "timeout_secs": side_timeout, "first_token_timeout_secs": side_timeout, "idle_timeout_secs": side_timeout,
                "max_concurrent": dice.between(1, 8), "guild_max_concurrent": dice.between(1, 4),
            },
            "main": {
                "timeout_secs": main_timeout, "first_token_timeout_secs": main_timeout, "idle_timeout_secs": main_timeout,
                "max_concurrent": dice.between(1, 4), "guild_max_concurrent": dice.between(1, 2),
            },
            "pool": { "queue_capacity": *dice.pick(&[3, 10, 1_000]), "max_attempts": dice.between(1, 4) },
            "breaker": { "failures": dice.between(3, 10) },
        },
    });
    if dice.chance(0.3) {
        settings["turn_taking"]["max_turns"] = dice.between(1, 6).into();
    }
    if dice.chance(0.1) {
        settings["models"]["guild_tokens_per_day"] = dice.between(200, 3_000).into();
    }
    (settings, rules)
}

fn room(guild: usize, number: usize, dice: &mut Dice) -> Room {
    let is_on_platform = dice.chance(0.4);
    let mut companions: Vec<_> = CAST.iter().map(|(id, _)| *id).collect();
    let several = dice.between(1, 5) as usize;
    while companions.len() > several {
        companions.remove(dice.below(companions.len() as u64) as usize);
    }
    Room {
        id: if is_on_platform { format!("sim:{number}") } else { format!("room{number}") },
        guild,
        companions,
        has_external: dice.chance(0.2),
        is_on_platform,
    }
}

fn strikes(rooms: &[Room], calm_at: Duration, dice: &mut Dice) -> Vec<Strike> {
    const BEATS: [Beat; 6] = [Beat::Committed, Beat::Asked, Beat::Answered, Beat::Left, Beat::Arrived, Beat::Said];
    let several = dice.below(10);
    let strike = |_| {
        let room = dice.below(rooms.len() as u64) as usize;
        let target = match dice.below(40) {
            0..8 => Target::Channel(room),
            8..12 => Target::Companion(room, dice.below(5) as usize),
            12..16 => Target::Guild(rooms[room].guild),
            16..18 => Target::Guilds,
            18..22 => Target::Scribe,
            22..26 => Target::Pool,
            26..28 => Target::Switchboard,
            28..31 => Target::Manager(room),
            31..35 => Target::Making(room),
            35..39 => Target::Process,
            _ => Target::Storm(room),
        };
        let when = if dice.chance(0.25) {
            When::At(dice.millis(0, calm_at.as_millis() as u64))
        } else {
            let beat = *dice.pick(&BEATS);
            let most = match beat {
                Beat::Committed => 200,
                Beat::Asked | Beat::Answered | Beat::Said => 40,
                Beat::Left | Beat::Arrived => 12,
            };
            When::Beat(beat, dice.between(1, most))
        };
        Strike { when, steps: dice.below(24) as u32, target }
    };
    (0..several).map(strike).collect()
}
