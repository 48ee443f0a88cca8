//! A server that is killed at any moment: during a talk, a start, a backup, a compaction or a restore, and while a person is forgotten, a room is
//! deleted, or old events expire.

mod kill_points;
mod ledger;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, timeout};

use self::kill_points::{KillPoint, Target};
use self::ledger::Ledger;
use crate::harness::{PATIENCE, Premises, Server, parameter};
use crate::processes::round_kills::model::Model;
use crate::processes::round_kills::record::Counts;
use crate::processes::round_kills::{DELAYS, Figures, PACES, REST, ROOMS, line, look_into};
use crate::processes::{round_kills, writers};

const WRITERS_IN_A_ROOM: usize = 2;
/// The number of messages while the server runs: few, so that the companions talk among themselves, or many.
const MESSAGES_IN_A_LIFE: std::ops::RangeInclusive<usize> = 1..=6;
const MESSAGES_IN_A_BURST: std::ops::RangeInclusive<usize> = 20..=60;
const BURSTS: f64 = 0.1;
/// The room in which a person is forgotten again and again.
const GALLERY: &str = "gallery";
/// The guild of that room.
const MUSEUM: &str = "museum";

#[tokio::test]
async fn whatever_a_kill_interrupts_nothing_is_lost_or_duplicated() {
    let outcome = run_trial(&KillPoint::EACH, 9, 3, Answers::Often).await;

    outcome.assert_faultless();
}

/// Here only the kills could prevent a reply.
#[tokio::test]
async fn every_owed_reply_is_made_if_the_model_always_answers() {
    let outcome = run_trial(&[KillPoint::Talk, KillPoint::Start, KillPoint::Talk], 5, 7, Answers::Always).await;

    outcome.assert_faultless();
    outcome.assert_every_reply_made();
}

/// `cargo test --release --test it -- --ignored --nocapture thousand_kills` prints the result, after half an hour or less. `KILLS` sets the
/// number of kills, `SEED` the choice of moments.
#[tokio::test]
#[ignore = "takes half an hour"]
async fn a_thousand_kills_lose_and_duplicate_nothing() {
    let outcome = run_trial(&[], parameter("KILLS", 1000), parameter("SEED", 1), Answers::Often).await;

    println!("{outcome}");
    outcome.assert_faultless();
}

/// `cargo test --release --test it -- --ignored --nocapture hundred_kills_prevent_no_reply` prints the result, after some minutes. `KILLS`
/// and `SEED` are as above.
#[tokio::test]
#[ignore = "takes some minutes"]
async fn a_hundred_kills_prevent_no_reply_if_the_model_always_answers() {
    let outcome = run_trial(&[], parameter("KILLS", 100), parameter("SEED", 1), Answers::Always).await;

    println!("{outcome}");
    outcome.assert_faultless();
    outcome.assert_every_reply_made();
}

/// Whether the model answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// It is always the built-in model.
    Always,
    /// In most runs of the server it is another model, which fails now and then.
    Often,
}

/// The result of a trial.
#[derive(Default)]
pub struct Outcome {
    kills: BTreeMap<&'static str, u64>,
    commands_killed: u64,
    /// The number of starts that read the whole store because its log looked damaged.
    suspected_damage: usize,
    ledger: Ledger,
    figures: Figures,
    duration: Duration,
}

impl Outcome {
    fn kills(&self) -> u64 {
        self.kills.values().sum()
    }

    fn assert_every_reply_made(&self) {
        let Counts { owed, statements, failed, cancelled, closed, .. } = self.figures.counts;
        assert_eq!((failed, statements + cancelled + closed), (0, owed), "{self}");
    }

    fn assert_faultless(&self) {
        let Figures { lost, duplicated, broken, restless, .. } = &self.figures;
        let faults = [&self.ledger.lost, &self.ledger.duplicated, lost, duplicated, broken, restless];
        assert!(faults.iter().all(|faults| faults.is_empty()), "{self}\n{faults:#?}");
        // A kill must leave nothing that looks like damage.
        assert_eq!(self.suspected_damage, 0, "{self}");
        assert!(self.ledger.accepted() > 0 && self.figures.counts.statements > 0, "{self}");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { lost, duplicated, broken, restless, counts, .. } = &self.figures;
        let moments: Vec<_> = self.kills.iter().map(|(moment, times)| format!("{moment} {times}")).collect();
        writeln!(f, "kills of the server {} ({}), of commands {}", self.kills(), moments.join(", "), self.commands_killed)?;
        writeln!(f, "messages {}", self.ledger)?;
        writeln!(f, "{counts}")?;
        let (lost, duplicated) = (lost.len() + self.ledger.lost.len(), duplicated.len() + self.ledger.duplicated.len());
        writeln!(f, "lost {lost}, duplicated {duplicated}; in {} s", self.duration.as_secs())?;
        writeln!(f, "starts at which the log looked damaged {}", self.suspected_damage)?;
        write!(f, "broken rules {}, rooms not at rest {}", broken.len(), restless.len())
    }
}

/// Kills the server `kills` times, first at each of these points and then as the seed chooses, and checks the store after each kill.
async fn run_trial(first: &[KillPoint], kills: u64, seed: u64, answers: Answers) -> Outcome {
    let start = Instant::now();
    let mut chance = StdRng::seed_from_u64(seed);
    let mut first = first.iter().copied().peekable();
    let model = Model::start().await;
    let mut premises = premises();
    let mut outcome = Outcome::default();
    let sign = watch::Sender::new(writers::Sign::Closed);
    let permits = Arc::new(Semaphore::new(0));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let writers: Vec<_> = (0..ROOMS.len() * WRITERS_IN_A_ROOM)
        .map(|writer| (ROOMS[writer % ROOMS.len()].0, writer))
        .map(|(room, writer)| tokio::spawn(writers::write(writer, room, line, permits.clone(), sign.subscribe(), sender.clone())))
        .collect();
    let mut server = premises.start().await;
    let mut reported_at = 0;
    // Two more kills follow at the end.
    while outcome.kills() + 2 < kills || first.peek().is_some() {
        sign.send_replace(writers::Sign::Open(server.url.clone()));
        let is_burst = chance.random_bool(BURSTS);
        permits.add_permits(chance.random_range(if is_burst { MESSAGES_IN_A_BURST } else { MESSAGES_IN_A_LIFE }));
        let observers = outcome.ledger.observers(&server, &ROOMS.map(|(room, ..)| room)).await;
        let point = first.next().unwrap_or_else(|| KillPoint::any(&mut chance));
        let mut target = Target { premises: &premises, server, chance: &mut chance, outcome: &mut outcome };
        point.approach(&mut target).await;
        let Target { server: current, .. } = target;
        let log = current.kill().await;
        outcome.suspected_damage += log.lines().filter(|line| line.contains("a crash may have left the database")).count();
        *outcome.kills.entry(point.name()).or_default() += 1;
        sign.send_replace(writers::Sign::Closed);
        outcome.ledger.collect(observers).await;
        change_settings(&mut premises, &model, answers, &mut chance);
        point.kill_commands(&premises, &mut chance, &mut outcome).await;
        server = premises.start().await;
        while let Ok(accepted) = receiver.try_recv() {
            outcome.ledger.add(accepted);
        }
        outcome.ledger.compare(&server, &mut chance).await;
        point.check(&premises, &server, &mut outcome).await;
        if outcome.kills() / 50 > reported_at {
            reported_at = outcome.kills() / 50;
            eprintln!("{} kills, {} s: {}", outcome.kills(), start.elapsed().as_secs(), outcome.ledger);
        }
    }
    sign.send_replace(writers::Sign::Over(server.url.clone()));
    permits.add_permits(writers.len());
    for writer in writers {
        timeout(REST, writer).await.expect("the writer ends").expect("the writer does not panic");
    }
    drop(sender);
    while let Some(accepted) = receiver.recv().await {
        outcome.ledger.add(accepted);
    }
    premises.set("models.rehearsal.pace", PACES[0]);
    finish(server, &premises, &model, &mut outcome).await;
    outcome.duration = start.elapsed();
    outcome
}

/// The last two kills: one after people stopped talking, and one with all rooms at rest. Then checks all records.
async fn finish(server: Server, premises: &Premises, model: &Model, outcome: &mut Outcome) {
    server.kill().await;
    model.recover();
    let server = premises.start().await;
    for (room, ..) in ROOMS {
        // `look_into` reports a room that does not come to rest.
        let _ = timeout(REST, server.rest(room)).await;
    }
    server.kill().await;
    *outcome.kills.entry("in the end").or_default() += 2;
    let server = premises.start().await;
    for (room, _, companions) in ROOMS {
        let accepted = outcome.ledger.accepted_in(room);
        look_into(&server, room, companions, &accepted, &mut outcome.figures).await;
    }
    server.stop().await;
    let verified = premises.run(&["history", "verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

fn premises() -> Premises {
    let room = |room: &str, guild: &str, companions: &[&str]| json!({ "id": room, "guild": guild, "companions": companions });
    let mut rooms: Vec<_> = ROOMS.iter().map(|(id, guild, companions)| room(id, guild, companions)).collect();
    rooms.push(room(GALLERY, MUSEUM, &["aria"]));
    let rooms: Vec<_> = rooms.iter().map(inline_table).collect();
    round_kills::premises().with("console.rooms", &format!("[{}]", rooms.join(", ")))
}

/// A JSON object of strings and lists as a TOML inline table.
fn inline_table(object: &serde_json::Value) -> String {
    let fields: Vec<_> = object.as_object().expect("an object").iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

fn change_settings(premises: &mut Premises, model: &Model, answers: Answers, chance: &mut StdRng) {
    premises.set("turn_taking.turn_delay_secs", DELAYS[chance.random_range(0..DELAYS.len())]);
    // The built-in model always answers, the other one often.
    let is_other = chance.random_bool(0.7) && answers == Answers::Often;
    let (url, name) = if is_other { (&*model.url, "any") } else { ("", "") };
    premises.set("models.side.base_url", url);
    premises.set("models.side.model", name);
    premises.set("models.rehearsal.pace", PACES[chance.random_range(0..PACES.len())]);
}

/// Waits for a random time up to `longest_ms`.
async fn random_wait(chance: &mut StdRng, longest_ms: u64) {
    // This is no wait for a result. It only chooses the moment of a kill.
    let moment = Duration::from_micros(chance.random_range(0..=longest_ms * 1000));
    let _ = timeout(moment, std::future::pending::<()>()).await;
}

/// Waits with the limit of all waits.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it ends in time")
}
