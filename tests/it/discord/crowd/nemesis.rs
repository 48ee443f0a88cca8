//! The nemesis (a term of fault-injection tests such as Jepsen): injects random faults into Discord.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::super::counterpart::{Connects, Counterpart, Does, On, Scope};
use super::town::Town;

/// A lasting fault is lifted after so many moves of the nemesis.
const LASTS: usize = 3;

/// The names of the moves, for the counts.
const MOVES: [&str; 14] = [
    "cut",
    "reconnect",
    "invalid, resumable",
    "invalid",
    "closed with 4000",
    "silent",
    "no heartbeats acknowledged",
    "malformed frame",
    "repeated event",
    "outage of a guild",
    "gateway unavailable",
    "resume address unavailable",
    "IDENTIFY or RESUME refused",
    "REST",
];

pub struct Nemesis {
    rng: StdRng,
    lasting: VecDeque<LastingFault>,
    moves: usize,
    pub counts: BTreeMap<&'static str, usize>,
}

struct LastingFault {
    until: usize,
    lift: Box<dyn FnOnce(&Counterpart) + Send>,
}

impl Nemesis {
    pub fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed), lasting: VecDeque::new(), moves: 0, counts: BTreeMap::new() }
    }

    /// Injects one fault, and lifts lasting faults whose time is over.
    pub fn inject(&mut self, town: &Town) {
        self.moves += 1;
        while self.lasting.front().is_some_and(|fault| fault.until <= self.moves) {
            if let Some(fault) = self.lasting.pop_front() {
                (fault.lift)(&town.discord);
            }
        }
        let chosen = MOVES[self.rng.random_range(0..MOVES.len())];
        *self.counts.entry(chosen).or_default() += 1;
        self.act(chosen, town);
    }

    /// Lifts all faults.
    pub fn lift_all(&mut self, discord: &Counterpart) {
        for fault in self.lasting.drain(..) {
            (fault.lift)(discord);
        }
        discord.fail_identifies(0);
        discord.fail_resumes(0, true);
    }

    fn act(&mut self, chosen: &str, town: &Town) {
        let discord = &town.discord;
        let shard = self.rng.random_range(0..town.size.shards);
        match chosen {
            "cut" => discord.cut(shard),
            "reconnect" => discord.ask_to_reconnect(shard),
            "invalid, resumable" => discord.invalidate(shard, true),
            "invalid" => discord.invalidate(shard, false),
            "closed with 4000" => discord.close(shard, 4000, "Unknown error."),
            "silent" => discord.silence(shard),
            "no heartbeats acknowledged" => discord.stop_acknowledging(shard),
            "malformed frame" => {
                let length = self.rng.random_range(0..200);
                let noise: String = (0..length).map(|_| char::from(self.rng.random_range(32..127_u8))).collect();
                discord.send_text(shard, &noise);
            }
            "repeated event" => {
                if let Some(message) = town.messages.last() {
                    let is_there = discord.look(|state| state.world.message(message.channel, message.id).is_some());
                    if is_there {
                        discord.repeat(message.channel, message.id);
                    }
                }
            }
            "outage of a guild" => {
                let guild = town.channels[self.rng.random_range(0..town.channels.len())].guild;
                discord.set_outage(guild, true);
                self.lift_later(move |discord| discord.set_outage(guild, false));
            }
            "gateway unavailable" => {
                let how = [Connects::Refused, Connects::Hanging, Connects::Mute][self.rng.random_range(0..3)];
                discord.set_connects(how);
                self.lift_later(|discord| discord.set_connects(Connects::Well));
            }
            "resume address unavailable" => {
                discord.set_resume_connects(Connects::Refused);
                self.lift_later(|discord| discord.set_resume_connects(Connects::Well));
            }
            "IDENTIFY or RESUME refused" => {
                discord.fail_identifies(1);
                discord.fail_resumes(1, self.rng.random_bool(0.5));
            }
            _ => self.spoil(town),
        }
    }

    /// Injects a fault into some requests, in one guild or in all.
    fn spoil(&mut self, town: &Town) {
        let route = ["execute_webhook", "messages", "create_webhook", "webhooks"][self.rng.random_range(0..4)];
        let guild = town.channels[self.rng.random_range(0..town.channels.len())].guild;
        let on = On { route: Some(route), guild: self.rng.random_bool(0.5).then_some(guild), channel: None };
        let does = match self.rng.random_range(0..7) {
            0 => Does::TooMany { retry_after: Duration::from_millis(500), scope: Scope::User },
            1 => Does::TooMany { retry_after: Duration::from_millis(500), scope: Scope::Shared },
            2 => Does::Status([500, 502, 503][self.rng.random_range(0..3)]),
            3 => Does::Slow(Duration::from_millis(800)),
            4 => Does::Cut,
            5 => Does::CutAfterwards,
            _ => Does::Garbled,
        };
        let times = self.rng.random_range(1..=5);
        let fault = town.discord.spoil_next(times, on, does);
        self.lift_later(move |discord| discord.lift(fault));
    }

    fn lift_later(&mut self, lift: impl FnOnce(&Counterpart) + Send + 'static) {
        self.lasting.push_back(LastingFault { until: self.moves + LASTS, lift: Box::new(lift) });
    }
}
