//! The points at which a kill hits, and what must be true afterwards.

use std::future::pending;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::ledger::Ledger;
use super::people::People;
use super::{GALLERY, MUSEUM, Outcome, ROOMS};
use crate::harness::{PATIENCE, Premises, Server, ran};

/// The number of messages while the server runs: few, so that the companions talk among themselves, or many.
const MESSAGES_IN_A_LIFE: RangeInclusive<usize> = 1..=6;
const MESSAGES_IN_A_BURST: RangeInclusive<usize> = 20..=60;
const BURSTS: f64 = 0.1;
/// Under load, everybody sends one message after the other, and this many are accepted before the kill.
const MESSAGES_UNDER_LOAD: RangeInclusive<usize> = 5..=60;
const LONGEST_TALK: Duration = Duration::from_millis(1_200);
/// The approximate time for a start or a command.
const START_MS: u64 = 500;
/// The approximate time for a backup, forgetting a person, or deleting a room.
const WORK_MS: u64 = 60;
/// The events at which a talk may be interrupted, and how many more may pass before it is.
const MOMENTS: [&str; 11] = [
    "round_opened",
    "evaluate",
    "decision",
    "round",
    "held_selected",
    "respond",
    "replanning",
    "replanned",
    "failed",
    "statement",
    "closing",
];
const EVENTS_AFTER: RangeInclusive<usize> = 0..=6;

/// The point at which the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillPoint {
    /// During a talk.
    Talk,
    /// While everybody sends as much as they can.
    Load,
    /// During a talk. Then several starts are killed, some as soon as the server is ready.
    Start,
    /// While a backup is made.
    Backup,
    /// While a person is forgotten.
    Forgetting,
    /// While a room is deleted.
    Deletion,
    /// During a talk. Then `history compact` is killed.
    Compaction,
    /// After a backup. Then `history restore` is killed.
    Restore,
    /// Before a person is forgotten. Then `history forget` is killed.
    ForgettingOffline,
    /// With a room to delete. Then `history expire` is killed.
    Expiry,
}

/// The server to kill, and what a kill point needs.
pub struct Target<'a> {
    pub premises: &'a Premises,
    pub server: Server,
    pub people: &'a mut People,
    pub chance: &'a mut StdRng,
    pub outcome: &'a mut Outcome,
}

impl KillPoint {
    /// Each, with its share in a long trial in percent.
    const SHARES: [(Self, u32); 10] = [
        (Self::Talk, 36),
        (Self::Load, 15),
        (Self::Start, 19),
        (Self::Backup, 6),
        (Self::Forgetting, 6),
        (Self::Deletion, 6),
        (Self::Compaction, 5),
        (Self::Restore, 3),
        (Self::ForgettingOffline, 2),
        (Self::Expiry, 2),
    ];

    pub fn each() -> Vec<Self> {
        Self::SHARES.map(|(point, _)| point).to_vec()
    }

    /// Chooses at random.
    pub fn any(chance: &mut StdRng) -> Self {
        Self::SHARES.choose_weighted(chance, |(_, share)| *share).expect("there are shares").0
    }

    /// Brings the server to the point at which it is killed.
    pub async fn approach(self, target: &mut Target<'_>) {
        let Target { premises, server, people, chance, outcome } = target;
        let is_burst = chance.random_bool(BURSTS);
        people.talk(server, chance.random_range(if is_burst { MESSAGES_IN_A_BURST } else { MESSAGES_IN_A_LIFE }));
        match self {
            Self::Talk | Self::Start | Self::Compaction => talk(server, chance).await,
            Self::Load => {
                people.talk(server, 1_000_000);
                for _ in 0..chance.random_range(MESSAGES_UNDER_LOAD) {
                    outcome.ledger.add(people.next_accepted().await);
                }
                talk(server, chance).await;
            }
            Self::Backup => {
                server.begin(Method::POST, "/api/backup", Some(json!({ "to": backup_file(premises) })));
                random_wait(chance, WORK_MS).await;
            }
            Self::Restore => {
                talk(server, chance).await;
                let to = json!({ "to": backup_file(premises) });
                server.done(Method::POST, "/api/backup", Some(to)).await;
            }
            Self::Forgetting => {
                let count = say_secrets(server).await;
                server.begin(Method::POST, "/api/forget", Some(forget_request()));
                random_wait(chance, WORK_MS).await;
                outcome.ledger.forgotten += count;
            }
            Self::ForgettingOffline => outcome.ledger.forgotten += say_secrets(server).await,
            Self::Expiry => {
                outcome.ledger.rooms += 1;
                fill_archive(server, &room("shelf", &outcome.ledger)).await;
            }
            Self::Deletion => {
                outcome.ledger.rooms += 1;
                let tent = room("tent", &outcome.ledger);
                make_tent(server, &tent).await;
                server.begin(Method::DELETE, &format!("/api/rooms/{tent}"), None);
                random_wait(chance, WORK_MS).await;
            }
        }
    }

    /// Starts and kills commands, before the next server starts.
    pub async fn kill_commands(self, premises: &Premises, chance: &mut StdRng, outcome: &mut Outcome) {
        match self {
            Self::Start => {
                for _ in 0..chance.random_range(1..=4) {
                    match chance.random_bool(0.25) {
                        true => drop(premises.start().await.kill().await),
                        false => kill_within(premises.command(&[]), chance, START_MS).await,
                    }
                    *outcome.kills.entry("AtStart".to_owned()).or_default() += 1;
                }
            }
            Self::Compaction => {
                kill_within(premises.command(&["history", "compact"]), chance, START_MS).await;
                outcome.commands_killed += 1;
            }
            Self::ForgettingOffline => {
                let line = ["history", "forget", "--guild", MUSEUM, "--person", "Vera", "--yes"];
                kill_within(premises.command(&line), chance, START_MS).await;
                outcome.commands_killed += 1;
            }
            Self::Expiry => {
                let line = ["history", "expire", "--guild", ARCHIVE, "--everything", "--yes"];
                kill_within(premises.command(&line), chance, START_MS).await;
                outcome.commands_killed += 1;
                premises.verified_events().await;
            }
            Self::Restore => {
                let backup = backup_file(premises);
                let elsewhere = premises.path().join("elsewhere");
                let in_elsewhere = |line: &[&str]| {
                    let mut command = premises.command(line);
                    command.env("TERTULIA__STORAGE__PATH", &elsewhere);
                    command
                };
                let restore = ["history", "restore", &backup];
                kill_within(in_elsewhere(&restore), chance, START_MS).await;
                outcome.commands_killed += 1;
                let again = ran(in_elsewhere(&restore)).await;
                // The first restore was complete before it was killed.
                let is_done = again.code == Some(1) && again.stderr.contains("there is a store in");
                assert!(again.code == Some(0) || is_done, "{again:?}");
                let restored = ran(in_elsewhere(&["history", "verify", "--json"])).await.exits_with(0).object();
                let copied = premises.run(&["history", "verify", &backup, "--json"]).await.exits_with(0).object();
                assert_eq!((&restored["sound"], &copied["sound"]), (&true.into(), &true.into()), "{restored} {copied}");
                assert_eq!(restored["events"], copied["events"], "{restored} of {copied}");
                std::fs::remove_dir_all(&elsewhere).expect("it exists");
                std::fs::remove_file(&backup).expect("it exists");
            }
            Self::Talk | Self::Load | Self::Backup | Self::Forgetting | Self::Deletion => {}
        }
    }

    /// Checks the result of what was interrupted.
    pub async fn check(self, premises: &Premises, server: &Server, outcome: &mut Outcome) {
        match self {
            Self::Backup => {
                let backup = PathBuf::from(backup_file(premises));
                if backup.exists() {
                    let copied = premises.run(&["history", "verify", &backup_file(premises), "--json"]).await.exits_with(0);
                    assert_eq!(copied.object()["sound"], true);
                    std::fs::remove_file(&backup).expect("it exists");
                }
                let _ = std::fs::remove_file(format!("{}.part", backup.display()));
            }
            Self::Forgetting | Self::ForgettingOffline => {
                let (status, body) = server.ask(Method::POST, "/api/forget", Some(forget_request())).await;
                // A person who was forgotten before the kill has nothing on record.
                assert!(matches!(status, StatusCode::OK | StatusCode::NOT_FOUND), "{status}: {body}");
                let export = server.get(&format!("/api/export?room={GALLERY}")).await;
                if export.as_str().is_some_and(|lines| lines.contains("my secret is")) {
                    outcome.ledger.faults.lost.push("a forgotten message is still on record".into());
                }
                for (seq, from, text) in server.history(GALLERY).await {
                    if from == "Vera" {
                        outcome.ledger.faults.lost.push(format!("{text:?} should be forgotten and is there as {seq}"));
                    }
                }
            }
            Self::Deletion => {
                let tent = room("tent", &outcome.ledger);
                let is_there = server.ask(Method::GET, &format!("/api/rooms/{tent}"), None).await.0 == StatusCode::OK;
                let undelete = format!("/api/rooms/{tent}/undelete");
                if is_there || server.ask(Method::POST, &undelete, None).await.0 == StatusCode::OK {
                    // Nothing of it is deleted while it can be brought back.
                    let messages = server.history(&tent).await;
                    let count = messages.iter().filter(|(_, from, _)| from == "Mia").count();
                    if count != TENT_MESSAGES {
                        let fault = format!("{count} of {TENT_MESSAGES} messages are left of a room that is there");
                        outcome.ledger.faults.lost.push(fault);
                    }
                    server.done(Method::DELETE, &format!("/api/rooms/{tent}"), None).await;
                }
            }
            Self::Expiry => {
                let shelf = room("shelf", &outcome.ledger);
                let left: Vec<_> = server.history(&shelf).await.into_iter().filter(|(_, from, _)| from == "Nora").collect();
                // Events expire from the oldest on, and an export contains nothing older.
                if left.windows(2).any(|pair| pair[0].2 >= pair[1].2) || left.last().is_some_and(|(_, _, text)| text != "page 39")
                {
                    outcome.ledger.faults.lost.push(format!("other than the oldest messages of a room were deleted: {left:?}"));
                }
                let export = server.get(&format!("/api/export?room={shelf}")).await;
                let lines =
                    export.as_str().unwrap_or_default().lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                // Aria's decisions and statements may quote pages, so only messages count.
                let pages = lines.filter(|line| line["message"]["from"]["name"] == "Nora").count();
                if pages > left.len() {
                    outcome.ledger.faults.lost.push(format!("{} pages are left, but {pages} are exported", left.len()));
                }
                server.done(Method::DELETE, &format!("/api/rooms/{shelf}"), None).await;
            }
            Self::Talk | Self::Load | Self::Start | Self::Compaction | Self::Restore => {}
        }
    }
}

/// Lets people talk until a random event in a random room, or for a random time.
async fn talk(server: &Server, chance: &mut StdRng) {
    let room = ROOMS[chance.random_range(0..ROOMS.len())].0;
    let mut watch = server.watch(room, None).await;
    // This is no wait for a result. It only chooses when the server is killed.
    let life = LONGEST_TALK.mul_f64(chance.random());
    let moment = MOMENTS[chance.random_range(0..MOMENTS.len())];
    let events = chance.random_range(EVENTS_AFTER);
    let _ = timeout(life, async {
        watch.event(moment).await;
        for _ in 0..events {
            watch.next().await;
        }
    })
    .await;
}

/// Waits for a random time up to `longest_ms`.
async fn random_wait(chance: &mut StdRng, longest_ms: u64) {
    // This is no wait for a result. It only chooses the moment of a kill.
    let moment = Duration::from_micros(chance.random_range(0..=longest_ms * 1000));
    let _ = timeout(moment, pending::<()>()).await;
}

/// Sends messages to forget, and others between them. Returns the number of those to forget.
async fn say_secrets(server: &Server) -> usize {
    for number in 0..6 {
        server.say(GALLERY, "Vera", &format!("my secret is {number}")).await;
        server.say(GALLERY, "Theo", "that is no secret").await;
    }
    6
}

fn forget_request() -> Value {
    json!({ "guild": MUSEUM, "person": "Vera" })
}

const TENT_MESSAGES: usize = 12;

/// Makes a room with some messages.
async fn make_tent(server: &Server, tent: &str) {
    let plan = json!({ "guild": "fair", "companions": ["aria"] });
    server.done(Method::PUT, &format!("/api/rooms/{tent}"), Some(plan)).await;
    for number in 0..TENT_MESSAGES {
        server.say(tent, "Mia", &format!("word {number} in the tent")).await;
    }
}

/// The guild of the room whose messages expire.
const ARCHIVE: &str = "archive";

/// Makes a room with messages that expire.
async fn fill_archive(server: &Server, shelf: &str) {
    let plan = json!({ "guild": ARCHIVE, "companions": ["aria"] });
    server.done(Method::PUT, &format!("/api/rooms/{shelf}"), Some(plan)).await;
    for number in 0..40 {
        server.say(shelf, "Nora", &format!("page {number:02}")).await;
    }
}

/// The newest room that was made to be deleted.
fn room(kind: &str, ledger: &Ledger) -> String {
    format!("{kind}-{}", ledger.rooms)
}

/// The path of the backup of one server, which the checks after the kill read and delete.
fn backup_file(premises: &Premises) -> String {
    premises.path().join("copy.backup").to_string_lossy().into_owned()
}

/// Starts a program, and kills it after a random time.
async fn kill_within(mut command: Command, chance: &mut StdRng, longest_ms: u64) {
    let mut child = command.spawn().expect("the program can be started");
    random_wait(chance, longest_ms).await;
    // This fails if the program has already ended.
    let _ = child.start_kill();
    timeout(PATIENCE, child.wait()).await.expect("it ends in time").expect("its status");
}
