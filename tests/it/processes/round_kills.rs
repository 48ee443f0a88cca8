//! Rooms with several companions, whose server is killed at any point of a round: each record must stay one consistent conversation.

pub mod model;
pub mod record;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;

use self::model::Model;
use self::record::{Counts, Record};
use super::writers::{Accepted, Sign, write};
use crate::harness::{Premises, Server, parameter};

/// Two rooms of three companions, in one guild, and one of five.
pub const ROOMS: [(&str, &str, &[&str]); 3] = [
    ("plaza", "home", &["aria", "bruno", "cleo"]),
    ("patio", "home", &["aria", "bruno", "cleo"]),
    ("attic", "upstairs", &["aria", "bruno", "cleo", "dora", "emil"]),
];
const WRITERS_IN_A_ROOM: usize = 2;
/// The number of messages while the server runs: few, so that the companions talk among themselves, or many.
const MESSAGES_IN_A_LIFE: std::ops::RangeInclusive<usize> = 1..=6;
const MESSAGES_IN_A_BURST: std::ops::RangeInclusive<usize> = 20..=60;
const BURSTS: f64 = 0.15;
/// The server is killed at an event, or after this time at the latest.
const LONGEST_LIFE: Duration = Duration::from_millis(1_500);
const KILLED_AT_RECOVERY: f64 = 0.25;
/// The delays in seconds of a selected companion before it speaks.
pub const DELAYS: [&str; 3] = ["0.01", "0.05", "0.3"];
/// The paces of the built-in model: without delay, with a short one, and so slow that kills often hit questions and replies, and that some replies
/// lose the floor.
pub const PACES: [&str; 3] = ["0", "0.02", "0.6"];
/// The number of statements in a row that companions may make.
pub const STREAK: u64 = 3;
/// The time limit for a room to come to rest.
pub const REST: Duration = Duration::from_secs(60);

#[tokio::test]
async fn rooms_with_several_companions_stay_consistent_through_kills() {
    let figures = run_trial(4, 5).await;

    figures.assert_faultless();
}

/// `cargo test --release --test it -- --ignored --nocapture hundred_kills_leave` prints the result, after a minute or less.
/// `KILLS` sets the number of kills, `SEED` the choice of moments.
#[tokio::test]
#[ignore = "takes up to a minute"]
async fn a_hundred_kills_leave_rooms_with_several_companions_consistent() {
    let figures = run_trial(parameter("KILLS", 100) as u32, parameter("SEED", 1)).await;

    println!("{figures}");
    figures.assert_faultless();
}

/// The result of a trial.
#[derive(Debug, Default)]
pub struct Figures {
    pub kills: u32,
    pub accepted: usize,
    pub counts: Counts,
    pub lost: Vec<String>,
    pub duplicated: Vec<String>,
    pub broken: Vec<String>,
    pub restless: Vec<String>,
}

impl Figures {
    fn assert_faultless(&self) {
        let faults = self.lost.len() + self.duplicated.len() + self.broken.len() + self.restless.len();
        assert_eq!(faults, 0, "{self:#?}");
        assert!(self.accepted > 0 && self.counts.turn_rounds > 0 && self.counts.statements > 0, "{self}");
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kills {}: messages accepted {}, {}, ", self.kills, self.accepted, self.counts)?;
        write!(f, "lost {}, duplicated {}, ", self.lost.len(), self.duplicated.len())?;
        write!(f, "broken rules {}, rooms not at rest {}", self.broken.len(), self.restless.len())
    }
}

/// Kills the server `kills` times, at moments that the seed chooses, and checks the records.
async fn run_trial(kills: u32, seed: u64) -> Figures {
    let mut chance = StdRng::seed_from_u64(seed);
    let model = Model::start().await;
    let mut premises = premises();
    let sign = watch::Sender::new(Sign::Closed);
    let permits = Arc::new(Semaphore::new(0));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let writers: Vec<_> = (0..ROOMS.len() * WRITERS_IN_A_ROOM)
        .map(|writer| (ROOMS[writer % ROOMS.len()].0, writer))
        .map(|(room, writer)| tokio::spawn(write(writer, room, line, permits.clone(), sign.subscribe(), sender.clone())))
        .collect();
    let mut figures = Figures::default();
    let mut accepted = Vec::new();
    let mut server = premises.start().await;
    while figures.kills + 2 < kills {
        let mut watched = server.watch(ROOMS[chance.random_range(0..ROOMS.len())].0, None).await;
        sign.send_replace(Sign::Open(server.url.clone()));
        let is_burst = chance.random_bool(BURSTS);
        permits.add_permits(chance.random_range(if is_burst { MESSAGES_IN_A_BURST } else { MESSAGES_IN_A_LIFE }));
        watched.until_some_moment(LONGEST_LIFE, &mut chance).await;
        server.kill().await;
        sign.send_replace(Sign::Closed);
        premises.set("turn_taking.turn_delay_secs", DELAYS[chance.random_range(0..DELAYS.len())]);
        // The built-in model always answers, the other one often.
        let (url, name) = if chance.random_bool(0.7) { (&*model.url, "any") } else { ("", "") };
        premises.set("models.side.base_url", url);
        premises.set("models.side.model", name);
        premises.set("models.rehearsal.pace", PACES[chance.random_range(0..PACES.len())]);
        server = premises.start().await;
        if chance.random_bool(KILLED_AT_RECOVERY) {
            // This kill hits the server while it recovers from the kill before.
            server.kill().await;
            server = premises.start().await;
            figures.kills += 1;
        }
        figures.kills += 1;
    }
    sign.send_replace(Sign::Over(server.url.clone()));
    permits.add_permits(writers.len());
    for writer in writers {
        timeout(REST, writer).await.expect("the writer ends").expect("the writer does not panic");
    }
    drop(sender);
    while let Some(last) = receiver.recv().await {
        accepted.push(last);
    }
    figures.accepted = accepted.len();
    // After the last kill but one, people are silent and the model does not fail.
    server.kill().await;
    figures.kills += 1;
    model.recover();
    premises.set("models.rehearsal.pace", PACES[0]);
    let server = premises.start().await;
    for (room, ..) in ROOMS {
        // `look_into` reports a room that does not come to rest.
        let _ = timeout(REST, server.rest(room)).await;
    }
    // The last kill finds the rooms at rest.
    server.kill().await;
    figures.kills += 1;
    let server = premises.start().await;
    for (room, _, companions) in ROOMS {
        let in_room: Vec<_> = accepted.iter().filter(|message: &&Accepted| message.room == room).collect();
        look_into(&server, room, companions, &in_room, &mut figures).await;
    }
    server.stop().await;
    let verified = premises.run(&["history", "verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    figures
}

pub fn premises() -> Premises {
    let room = |(room, guild, companions): (&str, &str, &[&str])| {
        format!("{{ id = \"{room}\", guild = \"{guild}\", companions = {companions:?} }}")
    };
    let rooms = ROOMS.map(room);
    let levels = [("aria", "average"), ("bruno", "quiet"), ("cleo", "very_eager"), ("dora", "eager"), ("emil", "very_quiet")];
    let file = |level: &str| format!("text_lull_timeout = 0.05\ninterjection = \"{level}\"\n");
    let premises = levels.iter().fold(Premises::new(), |premises, (id, level)| premises.with_companion(id, &file(level)));
    premises
        .without_limits()
        .with("console.rooms", &format!("[{}]", rooms.join(", ")))
        .with("turn_taking.turn_delay_secs", DELAYS[0])
        .with("turn_taking.max_companion_streak", &STREAK.to_string())
        .with("turn_taking.floor_timeout_secs", "1.4")
        .with("reply.replan_within_secs", "0.3")
        .with("closing.reopen_after", "3")
        .with("models.breaker.failures", "1000")
        .with("models.pool.max_attempts", "1")
        .with("models.side.guild_max_concurrent", "64")
        .with("models.side.max_concurrent", "64")
}

/// A message: some address one companion, some address several, some ask to stop, most address nobody. So people follow up, and interrupt.
pub fn line(writer: usize, number: usize) -> String {
    let kind = ["", "cleo, ", "", "aria and bruno, ", "", "never mind", "bruno, ", "", "aria, bruno, cleo, ", "cleo, stop"];
    match kind[(writer + number) % kind.len()] {
        // The mention makes it different from all others.
        phrase if phrase.ends_with(char::is_alphabetic) => format!("{phrase} <w{writer}n{number}>"),
        address => format!("{address}what of w{writer}n{number}?"),
    }
}

/// Waits until a room is at rest, and checks its record against the rules.
pub async fn look_into(server: &Server, room: &str, companions: &[&str], accepted: &[&Accepted], figures: &mut Figures) {
    let accepted: BTreeMap<u64, &str> = accepted.iter().map(|message| (message.seq, &*message.text)).collect();
    let Ok(state) = timeout(REST, server.rest(room)).await else {
        let state = server.get(&format!("/api/rooms/{room}/state")).await;
        figures.restless.push(format!("{room}: {state}"));
        return;
    };
    let export = server.get(&format!("/api/export?room={room}")).await;
    let mut record = Record::new(companions, STREAK);
    let events = lines(&export);
    record.read(&events);
    record.compare_accepted(&accepted);
    record.compare_state(&state);
    record.compare_decisions(&decisions(server, room).await);
    let in_room = |fault: &String| format!("{room}: {fault}");
    figures.lost.extend(record.lost.iter().map(in_room));
    figures.duplicated.extend(record.duplicated.iter().map(in_room));
    figures.broken.extend(record.broken.iter().map(in_room));
    figures.counts.add(&record.counts);
}

/// The events of an export, without the line that says where it ends.
fn lines(export: &Value) -> Vec<Value> {
    let lines = export.as_str().expect("lines of JSON").lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.filter(|event: &Value| event["event"].is_string()).collect()
}

async fn decisions(server: &Server, room: &str) -> Vec<Value> {
    let mut decisions: Vec<Value> = Vec::new();
    loop {
        let after = decisions.last().map_or(0, |decision| decision["seq"].as_u64().expect("a number"));
        let page = server.get(&format!("/api/decisions?room={room}&after={after}&limit=1000")).await;
        let page = page["decisions"].as_array().expect("decisions").clone();
        if page.is_empty() {
            return decisions;
        }
        decisions.extend(page);
    }
}
