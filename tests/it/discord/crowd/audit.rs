//! Compares what a server has on record with the messages that Discord sent and with the posts that Discord received.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::super::counterpart::Id;
use super::town::{PersonMessage, Town};
use crate::harness::Server;

/// How long a channel may take to come to rest. One that takes longer is reported.
const REST: Duration = Duration::from_secs(120);

/// The result of the comparison.
#[derive(Debug, Default)]
pub struct Audit {
    /// Messages that people wrote, and how many of them are on record, were deleted, or are in a recorded gap.
    pub written: usize,
    pub on_record: usize,
    pub deleted: usize,
    pub in_gaps: usize,
    /// Recorded gaps, records of catching up on a channel, and the messages read then.
    pub gaps: usize,
    pub caught_up: usize,
    pub read_afterwards: u64,
    /// Statements on record, posts on Discord, and statements without a confirmed post.
    pub statements: usize,
    pub posted: usize,
    pub unconfirmed: usize,
    pub lost: Vec<String>,
    pub duplicated: Vec<String>,
    pub out_of_order: Vec<String>,
    pub unseen_changes: usize,
    pub still_busy: Vec<String>,
}

/// A message as it is on record.
struct Recorded {
    seq: u64,
    id: Option<Id>,
    is_companions: bool,
    text: String,
}

impl Audit {
    /// Waits until every channel is at rest, and compares.
    pub async fn of(town: &Town, server: &Server) -> Self {
        let mut audit = Self { written: town.messages.len(), ..Self::default() };
        let posts = town.discord.posts();
        let mut posted = BTreeMap::<Id, Vec<Id>>::new();
        for channel in &town.channels {
            let room = format!("discord:{}", channel.id);
            if timeout(REST, server.rest_within(&room, REST * 2)).await.is_err() {
                let state = server.get(&format!("/api/rooms/{room}/state")).await;
                audit.still_busy.push(format!("{room}: {state}; {:#?}", server.log_lines_with(&room)));
            }
        }
        // Posts that arrived while channels were awaited are included.
        for post in posts.into_iter().chain(town.discord.posts()) {
            let ids = posted.entry(post.channel).or_default();
            if !ids.contains(&post.message) {
                ids.push(post.message);
            }
        }
        let written = town.messages_by_channel();
        for channel in &town.channels {
            let room = format!("discord:{}", channel.id);
            let recorded = history(server, &room).await;
            let gaps = audit.gaps_of(&export(server, &room).await);
            audit.compare_inbound(&room, written.get(&channel.id).map_or(&[][..], Vec::as_slice), &recorded, &gaps);
            audit.compare_posted(&room, posted.get(&channel.id).map_or(&[][..], Vec::as_slice), &recorded);
        }
        audit
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

    fn compare_inbound(&mut self, room: &str, written: &[&PersonMessage], recorded: &[Recorded], gaps: &[(Id, Id)]) {
        let mut inbound = BTreeMap::<Id, Vec<&Recorded>>::new();
        for message in recorded.iter().filter(|message| !message.is_companions) {
            match message.id {
                Some(id) => inbound.entry(id).or_default().push(message),
                None => self.duplicated.push(format!("{room}: {} has no id: {}", message.seq, message.text)),
            }
        }
        for sent in written {
            let found = inbound.remove(&sent.id).unwrap_or_default();
            match (&found[..], &sent.text) {
                ([message], Some(text)) => {
                    self.on_record += 1;
                    // Changes while no connection was up cannot be known.
                    self.unseen_changes += usize::from(message.text != *text);
                }
                ([_], None) => self.unseen_changes += 1,
                ([], None) => self.deleted += 1,
                ([], Some(_)) if gaps.iter().any(|(after, before)| *after < sent.id && sent.id < *before) => self.in_gaps += 1,
                ([], Some(text)) => self.lost.push(format!("{room}: {} {text:?}", sent.id)),
                ([..], _) => self.duplicated.push(format!("{room}: {} is on record {} times", sent.id, found.len())),
            }
        }
        self.duplicated.extend(inbound.keys().map(|id| format!("{room}: nobody wrote {id}")));
        let ids = recorded.iter().filter(|message| !message.is_companions).filter_map(|message| message.id);
        let ids: Vec<Id> = ids.collect();
        if !ids.is_sorted() {
            self.out_of_order.push(format!("{room}: {ids:?}"));
        }
    }

    fn compare_posted(&mut self, room: &str, posted: &[Id], recorded: &[Recorded]) {
        let statements: Vec<&Recorded> = recorded.iter().filter(|message| message.is_companions).collect();
        let confirmed: BTreeSet<Id> = statements.iter().filter_map(|statement| statement.id).collect();
        self.statements += statements.len();
        self.posted += posted.len();
        // A statement without an id could not be found on Discord again. One post without a statement may belong to it.
        let unconfirmed = statements.iter().filter(|statement| statement.id.is_none()).count();
        self.unconfirmed += unconfirmed;
        let extra: Vec<&Id> = posted.iter().filter(|id| !confirmed.contains(id)).collect();
        if extra.len() > unconfirmed {
            self.duplicated.push(format!("{room}: {extra:?} were posted besides what is on record"));
        }
        self.lost.extend(confirmed.iter().filter(|id| !posted.contains(id)).map(|id| format!("{room}: {id} was never posted")));
    }

    pub fn has_faults(&self) -> bool {
        [&self.lost, &self.duplicated, &self.out_of_order, &self.still_busy].iter().any(|faults| !faults.is_empty())
    }

    pub fn assert_faultless(&self) {
        assert!(!self.has_faults(), "{self:#?}");
        assert!(self.on_record > 0 && self.statements > 0, "{self}");
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "written {}: on record once {}, deleted {}, ", self.written, self.on_record, self.deleted)?;
        write!(
            f,
            "in {} recorded gaps {}; changes that no connection received {}; ",
            self.gaps, self.in_gaps, self.unseen_changes
        )?;
        write!(f, "channels read afterwards {} ({} messages); ", self.caught_up, self.read_afterwards)?;
        write!(f, "statements {}, posted {}, unconfirmed {}; ", self.statements, self.posted, self.unconfirmed)?;
        write!(f, "lost {}, duplicated {}, out of order {}, ", self.lost.len(), self.duplicated.len(), self.out_of_order.len())?;
        write!(f, "channels that did not come to rest {}", self.still_busy.len())
    }
}

async fn history(server: &Server, room: &str) -> Vec<Recorded> {
    let mut recorded: Vec<Recorded> = Vec::new();
    loop {
        let after = recorded.last().map_or(0, |message| message.seq);
        let page = server.get(&format!("/api/rooms/{room}/history?after={after}&limit=1000")).await;
        let page = page["messages"].as_array().expect("messages");
        recorded.extend(page.iter().map(|message| Recorded {
            seq: message["seq"].as_u64().expect("a number"),
            id: Id::read(&message["id"]),
            is_companions: message["role"] == "companion",
            text: message["text"].as_str().expect("a text").to_owned(),
        }));
        if page.len() < 1000 {
            return recorded;
        }
    }
}

pub async fn export(server: &Server, room: &str) -> Vec<Value> {
    let export = server.get(&format!("/api/export?room={room}")).await;
    match export {
        Value::String(lines) => lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(),
        // A single line was parsed as JSON already.
        line => vec![line],
    }
}
