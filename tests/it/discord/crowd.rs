//! Load tests: many guilds on several shards, a server that is killed, and a Discord with many kinds of faults.

mod audit;
mod downtime;
mod grown;
mod hanging;
mod hostile_texts;
mod nemesis;
mod nodes;
mod secrets;
mod town;

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::audit::Audit;
use self::nemesis::Nemesis;
use self::town::{Size, Town};
use crate::harness::Server;

/// Messages between two faults, in the ten-minute test.
const MESSAGES_BETWEEN_FAULTS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn every_message_is_recorded_and_answered_once_through_faults_and_kills() {
    let size = Size { guilds: 6, shards: 2 };
    let mut run = LoadRun::begin(size, 1).await;

    for _ in 0..3 {
        for _ in 0..20 {
            run.town.say();
        }
        run.nemesis.inject(&run.town);
        run.some_posts().await;
        run.kill().await;
    }

    let audit = run.end().await;
    audit.assert_faultless();
}

/// `cargo test --release --test it -- --ignored --nocapture ten_minutes_of_faults` prints the results after eleven minutes.
/// `SECS`, `RATE` (messages a second), `GUILDS`, `SHARDS` and `SEED` change it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes eleven minutes"]
async fn ten_minutes_of_faults_lose_and_duplicate_nothing_in_two_hundred_guilds() {
    let size = Size { guilds: number("GUILDS", 200) as usize, shards: number("SHARDS", 4) };
    let mut run = LoadRun::begin(size, number("SEED", 1)).await;
    let began = Instant::now();

    let mut ticks = interval(Duration::from_secs_f64(1.0 / number("RATE", 20) as f64));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while began.elapsed() < Duration::from_secs(number("SECS", 600)) {
        ticks.tick().await;
        run.town.say();
        if run.town.messages.len() % MESSAGES_BETWEEN_FAULTS == 0 {
            run.nemesis.inject(&run.town);
        }
    }

    let audit = run.end().await;
    println!("{audit}");
    audit.assert_faultless();
}

/// `cargo test --release --test it -- --ignored --nocapture fifty_kills_under_load` prints the results after some minutes.
/// `KILLS`, `RATE`, `GUILDS`, `SHARDS` and `SEED` change it; `FAULTS=1` lets Discord fail as well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes some minutes"]
async fn fifty_kills_under_load_lose_and_duplicate_nothing() {
    let size = Size { guilds: number("GUILDS", 200) as usize, shards: number("SHARDS", 4) };
    let mut run = LoadRun::begin(size, number("SEED", 1)).await;

    let mut ticks = interval(Duration::from_secs_f64(1.0 / number("RATE", 20) as f64));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for _ in 0..number("KILLS", 50) {
        for _ in 0..run.rng.random_range(10..100) {
            ticks.tick().await;
            run.town.say();
        }
        if number("FAULTS", 0) > 0 {
            run.nemesis.inject(&run.town);
        }
        run.kill().await;
    }

    let audit = run.end().await;
    println!("{audit}");
    audit.assert_faultless();
}

/// A town, a server for it, and the faults of both.
struct LoadRun {
    town: Town,
    nemesis: Nemesis,
    premises: crate::harness::Premises,
    server: Option<Server>,
    kills: u32,
    rng: StdRng,
}

impl LoadRun {
    async fn begin(size: Size, seed: u64) -> Self {
        let town = Town::new(size, seed).await;
        let premises = town.premises();
        let server = premises.start().await;
        town.load_rooms().await;
        let (nemesis, rng) = (Nemesis::new(seed), StdRng::seed_from_u64(seed));
        Self { town, nemesis, premises, server: Some(server), kills: 0, rng }
    }

    /// Waits for one to three more posts.
    async fn some_posts(&mut self) {
        let more = self.town.discord.posts().len() + self.rng.random_range(1..=3);
        self.town.discord.wait_for("some posts", |state| state.journal.posts.len() >= more).await;
    }

    /// Kills the server as `kill -9` does, and starts it again.
    async fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.kill().await;
        }
        self.kills += 1;
        self.server = Some(self.premises.start().await);
    }

    /// Lifts all faults, waits for the last messages, and compares the record with what Discord sent and received.
    async fn end(mut self) -> Audit {
        self.nemesis.lift_all(&self.town.discord);
        let shards = usize::try_from(self.town.size.shards).expect("a few");
        self.town.discord.sessions(shards).await;
        let server = self.server.take().expect("a running server");
        self.final_messages(&server).await;
        let audit = Audit::of(&self.town, &server).await;
        let (identifies, resumes, replayed, requests, refused) = self.town.discord.look(|state| {
            let journal = &state.journal;
            let accepted = || journal.resumes.iter().filter_map(|resume| resume.replayed);
            let refused = journal.refused().count();
            (journal.identifies.len(), accepted().count(), accepted().sum::<usize>(), journal.requests.len(), refused)
        });
        println!("faults: {:?}", self.nemesis.counts);
        println!(
            "kills {}, IDENTIFYs {identifies}, RESUMEs {resumes} ({replayed} events replayed), requests {requests}, refused {refused}",
            self.kills
        );
        server.stop().await;
        self.premises.run(&["history", "verify"]).await.exits_with(0);
        audit
    }

    /// Sends a final message in every channel. Once it is on record, every earlier message was received, or never will be.
    async fn final_messages(&mut self, server: &Server) {
        for (channel, id) in self.town.final_messages() {
            let mut watch = server.watch(&format!("discord:{channel}"), Some(0)).await;
            while watch.event("message").await["id"] != id.to_string() {}
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
