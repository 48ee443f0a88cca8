//! A server that is killed at any moment: while it talks, while it starts, while it is copied, compacted, restored, while somebody is
//! forgotten, a room is deleted, and what is old is.

mod blows;
mod book;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, timeout};

use self::blows::{Blow, Victim};
use self::book::Book;
use crate::harness::{PATIENCE, Premises, Server, chosen};
use crate::processes::gatherings::model::Model;
use crate::processes::gatherings::{DELAYS, Figures, REST, ROOMS, line, look_into};
use crate::processes::{gatherings, writers};

const WRITERS_IN_A_ROOM: usize = 2;
/// What is said while the server lives: little, so that the companions get to talk among themselves, or much.
const MESSAGES_IN_A_LIFE: std::ops::RangeInclusive<usize> = 1..=6;
const MESSAGES_IN_A_BURST: std::ops::RangeInclusive<usize> = 20..=60;
const BURSTS: f64 = 0.1;
/// The room in which somebody is forgotten again and again.
const GALLERY: &str = "gallery";
/// The guild of that room.
const MUSEUM: &str = "museum";

#[tokio::test]
async fn whatever_a_kill_interrupts_nothing_is_lost_and_nothing_doubled() {
    let outcome = ordeal(&Blow::EACH, 9, 3, Answers::Often).await;

    outcome.assert_faultless();
}

/// Nothing but the kills could keep a reply from being made here, and they do not.
#[tokio::test]
async fn where_the_model_always_answers_every_reply_that_is_owed_is_made() {
    let outcome = ordeal(&[Blow::Talk, Blow::Start, Blow::Talk], 5, 7, Answers::Always).await;

    outcome.assert_faultless();
    outcome.assert_every_reply_made();
}

/// `cargo test --release --test it -- --ignored --nocapture thousand_kills` prints what came of it, after half an hour or less. `KILLS` is
/// another number of kills, `SEED` another choice of moments.
#[tokio::test]
#[ignore = "takes half an hour"]
async fn a_thousand_kills_lose_nothing_and_double_nothing() {
    let outcome = ordeal(&[], chosen("KILLS", 1000), chosen("SEED", 1), Answers::Often).await;

    println!("{outcome}");
    outcome.assert_faultless();
}

/// `cargo test --release --test it -- --ignored --nocapture hundred_kills_keep_no_reply` prints what came of it, after some minutes; `KILLS`
/// and `SEED` as above.
#[tokio::test]
#[ignore = "takes some minutes"]
async fn a_hundred_kills_keep_no_reply_from_being_made_where_the_model_always_answers() {
    let outcome = ordeal(&[], chosen("KILLS", 100), chosen("SEED", 1), Answers::Always).await;

    println!("{outcome}");
    outcome.assert_faultless();
    outcome.assert_every_reply_made();
}

/// Whether the model answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// It is the built-in one.
    Always,
    /// In most lives it is another one, which fails now and then.
    Often,
}

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    kills: BTreeMap<&'static str, u64>,
    commands_killed: u64,
    /// Starts at which the store was read through because its log looked damaged.
    doubts: usize,
    book: Book,
    figures: Figures,
    took: Duration,
}

impl Outcome {
    fn kills(&self) -> u64 {
        self.kills.values().sum()
    }

    fn assert_every_reply_made(&self) {
        let Figures { owed, statements, failed, .. } = self.figures;
        assert_eq!((failed, statements), (0, owed), "{self}");
    }

    fn assert_faultless(&self) {
        let Figures { lost, doubled, broken, unrest, .. } = &self.figures;
        let faults = [&self.book.lost, &self.book.doubled, lost, doubled, broken, unrest];
        assert!(faults.iter().all(|faults| faults.is_empty()), "{self}\n{faults:#?}");
        // A kill leaves no marks that look like damage.
        assert_eq!(self.doubts, 0, "{self}");
        assert!(self.book.accepted() > 0 && self.figures.statements > 0, "{self}");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { lost, doubled, owed, statements, failed, rounds, turn_rounds, unanswered, broken, unrest, .. } =
            &self.figures;
        let moments: Vec<_> = self.kills.iter().map(|(moment, times)| format!("{moment} {times}")).collect();
        writeln!(f, "kills of the server {} ({}), of commands {}", self.kills(), moments.join(", "), self.commands_killed)?;
        writeln!(f, "messages {}", self.book)?;
        writeln!(f, "replies owed {owed}, made {statements}, given up with the failure on record {failed}")?;
        let (lost, doubled) = (lost.len() + self.book.lost.len(), doubled.len() + self.book.doubled.len());
        writeln!(f, "lost {lost}, doubled {doubled}; in {} s", self.took.as_secs())?;
        writeln!(f, "starts at which the log looked damaged {}", self.doubts)?;
        write!(f, "rounds {rounds} (opened by a statement {turn_rounds}), questions without an answer {unanswered}; ")?;
        write!(f, "broken rules {}, rooms without rest {}", broken.len(), unrest.len())
    }
}

/// Kills the server so many times, in each of these ways first and then as the seed chooses, and looks at what is left after each.
async fn ordeal(first: &[Blow], kills: u64, seed: u64, answers: Answers) -> Outcome {
    let began = Instant::now();
    let mut chance = StdRng::seed_from_u64(seed);
    let mut first = first.iter().copied().peekable();
    let model = Model::start().await;
    let mut premises = premises();
    let mut outcome = Outcome::default();
    let sign = watch::Sender::new(writers::Sign::Closed);
    let words = Arc::new(Semaphore::new(0));
    let (tell, mut told) = mpsc::unbounded_channel();
    let writers: Vec<_> = (0..ROOMS.len() * WRITERS_IN_A_ROOM)
        .map(|writer| (ROOMS[writer % ROOMS.len()].0, writer))
        .map(|(room, writer)| tokio::spawn(writers::write(writer, room, line, words.clone(), sign.subscribe(), tell.clone())))
        .collect();
    let mut server = premises.start().await;
    let mut told_at = 0;
    // Two more come in the end.
    while outcome.kills() + 2 < kills || first.peek().is_some() {
        sign.send_replace(writers::Sign::Open(server.url.clone()));
        let is_burst = chance.random_bool(BURSTS);
        words.add_permits(chance.random_range(if is_burst { MESSAGES_IN_A_BURST } else { MESSAGES_IN_A_LIFE }));
        let witnesses = outcome.book.witnesses(&server, &ROOMS.map(|(room, ..)| room)).await;
        let blow = first.next().unwrap_or_else(|| Blow::any(&mut chance));
        let mut victim = Victim { premises: &premises, server, chance: &mut chance, outcome: &mut outcome };
        blow.strike(&mut victim).await;
        let Victim { server: dying, .. } = victim;
        let log = dying.kill().await;
        outcome.doubts += log.lines().filter(|line| line.contains("a crash may have left the database so")).count();
        *outcome.kills.entry(blow.name()).or_default() += 1;
        sign.send_replace(writers::Sign::Closed);
        outcome.book.hear(witnesses).await;
        change_settings(&mut premises, &model, answers, &mut chance);
        blow.aftermath(&premises, &mut chance, &mut outcome).await;
        server = premises.start().await;
        while let Ok(accepted) = told.try_recv() {
            outcome.book.enter(accepted);
        }
        outcome.book.compare(&server, &mut chance).await;
        blow.verdict(&premises, &server, &mut outcome).await;
        if outcome.kills() / 50 > told_at {
            told_at = outcome.kills() / 50;
            eprintln!("{} kills, {} s: {}", outcome.kills(), began.elapsed().as_secs(), outcome.book);
        }
    }
    sign.send_replace(writers::Sign::Over(server.url.clone()));
    words.add_permits(writers.len());
    for writer in writers {
        timeout(REST, writer).await.expect("the writer ends").expect("the writer is well");
    }
    drop(tell);
    while let Some(accepted) = told.recv().await {
        outcome.book.enter(accepted);
    }
    rest(server, &premises, &model, &mut outcome).await;
    outcome.took = began.elapsed();
    outcome
}

/// Two last kills: of a server in whose rooms no person says anything any more, and of one that found them at rest.
async fn rest(server: Server, premises: &Premises, model: &Model, outcome: &mut Outcome) {
    server.kill().await;
    model.recover();
    let server = premises.start().await;
    for (room, ..) in ROOMS {
        // One without rest is told of below.
        let _ = timeout(REST, server.rest(room)).await;
    }
    server.kill().await;
    *outcome.kills.entry("in the end").or_default() += 2;
    let server = premises.start().await;
    for (room, _, companions) in ROOMS {
        let accepted = outcome.book.accepted_in(room);
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
    gatherings::premises().with("console.rooms", &format!("[{}]", rooms.join(", ")))
}

/// A JSON object of texts and lists, as TOML writes it.
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
    premises.set("models.rehearsal.pace", if chance.random_bool(0.5) { "0" } else { "0.02" });
}

/// Waits until a program has gone so far.
async fn a_while(chance: &mut StdRng, longest_ms: u64) {
    // Not waiting for anything by the clock: at what moment something is interrupted is all that this chooses.
    let moment = Duration::from_micros(chance.random_range(0..=longest_ms * 1000));
    let _ = timeout(moment, std::future::pending::<()>()).await;
}

/// Waits for something that has to happen.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("it happens")
}
