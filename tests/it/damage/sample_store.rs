//! A sound store with a history. The tests damage copies of it.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::comparison::{first_difference, first_invented, lines, shortened};
use super::kinds::Damage;
use crate::harness::{Premises, Ran, Server, contents};

pub const ROOMS: [&str; 4] = ["lobby", "cellar", "roof", STUDY];
/// In this room, people write messages of the maximum length.
const STUDY: &str = "study";
/// The number of messages there in each run of the server. sled writes a page of over 128 KiB into a file of its own, and splits a page at every
/// 17th record. For a half to be so large, it takes five records of 8,000 four-byte characters, or six of three-byte characters.
const LONG_MESSAGES: u64 = 24;
const LONG: usize = 7_900;

/// What the log of a server that accepts a loss says about what is missing.
const LOSSES: [&str; 3] = ["are missing", "it is missing", "continuing with less data"];

/// A sound store, left in three ways, with all answers of its server.
pub struct SampleStore {
    premises: Premises,
    answers: Vec<(String, Vec<String>)>,
    /// The messages of people, by room.
    messages: Vec<Vec<String>>,
    left: [TempDir; 3],
}

/// How the last server left a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It wrote much and was stopped. At the next start, sled reads all of that.
    Written,
    /// It wrote nothing and was stopped. sled has a snapshot of everything.
    Snapshotted,
    /// It wrote nothing and was killed.
    Killed,
}

impl Left {
    pub const ALL: [Self; 3] = [Self::Written, Self::Snapshotted, Self::Killed];
}

/// The outcome of starting a server on a damaged store.
pub enum Outcome {
    /// There was nothing to damage.
    NothingToDamage,
    /// It ended with this code and this error.
    Refused(Option<i32>, String),
    /// Everything is there.
    Complete {
        note: String,
    },
    /// It serves, and reports what it cannot read.
    Reported(String),
    /// Something is missing or different, without a report.
    Silent(String),
    Panicked(String),
}

impl SampleStore {
    /// Runs a server twice, with this many messages in three rooms and some long ones in another. The first server is killed, and only it writes
    /// summaries.
    pub async fn prepare(messages: u64) -> Self {
        let rooms = ROOMS.map(|room| format!(r#"{{ id = "{room}", guild = "{room}s", companions = ["aria"] }}"#));
        let limits = ["server.requests_per_second", "gate.addresses_per_minute", "gate.guild_statements_per_day"];
        let premises = limits.into_iter().fold(Premises::shipped(), |premises, limit| premises.with(limit, "1000000"));
        let premises = premises.with("console.rooms", &format!("[{}]", rooms.join(", ")));
        let premises = premises.with("turn_taking.turn_delay_secs", "0.01");
        let mut premises = premises.with("prompt.summary_after", "20");
        let server = premises.start().await;
        talk(&server, 0..messages / 2).await;
        talk_at_length(&server, 0..LONG_MESSAGES).await;
        server.kill().await;
        // The end of a summary, or of note-taking, cannot be watched. From here on there is none, so that none is in flight while the answers are read.
        premises.set("prompt.summary_after", "100000");
        premises.set("memory.notes", "false");
        premises.set("prompt.statement_tokens", "1000000");
        let server = premises.start().await;
        talk(&server, messages / 2..messages).await;
        talk_at_length(&server, LONG_MESSAGES..2 * LONG_MESSAGES).await;
        for number in messages - 3..messages {
            wait_until_recorded(&server, &Draft::of(number)).await;
        }
        wait_until_recorded(&server, &Draft::long(2 * LONG_MESSAGES - 1)).await;
        let answers = read_answers(&server).await.expect("the server answers");
        let by_room = messages_of_people(&server).await.expect("the rooms can be read");
        server.stop().await;
        let written = copy_of(&premises.data());
        premises.start().await.stop().await;
        let snapshotted = copy_of(&premises.data());
        premises.start().await.kill().await;
        let killed = copy_of(&premises.data());
        Self { premises, answers, messages: by_room, left: [written, snapshotted, killed] }
    }

    /// The length in bytes of the shortest of the three databases.
    pub fn db_bytes(&self) -> u64 {
        self.left.iter().map(|left| db_bytes(&left.path().join("data"))).min().expect("there are three")
    }

    /// Makes a damaged copy. `None` if there is nothing to damage.
    fn damaged(&self, left: Left, damage: &Damage) -> Option<Damaged<'_>> {
        let copy = copy_of(&self.left[left as usize].path().join("data"));
        damage.inflict(&copy.path().join("data")).then_some(Damaged { premises: &self.premises, copy })
    }

    /// Damages a copy, and starts a server on it.
    pub async fn damage_and_start(&self, left: Left, damage: &Damage) -> Outcome {
        let Some(damaged) = self.damaged(left, damage) else { return Outcome::NothingToDamage };
        let before = contents(&damaged.data());
        let server = match damaged.start(&[]).await {
            Ok(server) => server,
            Err(Ran { code, stderr, .. }) => {
                // Only after a kill, sled has to open the store.
                let (was, is) = (db_bytes(&self.left[left as usize].path().join("data")), db_bytes(&damaged.data()));
                return match damage.noticed_at_once(was, is).filter(|_| left != Left::Killed) {
                    Some(words) if !stderr.contains(&words) => Outcome::Silent(format!("{words:?} is not said: {stderr}")),
                    Some(_) if contents(&damaged.data()) != before => Outcome::Silent("the refused start changed a file".into()),
                    _ => refusal(code, &stderr),
                };
            }
        };
        let answers = match read_answers(&server).await {
            Ok(answers) => greet(&server).await.map(|()| answers),
            Err(error) => Err(error),
        };
        let warnings = server.log_lines_with(" WARN ").join("\n");
        let log = server.kill().await;
        if log.contains("panicked at") && answers.is_ok() {
            return Outcome::Panicked(last_lines(&log));
        }
        match answers {
            Err(error) => Outcome::Reported(format!("{error}; {}", last_lines(&warnings))),
            Ok(answers) => match first_difference(&self.answers, &answers) {
                None => Outcome::Complete { note: last_lines(&warnings) },
                Some(difference) => Outcome::Silent(format!("{difference}; {}", last_lines(&warnings))),
            },
        }
    }

    /// Damages a copy, and starts a server that accepts the loss, as the error suggests. The server must start, or refuse with another remedy. The
    /// remaining messages must be as before: nothing invented, duplicated, or in another order; and the log must list what is missing.
    pub async fn damage_and_accept_loss(&self, left: Left, damage: &Damage) -> Outcome {
        let Some(damaged) = self.damaged(left, damage) else { return Outcome::NothingToDamage };
        match damaged.start(&["serve", "--accept-loss"]).await {
            Err(Ran { code, stderr, .. }) => refusal(code, &stderr),
            Ok(server) => {
                let remaining = messages_of_people(&server).await;
                let greeted = greet(&server).await;
                let log = server.kill().await;
                if let Some(remaining) = remaining {
                    if let Some(invented) = first_invented(&self.messages, &remaining) {
                        return Outcome::Silent(invented);
                    }
                    if remaining != self.messages && !LOSSES.iter().any(|words| log.contains(words)) {
                        let left = |(before, now): (&Vec<_>, &Vec<_>)| format!("{} of {}", now.len(), before.len());
                        let left: Vec<_> = self.messages.iter().zip(&remaining).map(left).collect();
                        return Outcome::Silent(format!("{left:?} messages are left, and the log does not say so: {log}"));
                    }
                }
                greeted.map_or_else(Outcome::Reported, |()| Outcome::Complete { note: "it continues".into() })
            }
        }
    }
}

/// A damaged copy of the store, on which servers can be run.
struct Damaged<'a> {
    premises: &'a Premises,
    copy: TempDir,
}

impl Damaged<'_> {
    fn data(&self) -> PathBuf {
        self.copy.path().join("data")
    }

    async fn start(&self, arguments: &[&str]) -> Result<Server, Ran> {
        Server::attempt(self.command(arguments)).await
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.premises.command(arguments);
        command.current_dir(self.copy.path()).env("TERTULIA__STORAGE__PATH", self.data());
        command
    }
}

impl Outcome {
    /// Whether nothing is missing, or the operator gets a report. A refusal must name a remedy.
    pub fn is_reported_or_harmless(&self) -> bool {
        match self {
            Self::Refused(code, error) => {
                *code == Some(3)
                    && (error.contains("history restore") || error.contains("serve --accept-loss"))
                    && !error.contains("panicked at")
            }
            Self::NothingToDamage | Self::Complete { .. } | Self::Reported(_) => true,
            Self::Silent(_) | Self::Panicked(_) => false,
        }
    }

    /// Whether the server offers to continue with the rest.
    pub fn offers_to_accept_loss(&self) -> bool {
        matches!(self, Self::Refused(_, error) | Self::Reported(error) if error.contains("--accept-loss"))
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::NothingToDamage => "nothing to damage",
            Self::Refused(_, error) if error.contains("made no progress for") => "refused after a minute without progress",
            Self::Refused(..) => "refused",
            Self::Complete { .. } => "nothing is missing",
            Self::Reported(_) => "serves, and reports what it cannot read",
            Self::Silent(_) => "LOST SILENTLY",
            Self::Panicked(_) => "PANICKED",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code, error) => {
                write!(f, "exit {}: {error}", code.map_or("by a signal".into(), |code| code.to_string()))
            }
            Self::Complete { note } => write!(f, "{}; {note}", self.kind()),
            Self::Reported(what) | Self::Silent(what) | Self::Panicked(what) => write!(f, "{}: {what}", self.kind()),
            Self::NothingToDamage => f.write_str(self.kind()),
        }
    }
}

/// Sends messages to all rooms except the study.
async fn talk(server: &Server, numbers: Range<u64>) {
    for number in numbers {
        Draft::of(number).send(server).await;
    }
}

/// Sends long messages to the study.
async fn talk_at_length(server: &Server, numbers: Range<u64>) {
    for number in numbers {
        Draft::long(number).send(server).await;
    }
}

/// A message to send. Sent a second time, it is the same message.
struct Draft {
    room: &'static str,
    id: String,
    text: String,
}

impl Draft {
    fn of(number: u64) -> Self {
        let address = if number.is_multiple_of(7) { "hey aria, " } else { "" };
        let text = format!("{address}this is number {number} of what is said here, and it has some length");
        Self { room: ROOMS[number as usize % 3], id: number.to_string(), text }
    }

    fn long(number: u64) -> Self {
        Self { room: STUDY, id: format!("long-{number}"), text: format!("chapter {number}: {}", "\u{1f4d6}".repeat(LONG)) }
    }

    async fn send(&self, server: &Server) {
        let message = json!({ "id": self.id, "from": "Ana", "text": self.text });
        let (status, body) =
            server.ask(reqwest::Method::POST, &format!("/api/rooms/{}/messages", self.room), Some(message)).await;
        assert_eq!(status, 202, "{body}");
    }
}

/// Waits until everything about a room is on record. `newest` is its newest message. The state of a room is ahead of its record. But a room at
/// rest has handed all its events to the writer, and a message after that is answered only once they are committed. A message that is sent again
/// changes nothing.
async fn wait_until_recorded(server: &Server, newest: &Draft) {
    server.rest(newest.room).await;
    newest.send(server).await;
}

/// Reads everything that the API shows of the store.
async fn read_answers(server: &Server) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut paths = vec!["/api/rooms".to_owned(), "/api/export".to_owned(), "/api/usage".to_owned()];
    for room in ROOMS {
        paths.extend([format!("/api/rooms/{room}/history?limit=1000"), format!("/api/rooms/{room}/state")]);
        paths.push(format!("/api/decisions?room={room}&limit=1000"));
    }
    let mut answers = Vec::new();
    for path in paths {
        let answer = server.try_get(&path).await?;
        answers.push((path, lines(answer)));
    }
    Ok(answers)
}

/// Sends a message to every room.
async fn greet(server: &Server) -> Result<(), String> {
    for room in ROOMS {
        let message = json!({ "from": "Bob", "text": "is everybody there?" });
        let (status, body) = server.try_ask(reqwest::Method::POST, &format!("/api/rooms/{room}/messages"), Some(message)).await?;
        if status != 202 {
            return Err(format!("a message to {room}: {status}: {body}"));
        }
    }
    Ok(())
}

/// The number, sender and text of each message by a person, for each room. `None` if a room cannot be read.
async fn messages_of_people(server: &Server) -> Option<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for room in ROOMS {
        let answer = server.try_get(&format!("/api/rooms/{room}/history?limit=1000")).await.ok()?;
        let by_people = |message: &&Value| message["role"] == "user";
        let message = answer["messages"].as_array()?.iter().filter(by_people);
        all.push(message.map(|message| format!("{} {}: {}", message["seq"], message["from"], message["text"])).collect());
    }
    Some(all)
}

fn refusal(code: Option<i32>, log: &str) -> Outcome {
    match log.lines().find(|line| line.contains("panicked at")) {
        Some(_) if !log.contains("tertulia: ") => Outcome::Panicked(last_lines(log)),
        _ => Outcome::Refused(code, log.lines().rfind(|line| line.starts_with("tertulia: ")).unwrap_or(log).to_owned()),
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<_> = log.lines().rev().take(3).map(shortened).collect();
    lines.join(" / ")
}

/// The length of the database in bytes, or 0 if there is none.
fn db_bytes(data: &Path) -> u64 {
    fs::metadata(data.join("store/db")).map_or(0, |metadata| metadata.len())
}

fn copy_of(data: &Path) -> TempDir {
    let copy = tempfile::Builder::new().prefix("tertulia-damaged-").tempdir().expect("a folder");
    fs::create_dir_all(copy.path().join("data/store/blobs")).expect("a folder");
    for (path, bytes) in contents(data) {
        let to = copy.path().join("data").join(path.strip_prefix(data).expect("it is below"));
        fs::create_dir_all(to.parent().expect("a folder")).and_then(|()| fs::write(to, bytes)).expect("copied");
    }
    copy
}
