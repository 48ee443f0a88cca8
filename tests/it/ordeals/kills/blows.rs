//! At what a kill strikes, and what has to be true of it afterwards.

use std::path::PathBuf;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{GALLERY, MUSEUM, Outcome, a_while, soon};
use crate::harness::{Premises, Ran, Server, ran};
use crate::processes::gatherings::ROOMS;

const LONGEST_LIFE: Duration = Duration::from_millis(1_200);
/// About how long the program needs to start, or for one of its commands.
const START_MS: u64 = 500;
/// About how long a copy takes, or forgetting, or deleting.
const WORK_MS: u64 = 60;

/// When the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// Somewhere in what it lives for.
    Talk,
    /// While it starts after another kill, several times.
    Start,
    /// While a backup is made.
    Backup,
    /// While somebody is forgotten.
    Forgetting,
    /// While a room is deleted.
    Deletion,
    /// Then `history compact` is killed too.
    Compaction,
    /// Then `history restore` of a backup is killed too.
    Restore,
    /// Then `history forget` is killed too.
    ForgettingOffline,
    /// Then `history expire` is killed too.
    Expiry,
}

/// A server that is about to be killed.
pub struct Victim<'a> {
    pub premises: &'a Premises,
    pub server: Server,
    pub chance: &'a mut StdRng,
    pub outcome: &'a mut Outcome,
}

impl Blow {
    pub const EACH: [Self; 8] =
        [Self::Talk, Self::Start, Self::Backup, Self::Forgetting, Self::Deletion, Self::Compaction, Self::Restore, Self::Expiry];

    /// Most of them in the middle of a talk.
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

    /// Brings the server to where it is killed.
    pub async fn strike(self, victim: &mut Victim<'_>) {
        let server = &victim.server;
        match self {
            Self::Talk | Self::Start | Self::Compaction => talk(server, victim.chance).await,
            Self::Backup => {
                let to = backup_file(victim.premises);
                server.begin(Method::POST, "/api/backup", Some(json!({ "to": to })));
                a_while(victim.chance, WORK_MS).await;
            }
            Self::Restore => {
                talk(server, victim.chance).await;
                let to = backup_file(victim.premises);
                let (status, body) = server.ask(Method::POST, "/api/backup", Some(json!({ "to": to }))).await;
                assert_eq!(status, StatusCode::OK, "{body}");
            }
            Self::Forgetting => {
                let words = speak(server).await;
                server.begin(Method::POST, "/api/forget", Some(forget()));
                a_while(victim.chance, WORK_MS).await;
                victim.outcome.book.forgotten += words;
            }
            Self::ForgettingOffline => victim.outcome.book.forgotten += speak(server).await,
            Self::Expiry => grow_old(server).await,
            Self::Deletion => {
                pitch(server).await;
                server.begin(Method::DELETE, "/api/rooms/tent", None);
                a_while(victim.chance, WORK_MS).await;
            }
        }
    }

    /// What else is killed, before a server is started that stays.
    pub async fn aftermath(self, premises: &Premises, chance: &mut StdRng, outcome: &mut Outcome) {
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
                sound(premises.run(&["history", "verify", "--json"]).await);
            }
            Self::Restore => {
                let backup = backup_file(premises);
                let elsewhere = premises.path().join("elsewhere");
                let at_home_there = |line: &[&str]| {
                    let mut command = premises.command(line);
                    command.env("TERTULIA__STORAGE__PATH", &elsewhere);
                    command
                };
                let restore = ["history", "restore", &backup];
                kill_within(at_home_there(&restore), chance, START_MS).await;
                outcome.commands_killed += 1;
                let again = ran(at_home_there(&restore)).await;
                // The first one had come to its end.
                let is_done = again.code == Some(1) && again.stderr.contains("there is a store in");
                assert!(again.code == Some(0) || is_done, "{again:?}");
                let restored = sound(ran(at_home_there(&["history", "verify", "--json"])).await);
                let copied = sound(premises.run(&["history", "verify", &backup, "--json"]).await);
                assert_eq!(restored["events"], copied["events"], "{restored} of {copied}");
                std::fs::remove_dir_all(&elsewhere).expect("it is there");
                std::fs::remove_file(&backup).expect("it is there");
            }
            Self::Talk | Self::Backup | Self::Forgetting | Self::Deletion => {}
        }
    }

    /// What has to be true of what was interrupted.
    pub async fn verdict(self, premises: &Premises, server: &Server, outcome: &mut Outcome) {
        match self {
            Self::Backup => {
                let backup = PathBuf::from(backup_file(premises));
                if backup.exists() {
                    sound(premises.run(&["history", "verify", &backup_file(premises), "--json"]).await);
                    std::fs::remove_file(&backup).expect("it is there");
                }
                let _ = std::fs::remove_file(format!("{}.part", backup.display()));
            }
            Self::Forgetting | Self::ForgettingOffline => {
                let (status, body) = server.ask(Method::POST, "/api/forget", Some(forget())).await;
                // Nothing is on record of somebody who was forgotten before the kill.
                assert!(matches!(status, StatusCode::OK | StatusCode::NOT_FOUND), "{status}: {body}");
                let export = server.get(&format!("/api/export?room={GALLERY}")).await;
                if export.as_str().is_some_and(|lines| lines.contains("my secret is")) {
                    outcome.book.lost.push("what was to be forgotten is still on record".into());
                }
                for (seq, from, text) in server.history(GALLERY).await {
                    if from == "Vera" {
                        outcome.book.lost.push(format!("{text:?} was to be forgotten and is there as {seq}"));
                    }
                }
            }
            Self::Deletion => {
                let (status, _) = server.ask(Method::GET, "/api/rooms/tent", None).await;
                if status == StatusCode::OK {
                    // It was killed before it was through: then nothing of what was said is gone, or everything, as it was asked.
                    let said = server.history("tent").await;
                    let words = said.iter().filter(|(_, from, _)| from == "Mia").count();
                    if words != TENT_WORDS && !said.is_empty() {
                        outcome.book.lost.push(format!("{words} of {TENT_WORDS} messages are left of a room that is there"));
                    }
                    let (status, body) = server.ask(Method::DELETE, "/api/rooms/tent", None).await;
                    assert!(status.is_success(), "{status} {body}");
                }
                let put = server.ask(Method::PUT, "/api/rooms/tent", Some(tent())).await;
                assert!(put.0.is_success(), "{put:?}");
                if !server.history("tent").await.is_empty() {
                    outcome.book.doubled.push("a room that was deleted came back with its history".into());
                }
                let (status, body) = server.ask(Method::DELETE, "/api/rooms/tent", None).await;
                assert!(status.is_success(), "{status} {body}");
            }
            Self::Expiry => {
                let left: Vec<_> = server.history("shelf").await.into_iter().filter(|(_, from, _)| from == "Nora").collect();
                // What went went from the beginning on, and nothing that is read out elsewhere is older.
                if left.windows(2).any(|pair| pair[0].2 >= pair[1].2) || left.last().is_some_and(|(_, _, text)| text != "page 39")
                {
                    outcome.book.lost.push(format!("not the oldest of a shelf was deleted: {left:?}"));
                }
                let export = server.get("/api/export?room=shelf").await;
                let lines =
                    export.as_str().unwrap_or_default().lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                // What Aria thought and said of them may quote them, too.
                let pages = lines.filter(|line| line["message"]["from"]["name"] == "Nora").count();
                if pages > left.len() {
                    outcome.book.lost.push(format!("of a shelf {} pages are left, and {pages} are read out", left.len()));
                }
                let (status, body) = server.ask(Method::DELETE, "/api/rooms/shelf", None).await;
                assert!(status.is_success(), "{status} {body}");
            }
            Self::Talk | Self::Start | Self::Compaction | Self::Restore => {}
        }
    }
}

/// Lets it talk until something happens, or its time is up.
async fn talk(server: &Server, chance: &mut StdRng) {
    let room = ROOMS[chance.random_range(0..ROOMS.len())].0;
    server.watch(room, None).await.until_some_moment(LONGEST_LIFE, chance).await;
}

/// Has somebody say what is to be forgotten, among what others say.
async fn speak(server: &Server) -> usize {
    for number in 0..6 {
        server.say(GALLERY, "Vera", &format!("my secret is {number}")).await;
        server.say(GALLERY, "Theo", "that is no secret").await;
    }
    6
}

fn forget() -> Value {
    json!({ "guild": MUSEUM, "person": "Vera" })
}

const TENT_WORDS: usize = 12;

/// Makes a room with some history.
async fn pitch(server: &Server) {
    let (status, body) = server.ask(Method::PUT, "/api/rooms/tent", Some(tent())).await;
    assert!(status.is_success(), "{body}");
    for number in 0..TENT_WORDS {
        server.say("tent", "Mia", &format!("word {number} in the tent")).await;
    }
}

/// The guild of a room in which what was said is old at once.
const ARCHIVE: &str = "archive";

/// Makes a room whose whole history is to be deleted.
async fn grow_old(server: &Server) {
    let plan = json!({ "guild": ARCHIVE, "companions": ["aria"] });
    let (status, body) = server.ask(Method::PUT, "/api/rooms/shelf", Some(plan)).await;
    assert!(status.is_success(), "{body}");
    for number in 0..40 {
        server.say("shelf", "Nora", &format!("page {number:02}")).await;
    }
}

fn tent() -> Value {
    json!({ "guild": "fair", "companions": ["aria"] })
}

/// A file that is not there yet, for one server and its successor.
fn backup_file(premises: &Premises) -> String {
    premises.path().join("copy.backup").to_string_lossy().into_owned()
}

/// Starts a program and kills it a moment later, wherever it is by then.
async fn kill_within(mut command: Command, chance: &mut StdRng, longest_ms: u64) {
    let mut child = command.spawn().expect("the program can be started");
    a_while(chance, longest_ms).await;
    // One that has ended by itself cannot be killed.
    let _ = child.start_kill();
    soon(child.wait()).await.expect("its status");
}

fn sound(verified: Ran) -> Value {
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let report = verified.object();
    assert_eq!(report["sound"], true, "{report}");
    report
}
