//! A store with a history, of which copies are damaged.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::kinds::Damage;
use super::telling::{first_difference, first_invented, lines, shortened};
use crate::harness::{Premises, Ran, Server, ran};

pub const ROOMS: [&str; 4] = ["lobby", "cellar", "roof", STUDY];
/// Here people write as much at once as they may.
const STUDY: &str = "study";
/// What is said there in each life of the server. sled writes a page of over 128 KiB into a file of its own, and halves a page at every
/// 17th record: that a half is so large takes five records of 8,000 characters that are four bytes long, or six of three.
const LONG_MESSAGES: u64 = 24;
const LONG: usize = 7_900;

/// A store that is sound, left in three ways, and everything that its server says.
pub struct ModelHome {
    premises: Premises,
    told: Vec<(String, Vec<String>)>,
    /// What people said, by room.
    said: Vec<Vec<String>>,
    left: [TempDir; 3],
}

/// How the last server left a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It wrote much and ended well: at the next start sled goes through all that.
    Written,
    /// It wrote nothing and ended well: sled has noted its state after everything.
    Noted,
    /// It wrote nothing and was killed.
    Killed,
}

impl Left {
    pub const ALL: [Self; 3] = [Self::Written, Self::Noted, Self::Killed];
}

/// What became of a server on a damaged store.
pub enum Fate {
    /// There was nothing to damage.
    Spared,
    /// It ended with this code, in these words.
    Refused(Option<i32>, String),
    /// Everything is there.
    Whole { says: String },
    /// It serves, and says of what it cannot read that it cannot.
    Told(String),
    /// Something is missing or different, and nobody said so.
    Silent(String),
    /// It panicked.
    Panicked(String),
}

impl ModelHome {
    /// So many messages in three rooms, and some long ones in another, in two lives of a server, one of which was killed. Summaries are of the
    /// first.
    pub async fn furnish(messages: u64) -> Self {
        let rooms = ROOMS.map(|room| format!(r#"{{ id = "{room}", guild = "{room}s", companions = ["aria"] }}"#));
        let plenty = ["server.requests_per_second", "gate.addresses_per_minute", "gate.guild_statements_per_day"];
        let premises = plenty.into_iter().fold(Premises::shipped(), |premises, limit| premises.with(limit, "1000000"));
        let premises = premises.with("console.rooms", &format!("[{}]", rooms.join(", ")));
        let premises = premises.with("turn_taking.turn_delay_secs", "0.01");
        let mut premises = premises.with("prompt.summary_after", "20");
        let server = premises.start().await;
        talk(&server, 0..messages / 2).await;
        talk_at_length(&server, 0..LONG_MESSAGES).await;
        server.kill().await;
        // Nobody hears of a summary's end: from here on there is none that could be under way while the server tells of itself.
        premises.set("prompt.summary_after", "100000");
        let server = premises.start().await;
        talk(&server, messages / 2..messages).await;
        talk_at_length(&server, LONG_MESSAGES..2 * LONG_MESSAGES).await;
        for number in messages - 3..messages {
            settle(&server, &Words::of(number)).await;
        }
        settle(&server, &Words::at_length(2 * LONG_MESSAGES - 1)).await;
        let told = tell(&server).await.expect("it tells of itself");
        let said = what_people_said(&server).await.expect("it tells what was said");
        server.stop().await;
        let written = copy_of(&premises.data());
        premises.start().await.stop().await;
        let noted = copy_of(&premises.data());
        premises.start().await.kill().await;
        let killed = copy_of(&premises.data());
        Self { premises, told, said, left: [written, noted, killed] }
    }

    /// The length of the shortest of the databases.
    pub fn db_bytes(&self) -> u64 {
        let bytes = self.left.iter().map(|left| fs::metadata(left.path().join("data/store/db")).expect("it is there").len());
        bytes.min().expect("there are three")
    }

    /// Damages a copy, and starts a server on it.
    pub async fn suffer(&self, left: Left, damage: &Damage) -> Fate {
        let (copy, Some(server)) = self.start_on(left, damage, &[]).await else { return Fate::Spared };
        let server = match server {
            Ok(server) => server,
            Err(Ran { code, stderr, .. }) => return refusal(code, &stderr),
        };
        let told = match tell(&server).await {
            Ok(told) => greet(&server).await.map(|()| told),
            Err(trouble) => Err(trouble),
        };
        let troubles = server.told_of(" WARN ").join("\n");
        let log = server.kill().await;
        if log.contains("panicked at") && told.is_ok() {
            return Fate::Panicked(last_lines(&log));
        }
        drop(copy);
        match told {
            Err(trouble) => Fate::Told(format!("{trouble}; {}", last_lines(&troubles))),
            Ok(told) => match first_difference(&self.told, &told) {
                None => Fate::Whole { says: last_lines(&troubles) },
                Some(difference) => Fate::Silent(format!("{difference}; {}", last_lines(&troubles))),
            },
        }
    }
}

impl ModelHome {
    /// Damages a copy, and goes on with what is left, as an operator may who was told of that. It works, or it is refused with the way out
    /// that is left; and what is left is what was there: nothing is invented, doubled, or in another order.
    pub async fn accept(&self, left: Left, damage: &Damage) -> Fate {
        let (_copy, Some(server)) = self.start_on(left, damage, &["serve", "--accept-loss"]).await else { return Fate::Spared };
        match server {
            Err(Ran { code, stderr, .. }) => refusal(code, &stderr),
            Ok(server) => {
                let left = what_people_said(&server).await;
                let greeted = greet(&server).await;
                server.kill().await;
                if let Some(invented) = left.and_then(|left| first_invented(&self.said, &left)) {
                    return Fate::Silent(invented);
                }
                greeted.map_or_else(Fate::Told, |()| Fate::Whole { says: "it goes on".into() })
            }
        }
    }

    async fn start_on(&self, left: Left, damage: &Damage, arguments: &[&str]) -> (TempDir, Option<Result<Server, Ran>>) {
        let copy = copy_of(&self.left[left as usize].path().join("data"));
        let data = copy.path().join("data");
        if !damage.inflict(&data) {
            return (copy, None);
        }
        let mut command = self.premises.command(arguments);
        command.env("TERTULIA__STORAGE__PATH", &data);
        let server = Server::attempt(command).await;
        (copy, Some(server))
    }
}

/// A damaged copy of a home, in which commands can be run.
pub struct Damaged<'a> {
    premises: &'a Premises,
    copy: TempDir,
}

impl ModelHome {
    /// A copy that is damaged so.
    pub fn damaged(&self, left: Left, damage: &Damage) -> Damaged<'_> {
        let copy = copy_of(&self.left[left as usize].path().join("data"));
        damage.inflict(&copy.path().join("data"));
        Damaged { premises: &self.premises, copy }
    }
}

impl Damaged<'_> {
    pub fn copied(&self) -> Self {
        Self { premises: self.premises, copy: copy_of(&self.copy.path().join("data")) }
    }

    pub async fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments)).await
    }

    /// Starts a server on it, has somebody say something in every room, and stops it. A room of which it was lost who lives there counts as
    /// deleted: it is made again.
    pub async fn serve(&self, arguments: &[&str]) -> Result<(), String> {
        let server = Server::attempt(self.command(arguments)).await.map_err(|refused| format!("{refused:?}"))?;
        let greeted = match make_what_is_gone(&server).await {
            Ok(()) => greet(&server).await,
            Err(trouble) => Err(trouble),
        };
        server.stop().await;
        greeted
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.premises.command(arguments);
        command.current_dir(self.copy.path()).env("TERTULIA__STORAGE__PATH", self.copy.path().join("data"));
        command
    }
}

impl Fate {
    /// Whether the operator was told what there is to be told.
    pub fn is_honest(&self) -> bool {
        match self {
            Self::Refused(code, words) => {
                *code == Some(3)
                    && (words.contains("history restore") || words.contains("serve --accept-loss"))
                    && !words.contains("panicked at")
            }
            Self::Spared | Self::Whole { .. } | Self::Told(_) => true,
            Self::Silent(_) | Self::Panicked(_) => false,
        }
    }

    /// Whether somebody may go on with what is left.
    pub fn offers_to_go_on(&self) -> bool {
        matches!(self, Self::Refused(_, words) | Self::Told(words) if words.contains("--accept-loss"))
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Spared => "nothing to damage",
            Self::Refused(_, words) if words.contains("did not open within") => "refused after a minute's search",
            Self::Refused(..) => "refused",
            Self::Whole { .. } => "nothing is missing",
            Self::Told(_) => "serves, and says what it cannot read",
            Self::Silent(_) => "LOST IN SILENCE",
            Self::Panicked(_) => "PANICKED",
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code, words) => {
                write!(f, "exit {}: {words}", code.map_or("by a signal".into(), |code| code.to_string()))
            }
            Self::Whole { says } => write!(f, "{}; {says}", self.kind()),
            Self::Told(what) | Self::Silent(what) | Self::Panicked(what) => write!(f, "{}: {what}", self.kind()),
            Self::Spared => f.write_str(self.kind()),
        }
    }
}

/// Has people talk in all rooms but one.
async fn talk(server: &Server, numbers: Range<u64>) {
    for number in numbers {
        Words::of(number).say(server).await;
    }
}

/// Has people write a lot in that one.
async fn talk_at_length(server: &Server, numbers: Range<u64>) {
    for number in numbers {
        Words::at_length(number).say(server).await;
    }
}

/// What somebody says. Said for the second time it is the same message.
struct Words {
    room: &'static str,
    id: String,
    text: String,
}

impl Words {
    fn of(number: u64) -> Self {
        let whom = if number.is_multiple_of(7) { "hey aria, " } else { "" };
        let text = format!("{whom}this is number {number} of what is said here, and it has some length");
        Self { room: ROOMS[number as usize % 3], id: number.to_string(), text }
    }

    fn at_length(number: u64) -> Self {
        Self { room: STUDY, id: format!("long-{number}"), text: format!("chapter {number}: {}", "\u{1f4d6}".repeat(LONG)) }
    }

    async fn say(&self, server: &Server) {
        let said = json!({ "id": self.id, "from": "Ana", "text": self.text });
        let (status, body) = server.ask(reqwest::Method::POST, &format!("/api/rooms/{}/messages", self.room), Some(said)).await;
        assert_eq!(status, 202, "{body}");
    }
}

/// Waits until all that was done about a room is on record, of which this message is the newest. What a room says of itself is ahead of its
/// record; but a room at rest has handed in everything, and whatever is said after that is answered after all that is on record. Said for
/// the second time, a message changes nothing.
async fn settle(server: &Server, words: &Words) {
    server.rest(words.room).await;
    words.say(server).await;
}

/// Everything that a server can be asked about what it keeps.
async fn tell(server: &Server) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut paths = vec!["/api/rooms".to_owned(), "/api/export".to_owned(), "/api/usage".to_owned()];
    for room in ROOMS {
        paths.extend([format!("/api/rooms/{room}/history?limit=1000"), format!("/api/rooms/{room}/state")]);
        paths.push(format!("/api/decisions?room={room}&limit=1000"));
    }
    let mut told = Vec::new();
    for path in paths {
        let answer = server.try_get(&path).await?;
        told.push((path, lines(answer)));
    }
    Ok(told)
}

/// Makes the rooms that are not there, as those who ask for them are told to.
async fn make_what_is_gone(server: &Server) -> Result<(), String> {
    for room in ROOMS {
        let path = format!("/api/rooms/{room}");
        let (status, body) = server.try_ask(reqwest::Method::GET, &path, None).await?;
        if status == 404 && body["detail"].as_str().is_some_and(|detail| detail.ends_with(&format!("PUT {path} makes it"))) {
            let plan = json!({ "guild": format!("{room}s"), "companions": ["aria"] });
            let (status, body) = server.try_ask(reqwest::Method::PUT, &path, Some(plan)).await?;
            if status != 201 {
                return Err(format!("{room} made again: {status}: {body}"));
            }
        }
    }
    Ok(())
}

/// Has somebody say something in every room.
async fn greet(server: &Server) -> Result<(), String> {
    for room in ROOMS {
        let said = json!({ "from": "Bob", "text": "is everybody there?" });
        let (status, body) = server.try_ask(reqwest::Method::POST, &format!("/api/rooms/{room}/messages"), Some(said)).await?;
        if status != 202 {
            return Err(format!("a message to {room}: {status}: {body}"));
        }
    }
    Ok(())
}

/// Of every room, in order: number, speaker and words. None where a room cannot be read.
async fn what_people_said(server: &Server) -> Option<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for room in ROOMS {
        let answer = server.try_get(&format!("/api/rooms/{room}/history?limit=1000")).await.ok()?;
        let by_people = |message: &&Value| message["role"] == "user";
        let said = answer["messages"].as_array()?.iter().filter(by_people);
        all.push(said.map(|message| format!("{} {}: {}", message["seq"], message["from"], message["text"])).collect());
    }
    Some(all)
}

fn refusal(code: Option<i32>, log: &str) -> Fate {
    match log.lines().find(|line| line.contains("panicked at")) {
        Some(_) if !log.contains("tertulia: ") => Fate::Panicked(last_lines(log)),
        _ => Fate::Refused(code, log.lines().rfind(|line| line.starts_with("tertulia: ")).unwrap_or(log).to_owned()),
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<_> = log.lines().rev().take(3).map(shortened).collect();
    lines.join(" / ")
}

fn copy_of(data: &Path) -> TempDir {
    let copy = tempfile::Builder::new().prefix("tertulia-damaged-").tempdir().expect("a folder");
    copy_folder(data, &copy.path().join("data"));
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copied");
        }
    }
}
