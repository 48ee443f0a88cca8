//! A server that is repeatedly killed under load: no accepted message is lost, answered twice, or left undecided.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::writers::{Accepted, Sign, write};
use crate::harness::{PATIENCE, Premises, QUICK, Server, Watch};

/// Rooms, two of one guild and one of another; two writers in each.
const ROOMS: [&str; 3] = ["plaza", "patio", "attic"];
const WRITERS_IN_A_ROOM: usize = 2;
/// The server is killed after this many messages, or at the next event of [`MOMENTS`].
const MESSAGES_BEFORE_A_KILL: std::ops::RangeInclusive<usize> = 5..=60;
const KILLED_AT_RECOVERY: f64 = 0.25;
/// The paces of the models: without delay, and slow enough that kills often hit questions and replies in flight.
const PACES: [&str; 2] = ["0", "0.03"];
const MOMENTS: [Option<&str>; 5] = [None, Some("evaluate"), Some("decision"), Some("respond"), Some("statement")];

#[tokio::test]
async fn kills_under_load_lose_and_duplicate_nothing() {
    let figures = run_trial(4, 7).await;

    figures.assert_faultless();
}

/// `cargo test --release --test it -- --ignored --nocapture hundred_kills_lose` prints the result, after a minute or less.
/// `KILLS` sets the number of kills, `SEED` the choice of moments.
#[tokio::test]
#[ignore = "takes up to a minute"]
async fn a_hundred_kills_lose_and_duplicate_nothing() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default);

    let figures = run_trial(number("KILLS", 100) as u32, number("SEED", 1)).await;

    println!("{figures}");
    figures.assert_faultless();
}

/// The result of a trial.
#[derive(Debug, Default)]
struct Figures {
    kills: u32,
    accepted: usize,
    replies: usize,
    lost: Vec<String>,
    duplicated: Vec<String>,
    undecided: Vec<String>,
}

impl Figures {
    fn assert_faultless(&self) {
        assert!(self.lost.is_empty() && self.duplicated.is_empty() && self.undecided.is_empty(), "{self:#?}");
        assert!(self.accepted > 0 && self.replies > 0, "{self}");
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, accepted, replies, lost, duplicated, undecided } = self;
        let (lost, duplicated, undecided) = (lost.len(), duplicated.len(), undecided.len());
        write!(f, "kills {kills}: messages accepted {accepted}, replies made {replies}, lost {lost}, duplicated {duplicated}, ")?;
        write!(f, "undecided or unanswered {undecided}")
    }
}

/// Kills the server `kills` times, at moments that the seed chooses, and checks the records.
async fn run_trial(kills: u32, seed: u64) -> Figures {
    let mut premises = premises();
    let mut chance = StdRng::seed_from_u64(seed);
    let sign = watch::Sender::new(Sign::Closed);
    let permits = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let writers: Vec<_> = (0..ROOMS.len() * WRITERS_IN_A_ROOM)
        .map(|writer| (ROOMS[writer % ROOMS.len()], writer))
        .map(|(room, writer)| tokio::spawn(write(writer, room, line, permits.clone(), sign.subscribe(), sender.clone())))
        .collect();
    let mut figures = Figures::default();
    let mut accepted = Vec::new();
    let mut server = premises.start().await;
    while figures.kills + 1 < kills {
        let mut watched = server.watch(ROOMS[chance.random_range(0..ROOMS.len())], None).await;
        sign.send_replace(Sign::Open(server.url.clone()));
        for _ in 0..chance.random_range(MESSAGES_BEFORE_A_KILL) {
            accepted.push(timeout(PATIENCE, receiver.recv()).await.expect("messages are accepted").expect("writers run"));
        }
        if let Some(name) = MOMENTS[chance.random_range(0..MOMENTS.len())] {
            watched.event(name).await;
        }
        server.kill().await;
        sign.send_replace(Sign::Closed);
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
    for writer in writers {
        timeout(PATIENCE, writer).await.expect("the writer ends").expect("the writer does not panic");
    }
    drop(sender);
    while let Some(last) = receiver.recv().await {
        accepted.push(last);
    }
    figures.accepted = accepted.len();
    // At the last kill, nobody talks any more.
    server.kill().await;
    figures.kills += 1;
    let server = premises.start().await;
    for room in ROOMS {
        look_into(&server, room, accepted.iter().filter(|message| message.room == room), &mut figures).await;
    }
    server.stop().await;
    let verified = premises.run(&["history", "verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    figures
}

fn premises() -> Premises {
    let guild = |room| if room == "attic" { "upstairs" } else { "home" };
    let rooms = ROOMS.map(|room| format!("{{ id = \"{room}\", guild = \"{}\", companions = [\"aria\"] }}", guild(room)));
    Premises::new()
        .without_limits()
        .with("models.rehearsal.pace", PACES[1])
        // Somebody always says more. Each reply is begun again once.
        .with("reply.replan_within_secs", "0.5")
        .with_companion("aria", QUICK)
        .with("console.rooms", &format!("[{}]", rooms.join(", ")))
}

fn line(writer: usize, number: usize) -> String {
    if number.is_multiple_of(3) { format!("aria, what of w{writer}n{number}?") } else { format!("there was w{writer}n{number}") }
}

/// Compares the accepted messages of a room with its history, and waits until every message is settled and every reply is made.
async fn look_into(server: &Server, room: &str, accepted: impl Iterator<Item = &Accepted>, figures: &mut Figures) {
    let accepted: BTreeMap<u64, &str> = accepted.map(|message| (message.seq, &*message.text)).collect();
    let history = server.history(room).await;
    assert!(history.is_sorted_by_key(|(seq, ..)| *seq), "{room} is out of order");
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for (seq, from, text) in history.iter().filter(|(_, from, _)| from != "aria") {
        *times.entry(text).or_default() += 1;
        if accepted.get(seq) != Some(&text.as_str()) {
            figures.lost.push(format!("{room}: {seq} is {text:?}, but {:?} was accepted", accepted.get(seq)));
        }
        let number = text.split('n').next_back().and_then(|number| number.trim_end_matches('?').parse().ok()).expect("a number");
        if newest.insert(from, number).is_some_and(|before| before >= number) {
            figures.lost.push(format!("{room}: {text:?} is out of its writer's order"));
        }
    }
    figures
        .lost
        .extend(accepted.values().filter(|text| !times.contains_key(*text)).map(|text| format!("{room}: {text:?} is lost")));
    figures
        .duplicated
        .extend(times.iter().filter(|(_, times)| **times > 1).map(|(text, _)| format!("{room}: {text:?} is there twice")));

    let mut ledger = Ledger { waiting: accepted.values().map(|text| (*text).to_owned()).collect(), ..Ledger::default() };
    let mut watch = server.watch(room, Some(0)).await;
    // After that time, unsettled messages count as undecided.
    let _ = timeout(PATIENCE.min(Duration::from_secs(60)), ledger.fill(&mut watch, server, room)).await;
    figures.replies += ledger.made.len();
    figures.duplicated.extend(ledger.duplicated.iter().map(|fault| format!("{room}: {fault}")));
    figures.undecided.extend(ledger.waiting.iter().map(|text| format!("{room}: nothing was decided about {text:?}")));
    figures.undecided.extend(ledger.owed.keys().map(|ticket| format!("{room}: the reply {ticket} was never made")));
}

/// The decisions and replies in a room.
#[derive(Default)]
struct Ledger {
    /// Messages without a decision.
    waiting: BTreeSet<String>,
    /// Settled messages.
    settled: BTreeSet<String>,
    /// Replies owed, and the messages that they answer.
    owed: BTreeMap<u64, BTreeSet<String>>,
    /// Replies made.
    made: BTreeSet<u64>,
    /// The numbers of all attempts.
    tickets: BTreeSet<u64>,
    duplicated: Vec<String>,
}

impl Ledger {
    /// Reads events until every message is settled and every reply is made. Then it sends a last message and reads on to it, so that all earlier
    /// events have been read.
    async fn fill(&mut self, watch: &mut Watch, server: &Server, room: &str) {
        while !self.waiting.is_empty() || !self.owed.is_empty() {
            self.apply(&watch.next().await.expect("the server runs"));
        }
        let end = server.say(room, "Closer", "so much for that").await;
        loop {
            let event = watch.next().await.expect("the server runs");
            self.apply(&event);
            if event["event"] == "message" && event["seq"] == end {
                return;
            }
        }
    }

    fn apply(&mut self, event: &Value) {
        let ticket = event["ticket"].as_u64();
        match event["event"].as_str().expect("a name") {
            "silence" => self.settle(event),
            "respond" => {
                self.settle(event);
                self.owe(ticket.expect("the reply's number"), texts(event));
            }
            // The next attempt of a reply answers the same messages and those that follow.
            "replanned" => {
                let ticket = ticket.expect("the reply's number");
                let before = self.end(event["replaces"].as_u64(), event);
                let (answered, followed): (BTreeSet<_>, BTreeSet<_>) = texts(event).partition(|text| before.contains(text));
                if answered != before {
                    self.duplicated.push(format!("the reply {ticket} answers other messages than before, {before:?}: {event}"));
                }
                followed.iter().for_each(|text| self.settle_text(text));
                self.owe(ticket, answered.into_iter().chain(followed));
            }
            "statement" => {
                let ticket = ticket.expect("the reply's number");
                self.end(Some(ticket), event);
                self.made.insert(ticket);
            }
            "failed" => drop(self.end(ticket, event)),
            _ => {}
        }
    }

    fn owe(&mut self, ticket: u64, messages: impl Iterator<Item = String>) {
        if !self.tickets.insert(ticket) {
            self.duplicated.push(format!("the number {ticket} is given twice"));
        }
        self.owed.insert(ticket, messages.collect());
    }

    /// An attempt ends: once, with a statement, a failure, or another attempt. Returns the messages that it answers.
    fn end(&mut self, ticket: Option<u64>, event: &Value) -> BTreeSet<String> {
        let ended = ticket.and_then(|ticket| self.owed.remove(&ticket));
        if ended.is_none() {
            self.duplicated.push(format!("the reply {ticket:?} is not owed (any more): {event}"));
        }
        ended.unwrap_or_default()
    }

    fn settle(&mut self, event: &Value) {
        texts(event).for_each(|text| self.settle_text(&text));
    }

    fn settle_text(&mut self, text: &str) {
        // Aria's own statements are among the messages that it answers, but never wait for a decision.
        if self.waiting.remove(text) {
            self.settled.insert(text.to_owned());
        } else if self.settled.contains(text) {
            self.duplicated.push(format!("{text:?} settled twice"));
        }
    }
}

fn texts(event: &Value) -> impl Iterator<Item = String> {
    event["messages"].as_array().expect("texts").iter().filter_map(Value::as_str).map(str::to_owned)
}
