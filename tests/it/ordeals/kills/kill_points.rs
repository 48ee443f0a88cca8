//! The points at which a kill hits, and what must be true afterwards.

use std::path::PathBuf;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{GALLERY, MUSEUM, Outcome, in_time, random_wait};
use crate::harness::{Premises, Ran, Server, ran};
use crate::processes::round_kills::ROOMS;

const LONGEST_TALK: Duration = Duration::from_millis(1_200);
/// The approximate time for a start or a command.
const START_MS: u64 = 500;
/// The approximate time for a backup, forgetting a person, or deleting a room.
const WORK_MS: u64 = 60;

/// The point at which the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillPoint {
    /// During a talk.
    Talk,
    /// During a talk. Then several starts are killed.
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
    pub chance: &'a mut StdRng,
    pub outcome: &'a mut Outcome,
}

impl KillPoint {
    pub const EACH: [Self; 8] =
        [Self::Talk, Self::Start, Self::Backup, Self::Forgetting, Self::Deletion, Self::Compaction, Self::Restore, Self::Expiry];

    /// Chooses at random, mostly during a talk.
    pub fn any(chance: &mut StdRng) -> Self {
        match chance.random_range(0..100) {
            0..50 => Self::Talk,
            50..70 => Self::Start,
            70..76 => Self::Backup,
            76..82 => Self::Forgetting,
            82..88 => Self::Deletion,
            88..93 => Self::Compaction,
            93..96 => Self::Restore,
            96..98 => Self::Expiry,
            _ => Self::ForgettingOffline,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Talk => "in a talk",
            Self::Start => "in a talk before kills at start-up",
            Self::Backup => "in a backup",
            Self::Forgetting => "in forgetting",
            Self::Deletion => "in the deletion of a room",
            Self::Compaction => "before a compaction that is killed",
            Self::Restore => "before a restore that is killed",
            Self::ForgettingOffline => "before a forgetting that is killed",
            Self::Expiry => "before an expiry that is killed",
        }
    }

    /// Brings the server to the point at which it is killed.
    pub async fn approach(self, target: &mut Target<'_>) {
        let server = &target.server;
        match self {
            Self::Talk | Self::Start | Self::Compaction => talk(server, target.chance).await,
            Self::Backup => {
                let to = backup_file(target.premises);
                server.begin(Method::POST, "/api/backup", Some(json!({ "to": to })));
                random_wait(target.chance, WORK_MS).await;
            }
            Self::Restore => {
                talk(server, target.chance).await;
                let to = backup_file(target.premises);
                let (status, body) = server.ask(Method::POST, "/api/backup", Some(json!({ "to": to }))).await;
                assert_eq!(status, StatusCode::OK, "{body}");
            }
            Self::Forgetting => {
                let count = say_secrets(server).await;
                server.begin(Method::POST, "/api/forget", Some(forget_request()));
                random_wait(target.chance, WORK_MS).await;
                target.outcome.ledger.forgotten += count;
            }
            Self::ForgettingOffline => target.outcome.ledger.forgotten += say_secrets(server).await,
            Self::Expiry => fill_archive(server).await,
            Self::Deletion => {
                make_tent(server).await;
                server.begin(Method::DELETE, "/api/rooms/tent", None);
                random_wait(target.chance, WORK_MS).await;
            }
        }
    }

    /// Starts and kills commands, before the next server starts.
    pub async fn kill_commands(self, premises: &Premises, chance: &mut StdRng, outcome: &mut Outcome) {
        match self {
            Self::Start => {
                for _ in 0..chance.random_range(1..=4) {
                    kill_within(premises.command(&[]), chance, START_MS).await;
                    *outcome.kills.entry("at start-up").or_default() += 1;
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
                assert_sound(premises.run(&["history", "verify", "--json"]).await);
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
                let restored = assert_sound(ran(in_elsewhere(&["history", "verify", "--json"])).await);
                let copied = assert_sound(premises.run(&["history", "verify", &backup, "--json"]).await);
                assert_eq!(restored["events"], copied["events"], "{restored} of {copied}");
                std::fs::remove_dir_all(&elsewhere).expect("it exists");
                std::fs::remove_file(&backup).expect("it exists");
            }
            Self::Talk | Self::Backup | Self::Forgetting | Self::Deletion => {}
        }
    }

    /// Checks the result of what was interrupted.
    pub async fn check(self, premises: &Premises, server: &Server, outcome: &mut Outcome) {
        match self {
            Self::Backup => {
                let backup = PathBuf::from(backup_file(premises));
                if backup.exists() {
                    assert_sound(premises.run(&["history", "verify", &backup_file(premises), "--json"]).await);
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
                    outcome.ledger.lost.push("a forgotten message is still on record".into());
                }
                for (seq, from, text) in server.history(GALLERY).await {
                    if from == "Vera" {
                        outcome.ledger.lost.push(format!("{text:?} should be forgotten and is there as {seq}"));
                    }
                }
            }
            Self::Deletion => {
                let (status, _) = server.ask(Method::GET, "/api/rooms/tent", None).await;
                if status == StatusCode::OK {
                    // The deletion was interrupted. Then all messages must be there, or none.
                    let messages = server.history("tent").await;
                    let count = messages.iter().filter(|(_, from, _)| from == "Mia").count();
                    if count != TENT_MESSAGES && !messages.is_empty() {
                        outcome.ledger.lost.push(format!("{count} of {TENT_MESSAGES} messages are left of a room that is there"));
                    }
                    let (status, body) = server.ask(Method::DELETE, "/api/rooms/tent", None).await;
                    assert!(status.is_success(), "{status} {body}");
                }
                let put = server.ask(Method::PUT, "/api/rooms/tent", Some(tent_plan())).await;
                assert!(put.0.is_success(), "{put:?}");
                if !server.history("tent").await.is_empty() {
                    outcome.ledger.duplicated.push("a room that was deleted came back with its history".into());
                }
                let (status, body) = server.ask(Method::DELETE, "/api/rooms/tent", None).await;
                assert!(status.is_success(), "{status} {body}");
            }
            Self::Expiry => {
                let left: Vec<_> = server.history("shelf").await.into_iter().filter(|(_, from, _)| from == "Nora").collect();
                // Events expire from the oldest on, and an export contains nothing older.
                if left.windows(2).any(|pair| pair[0].2 >= pair[1].2) || left.last().is_some_and(|(_, _, text)| text != "page 39")
                {
                    outcome.ledger.lost.push(format!("other than the oldest messages of a room were deleted: {left:?}"));
                }
                let export = server.get("/api/export?room=shelf").await;
                let lines =
                    export.as_str().unwrap_or_default().lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                // Aria's decisions and statements may quote pages, so only messages count.
                let pages = lines.filter(|line| line["message"]["from"]["name"] == "Nora").count();
                if pages > left.len() {
                    outcome.ledger.lost.push(format!("{} pages are left, but {pages} are exported", left.len()));
                }
                let (status, body) = server.ask(Method::DELETE, "/api/rooms/shelf", None).await;
                assert!(status.is_success(), "{status} {body}");
            }
            Self::Talk | Self::Start | Self::Compaction | Self::Restore => {}
        }
    }
}

/// Waits for a random event in a random room, or for a random time.
async fn talk(server: &Server, chance: &mut StdRng) {
    let room = ROOMS[chance.random_range(0..ROOMS.len())].0;
    server.watch(room, None).await.until_some_moment(LONGEST_TALK, chance).await;
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
async fn make_tent(server: &Server) {
    let (status, body) = server.ask(Method::PUT, "/api/rooms/tent", Some(tent_plan())).await;
    assert!(status.is_success(), "{body}");
    for number in 0..TENT_MESSAGES {
        server.say("tent", "Mia", &format!("word {number} in the tent")).await;
    }
}

/// The guild of the room whose messages expire.
const ARCHIVE: &str = "archive";

/// Makes a room with messages that expire.
async fn fill_archive(server: &Server) {
    let plan = json!({ "guild": ARCHIVE, "companions": ["aria"] });
    let (status, body) = server.ask(Method::PUT, "/api/rooms/shelf", Some(plan)).await;
    assert!(status.is_success(), "{body}");
    for number in 0..40 {
        server.say("shelf", "Nora", &format!("page {number:02}")).await;
    }
}

fn tent_plan() -> Value {
    json!({ "guild": "fair", "companions": ["aria"] })
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
    in_time(child.wait()).await.expect("its status");
}

fn assert_sound(verified: Ran) -> Value {
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let report = verified.object();
    assert_eq!(report["sound"], true, "{report}");
    report
}
