//! What a server has on record, held against what Discord told it and what it posted there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::super::counterpart::id::Id;
use super::town::Town;
use crate::harness::Server;

/// A channel that has not come to rest by then never will.
const REST: Duration = Duration::from_secs(120);

/// What came of it.
#[derive(Debug, Default)]
pub struct Account {
    /// Messages that people wrote, and how many of them are on record, were taken back, or lie in a recorded gap.
    pub said: usize,
    pub on_record: usize,
    pub taken_back: usize,
    pub in_gaps: usize,
    /// Recorded gaps, and reports of channels that were read after a downtime.
    pub gaps: usize,
    pub caught_up: usize,
    pub read_afterwards: u64,
    /// Statements on record, what was posted, and statements that nobody can confirm.
    pub statements: usize,
    pub posted: usize,
    pub unconfirmed: usize,
    pub lost: Vec<String>,
    pub doubled: Vec<String>,
    pub disordered: Vec<String>,
    pub unread_changes: usize,
    pub unrest: Vec<String>,
}

/// A message as it is on record.
struct Recorded {
    seq: u64,
    id: Option<Id>,
    is_companions: bool,
    text: String,
}

impl Account {
    /// Waits until every channel is at rest, and compares.
    pub async fn of(town: &Town, server: &Server) -> Self {
        let mut account = Self { said: town.said.len(), ..Self::default() };
        let posts = town.discord.posts();
        let mut posted = BTreeMap::<Id, Vec<Id>>::new();
        for channel in &town.channels {
            let room = format!("discord:{}", channel.id);
            if timeout(REST, server.rest_within(&room, REST * 2)).await.is_err() {
                let state = server.get(&format!("/api/rooms/{room}/state")).await;
                account.unrest.push(format!("{room}: {state}; {:#?}", server.log_lines_with(&room)));
            }
        }
        // A post that came while others were waited for is there now.
        for post in posts.into_iter().chain(town.discord.posts()) {
            let there = posted.entry(post.channel).or_default();
            if !there.contains(&post.message) {
                there.push(post.message);
            }
        }
        let said = town.said_by_channel();
        for channel in &town.channels {
            let room = format!("discord:{}", channel.id);
            let recorded = history(server, &room).await;
            let gaps = account.gaps_of(&export(server, &room).await);
            account.compare_heard(&room, said.get(&channel.id).map_or(&[][..], Vec::as_slice), &recorded, &gaps);
            account.compare_posted(&room, posted.get(&channel.id).map_or(&[][..], Vec::as_slice), &recorded);
        }
        account
    }

    fn gaps_of(&mut self, events: &[Value]) -> Vec<(Id, Id)> {
        let mut gaps = Vec::new();
        for event in events.iter().filter(|event| event["event"] == "caught_up") {
            self.caught_up += 1;
            self.read_afterwards += event["read"].as_u64().unwrap_or_default();
            let missed = &event["missed"];
            if let (Some(after), Some(before)) = (Id::read(&missed["after"]), Id::read(&missed["before"])) {
                self.gaps += 1;
                gaps.push((after, before));
            }
        }
        gaps
    }

    fn compare_heard(&mut self, room: &str, said: &[&super::town::Said], recorded: &[Recorded], gaps: &[(Id, Id)]) {
        let mut heard = BTreeMap::<Id, Vec<&Recorded>>::new();
        for message in recorded.iter().filter(|message| !message.is_companions) {
            match message.id {
                Some(id) => heard.entry(id).or_default().push(message),
                None => self.doubled.push(format!("{room}: {} is nobody's: {}", message.seq, message.text)),
            }
        }
        for said in said {
            let there = heard.remove(&said.id).unwrap_or_default();
            match (&there[..], &said.text) {
                ([message], Some(text)) => {
                    self.on_record += 1;
                    // What was changed while nobody listened cannot be known.
                    self.unread_changes += usize::from(message.text != *text);
                }
                ([_], None) => self.unread_changes += 1,
                ([], None) => self.taken_back += 1,
                ([], Some(_)) if gaps.iter().any(|(after, before)| *after < said.id && said.id < *before) => self.in_gaps += 1,
                ([], Some(text)) => self.lost.push(format!("{room}: {} {text:?}", said.id)),
                ([..], _) => self.doubled.push(format!("{room}: {} is there {} times", said.id, there.len())),
            }
        }
        self.doubled.extend(heard.keys().map(|id| format!("{room}: nobody said {id}")));
        let ids = recorded.iter().filter(|message| !message.is_companions).filter_map(|message| message.id);
        let ids: Vec<Id> = ids.collect();
        if !ids.is_sorted() {
            self.disordered.push(format!("{room}: {ids:?}"));
        }
    }

    fn compare_posted(&mut self, room: &str, posted: &[Id], recorded: &[Recorded]) {
        let statements: Vec<&Recorded> = recorded.iter().filter(|message| message.is_companions).collect();
        let known: BTreeSet<Id> = statements.iter().filter_map(|statement| statement.id).collect();
        self.statements += statements.len();
        self.posted += posted.len();
        // A statement without an id is one that nobody could find again; what was posted of it is its own.
        let unconfirmed = statements.iter().filter(|statement| statement.id.is_none()).count();
        self.unconfirmed += unconfirmed;
        let extra: Vec<&Id> = posted.iter().filter(|id| !known.contains(id)).collect();
        if extra.len() > unconfirmed {
            self.doubled.push(format!("{room}: {extra:?} were posted besides what is on record"));
        }
        self.lost.extend(known.iter().filter(|id| !posted.contains(id)).map(|id| format!("{room}: {id} was never posted")));
    }

    pub fn assert_faultless(&self) {
        let faults = [&self.lost, &self.doubled, &self.disordered, &self.unrest].map(Vec::len).iter().sum::<usize>();
        assert_eq!(faults, 0, "{self:#?}");
        assert!(self.on_record > 0 && self.statements > 0, "{self}");
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "said {}: on record once {}, taken back {}, ", self.said, self.on_record, self.taken_back)?;
        write!(f, "in {} recorded gaps {}; changes that nobody could hear {}; ", self.gaps, self.in_gaps, self.unread_changes)?;
        write!(f, "channels read afterwards {} ({} messages); ", self.caught_up, self.read_afterwards)?;
        write!(f, "statements {}, posted {}, unconfirmed {}; ", self.statements, self.posted, self.unconfirmed)?;
        write!(f, "lost {}, doubled {}, out of order {}, ", self.lost.len(), self.doubled.len(), self.disordered.len())?;
        write!(f, "channels without rest {}", self.unrest.len())
    }
}

async fn history(server: &Server, room: &str) -> Vec<Recorded> {
    let mut told: Vec<Recorded> = Vec::new();
    loop {
        let after = told.last().map_or(0, |message| message.seq);
        let page = server.get(&format!("/api/rooms/{room}/history?after={after}&limit=1000")).await;
        let page = page["messages"].as_array().expect("messages");
        told.extend(page.iter().map(|message| Recorded {
            seq: message["seq"].as_u64().expect("a number"),
            id: Id::read(&message["id"]),
            is_companions: message["role"] == "companion",
            text: message["text"].as_str().expect("a text").to_owned(),
        }));
        if page.len() < 1000 {
            return told;
        }
    }
}

async fn export(server: &Server, room: &str) -> Vec<Value> {
    let export = server.get(&format!("/api/export?room={room}")).await;
    match export {
        Value::String(lines) => lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(),
        // A single line is JSON itself.
        line => vec![line],
    }
}
