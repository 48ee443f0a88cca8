//! The real program, killed: at any moment of a talk, a start or other work, at every phase of a command, and between a question and its answer.
//!
//! One driver kills a server again and again ([`run_trial`]), while people talk in several rooms. A ledger holds what its clients were told. After
//! each kill it is compared with the history, and in the end each room's record is checked against the rules.

mod answers;
mod commands;
mod ledger;
mod people;
mod points;
pub mod record;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use self::ledger::Ledger;
use self::people::People;
use self::points::{KillPoint, Target};
use self::record::{Counts, Record};
use crate::harness::model::{Answer, Model, prompt};
use crate::harness::{Premises, Server, parameter};

/// Two rooms of three companions, in one guild, one of five, and one of a companion that is alone.
const ROOMS: [(&str, &str, &[&str]); 4] = [
    ("plaza", "home", &["aria", "bruno", "cleo"]),
    ("patio", "home", &["aria", "bruno", "cleo"]),
    ("attic", "upstairs", &["aria", "bruno", "cleo", "dora", "emil"]),
    ("nook", "upstairs", &["aria"]),
];
/// The room in which a person is forgotten again and again, and its guild.
const GALLERY: &str = "gallery";
const MUSEUM: &str = "museum";
/// The delays in seconds of a selected companion before it speaks.
const DELAYS: [&str; 3] = ["0.01", "0.05", "0.3"];
/// The paces of the built-in model: without delay, with a short one, and so slow that kills often hit questions and replies, and that some replies
/// lose the floor.
const PACES: [&str; 3] = ["0", "0.02", "0.6"];
/// The number of statements in a row that companions may make.
const STREAK: u64 = 3;
/// The time limit for a room to come to rest.
const REST: Duration = Duration::from_secs(60);

#[tokio::test]
async fn whatever_a_kill_interrupts_nothing_is_lost_or_duplicated() {
    let outcome = run_trial(&KillPoint::each(), 0, 3, Answers::Often).await;

    outcome.assert_faultless();
}

/// Here only the kills could prevent a reply.
#[tokio::test]
async fn every_owed_reply_is_made_if_the_model_always_answers() {
    let outcome = run_trial(&[KillPoint::Talk, KillPoint::Load, KillPoint::Talk], 0, 7, Answers::Always).await;

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
    kills: BTreeMap<String, u64>,
    commands_killed: u64,
    /// The number of starts that read the whole store because its log looked damaged.
    suspected_damage: usize,
    ledger: Ledger,
    counts: Counts,
    duration: Duration,
}

impl Outcome {
    fn kills(&self) -> u64 {
        self.kills.values().sum()
    }

    fn assert_every_reply_made(&self) {
        let Counts { owed, statements, failed, cancelled, closed, .. } = self.counts;
        assert_eq!((failed, statements + cancelled + closed), (0, owed), "{self}");
    }

    fn assert_faultless(&self) {
        assert!(self.ledger.faults.are_none(), "{self}\n{:#?}", self.ledger.faults);
        // A kill must leave nothing that looks like damage.
        assert_eq!(self.suspected_damage, 0, "{self}");
        let Counts { turn_rounds, statements, .. } = self.counts;
        assert!(self.ledger.accepted() > 0 && turn_rounds > 0 && statements > 0, "{self}");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kills of the server {} {:?}, of commands {}", self.kills(), self.kills, self.commands_killed)?;
        writeln!(f, "messages {}", self.ledger)?;
        writeln!(f, "{:?}", self.counts)?;
        writeln!(f, "{}; in {} s", self.ledger.faults, self.duration.as_secs())?;
        write!(f, "starts at which the log looked damaged {}", self.suspected_damage)
    }
}

/// Kills the server `kills` times, first at each of these points and then as the seed chooses, and checks the store after each kill.
async fn run_trial(first: &[KillPoint], kills: u64, seed: u64, answers: Answers) -> Outcome {
    let start = Instant::now();
    let mut chance = StdRng::seed_from_u64(seed);
    let mut first = first.iter().copied().peekable();
    let (model, is_healthy) = varied_model().await;
    let mut premises = premises();
    let mut outcome = Outcome::default();
    let mut people = People::arrive();
    let mut server = premises.start().await;
    let mut reported_at = 0;
    // Two more kills follow at the end.
    while outcome.kills() + 2 < kills || first.peek().is_some() {
        let observers = outcome.ledger.observers(&server, &ROOMS.map(|(room, ..)| room)).await;
        let point = first.next().unwrap_or_else(|| KillPoint::any(&mut chance));
        let mut target = Target { premises: &premises, server, people: &mut people, chance: &mut chance, outcome: &mut outcome };
        point.approach(&mut target).await;
        let log = target.server.kill().await;
        outcome.suspected_damage += log.lines().filter(|line| line.contains("a crash may have left the database")).count();
        *outcome.kills.entry(format!("{point:?}")).or_default() += 1;
        people.pause();
        outcome.ledger.collect(observers).await;
        change_settings(&mut premises, &model, answers, &mut chance);
        point.kill_commands(&premises, &mut chance, &mut outcome).await;
        server = premises.start().await;
        people.accepted().for_each(|accepted| outcome.ledger.add(accepted));
        outcome.ledger.compare(&server, &mut chance).await;
        point.check(&premises, &server, &mut outcome).await;
        if outcome.kills() / 50 > reported_at {
            reported_at = outcome.kills() / 50;
            eprintln!("{} kills, {} s: {}", outcome.kills(), start.elapsed().as_secs(), outcome.ledger);
        }
    }
    people.leave(&server).await.into_iter().for_each(|accepted| outcome.ledger.add(accepted));
    premises.set("models.rehearsal.pace", PACES[0]);
    // The last two kills: one after people stopped talking, and one with all rooms at rest.
    server.kill().await;
    is_healthy.store(true, Ordering::SeqCst);
    let server = premises.start().await;
    for (room, ..) in ROOMS {
        // A room that does not come to rest is reported below.
        let _ = timeout(REST, server.rest(room)).await;
    }
    server.kill().await;
    *outcome.kills.entry("AtTheEnd".to_owned()).or_default() += 2;
    let server = premises.start().await;
    for (room, _, companions) in ROOMS {
        check_record(&server, room, companions, &mut outcome).await;
    }
    server.stop().await;
    premises.run(&["history", "verify"]).await.exits_with(0);
    outcome.duration = start.elapsed();
    outcome
}

/// Waits until a room is at rest, and checks its record against the rules.
async fn check_record(server: &Server, room: &str, companions: &[&str], outcome: &mut Outcome) {
    let Ok(state) = timeout(REST, server.rest(room)).await else {
        let state = server.get(&format!("/api/rooms/{room}/state")).await;
        return outcome.ledger.faults.restless.push(format!("{room}: {state}"));
    };
    let mut record = Record::of(server, room, &state, companions, STREAK, outcome.counts).await;
    record.compare_accepted(&outcome.ledger.accepted_in(room));
    outcome.counts = record.counts;
    outcome.ledger.faults.add(room, record.faults);
}

fn premises() -> Premises {
    let room = |room: &str, guild: &str, companions: &[&str]| {
        format!("{{ id = \"{room}\", guild = \"{guild}\", companions = {companions:?} }}")
    };
    let mut rooms = ROOMS.map(|(id, guild, companions)| room(id, guild, companions)).to_vec();
    rooms.push(room(GALLERY, MUSEUM, &["aria"]));
    let levels = [("aria", "average"), ("bruno", "quiet"), ("cleo", "very_eager"), ("dora", "eager"), ("emil", "very_quiet")];
    let file = |level: &str| format!("text_lull_timeout = 0.05\ninterjection = \"{level}\"\n");
    let premises = levels.iter().fold(Premises::new(), |premises, (id, level)| premises.with_companion(id, &file(level)));
    premises
        .without_limits()
        .with("console.rooms", &format!("[{}]", rooms.join(", ")))
        .with("turn_taking.turn_delay_secs", DELAYS[0])
        .with("turn_taking.max_companion_streak", &STREAK.to_string())
        .with("turn_taking.floor_timeout_secs", "1.4")
        .with("closing.reopen_after", "3")
        .with("models.breaker.failures", "1000")
        .with("models.pool.max_attempts", "1")
        .with("models.side.guild_max_concurrent", "64")
        .with("models.side.max_concurrent", "64")
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

/// A model with varied votes, which ends conversations. It fails now and then, until the flag is set.
async fn varied_model() -> (Model, Arc<AtomicBool>) {
    let (asked, is_healthy) = (AtomicUsize::new(0), Arc::<AtomicBool>::default());
    let recovered = Arc::clone(&is_healthy);
    // The answer depends on the number of the request alone. The divisors are coprime, so that every combination occurs sooner or later.
    let answer = move |body: &Value| {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        let is_vote = body["messages"].to_string().contains("Answer with one JSON object");
        if !recovered.load(Ordering::SeqCst) && (number % 61 == 60 || !is_vote && number.is_multiple_of(11)) {
            return Answer::Refused(500, "not now".to_owned());
        }
        let decision = if number % 5 < 3 { "YES" } else { "NO" };
        if !is_vote && prompt(body).contains("Would you like to respond?") {
            return format!("It goes by the number.\n{decision}").into();
        }
        if !is_vote {
            return format!("I have said {number} things, and each was another one.").into();
        }
        let closing = match number % 29 {
            7 | 8 => "pre-closing",
            17 => "closing",
            25 => "terminal",
            _ => "none",
        };
        let vote = json!({
            "reason": "It goes by the number.",
            "decision": decision,
            "importance": number % 11,
            "selected": number % 7 == 3,
            "closing": closing,
        });
        vote.to_string().into()
    };
    (Model::start(answer).await, is_healthy)
}
