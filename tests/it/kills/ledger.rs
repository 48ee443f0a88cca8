//! The promises of the server, as its clients saw them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::task::JoinHandle;

use super::people::Accepted;
use crate::harness::{Server, Watch};

type Message = (u64, String, String);

/// What a trial found wrong.
#[derive(Debug, Default)]
pub struct Faults {
    pub lost: Vec<String>,
    pub duplicated: Vec<String>,
    /// Broken rules of rounds.
    pub broken: Vec<String>,
    /// Rooms that did not come to rest.
    pub restless: Vec<String>,
}

impl Faults {
    /// Adds the faults of a room.
    pub fn add(&mut self, room: &str, faults: Self) {
        let in_room = |fault: String| format!("{room}: {fault}");
        self.lost.extend(faults.lost.into_iter().map(in_room));
        self.duplicated.extend(faults.duplicated.into_iter().map(in_room));
        self.broken.extend(faults.broken.into_iter().map(in_room));
        self.restless.extend(faults.restless.into_iter().map(in_room));
    }

    pub fn are_none(&self) -> bool {
        [&self.lost, &self.duplicated, &self.broken, &self.restless].iter().all(|faults| faults.is_empty())
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lost, duplicated, broken, restless] =
            [&self.lost, &self.duplicated, &self.broken, &self.restless].map(|faults| faults.len());
        write!(f, "lost {lost}, duplicated {duplicated}, broken rules {broken}, rooms not at rest {restless}")
    }
}

/// Every accepted message, every event that a client saw, and the last history of each room.
#[derive(Default)]
pub struct Ledger {
    accepted: BTreeMap<(&'static str, u64), Accepted>,
    seen: BTreeMap<(&'static str, u64), Message>,
    histories: BTreeMap<&'static str, Vec<Message>>,
    sent_again: usize,
    readings: usize,
    pub forgotten: usize,
    /// How many rooms were made to be deleted. Each has a name of its own, because a deleted one keeps it for ten seconds.
    pub rooms: usize,
    pub faults: Faults,
}

/// A client that watches a room until the connection ends.
pub struct Observer {
    room: &'static str,
    messages: Arc<Mutex<Vec<Message>>>,
    watching: JoinHandle<()>,
}

impl Ledger {
    pub fn accepted(&self) -> usize {
        self.accepted.len()
    }

    /// Adds an accepted message.
    pub fn add(&mut self, message: Accepted) {
        let key = (message.room, message.seq);
        if let Some(other) = self.accepted.insert(key, message) {
            self.faults.duplicated.push(format!("{key:?} was given to {:?} before", other.text));
        }
    }

    /// The texts of the accepted messages of a room, by their numbers.
    pub fn accepted_in(&self, room: &str) -> BTreeMap<u64, &str> {
        let in_room = self.accepted.values().filter(|message| message.room == room);
        in_room.map(|message| (message.seq, &*message.text)).collect()
    }

    /// Watches rooms.
    pub async fn observers(&self, server: &Server, rooms: &[&'static str]) -> Vec<Observer> {
        let mut observers = Vec::new();
        for room in rooms {
            observers.push(Observer::of(room, server.watch(room, None).await));
        }
        observers
    }

    /// Adds the messages that the observers saw.
    pub async fn collect(&mut self, observers: Vec<Observer>) {
        for Observer { room, messages, watching } in observers {
            watching.await.expect("a connection ends with its server");
            for message in messages.lock().drain(..) {
                self.seen.insert((room, message.0), message);
            }
        }
    }

    /// Reads every room, and compares it with all promises. Then sends one message again with its old id.
    pub async fn compare(&mut self, server: &Server, chance: &mut StdRng) {
        let rooms: std::collections::BTreeSet<_> = self.accepted.keys().map(|(room, _)| *room).collect();
        for room in rooms {
            let history = server.history(room).await;
            self.compare_room(room, &history);
            self.histories.insert(room, history);
            self.readings += 1;
        }
        if !self.accepted.is_empty() {
            let index = chance.random_range(0..self.accepted.len());
            let Some(message) = self.accepted.values().nth(index) else { return };
            let Accepted { room, seq, from, text, id, .. } = message;
            let repeated = json!({ "from": from, "text": text, "id": id });
            let path = format!("/api/rooms/{room}/messages");
            let (status, body) = server.ask(reqwest::Method::POST, &path, Some(repeated)).await;
            if status != 202 || body["seq"] != *seq {
                self.faults.duplicated.push(format!("{id} was {seq} in {room}, sent again it is {status} {body}"));
            }
            self.sent_again += 1;
        }
    }

    fn compare_room(&mut self, room: &str, history: &[Message]) {
        let mut faults = Faults::default();
        let by_number: BTreeMap<_, _> = history.iter().map(|message| (message.0, message)).collect();
        if !history.is_sorted_by(|one, next| one.0 < next.0) {
            faults.duplicated.push("the numbers do not ascend".into());
        }
        let before = self.histories.get(room).map(Vec::as_slice).unwrap_or_default();
        if let Some((was, _)) =
            before.iter().zip(history.iter().map(Some).chain(std::iter::repeat(None))).find(|(was, is)| Some(*was) != *is)
        {
            faults.lost.push(format!("before the kill it was: {was:?}"));
        }
        for ((_, seq), seen) in self.seen.iter().filter(|((seen_in, _), _)| *seen_in == room) {
            if by_number.get(seq).is_none_or(|message| *message != seen) {
                faults.lost.push(format!("a client saw {seen:?}, the history has {:?}", by_number.get(seq)));
            }
        }
        let mut newest = BTreeMap::new();
        for ((_, seq), message) in self.accepted.iter().filter(|((accepted_in, _), _)| *accepted_in == room) {
            let Accepted { from, text, number, .. } = message;
            if by_number.get(seq).is_none_or(|(_, is_from, is_text)| is_from != from || is_text != text) {
                faults.lost.push(format!("{text:?} was accepted as {seq}, the history has {:?}", by_number.get(seq)));
            }
            if newest.insert(from, number).is_some_and(|before| before >= number) {
                faults.lost.push(format!("{text:?} is out of its writer's order"));
            }
        }
        // Each writer sends each text once.
        let mut texts = BTreeMap::new();
        for (seq, from, text) in history.iter().filter(|(_, from, _)| from.starts_with("Writer")) {
            if let Some(first) = texts.insert((from, text), seq) {
                faults.duplicated.push(format!("{text:?} is there as {first} and as {seq}"));
            }
        }
        self.faults.add(room, faults);
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unanswered: usize = self.accepted.values().filter(|message| message.unanswered > 0).count();
        write!(f, "accepted {} ({unanswered} of them sent again because a kill prevented the answer), ", self.accepted.len())?;
        write!(f, "messages and statements seen live {}, sent again with a known id {}, ", self.seen.len(), self.sent_again)?;
        write!(f, "forgotten on request {}, rooms read through {} times", self.forgotten, self.readings)
    }
}

impl Observer {
    fn of(room: &'static str, mut watch: Watch) -> Self {
        let messages: Arc<Mutex<Vec<Message>>> = Arc::default();
        let received = messages.clone();
        let watching = tokio::spawn(async move {
            while let Some(event) = watch.next().await {
                if event["event"] != "message" {
                    continue;
                }
                let text = |field: &str| event[field].as_str().expect("text").to_owned();
                let message = (event["seq"].as_u64().expect("a number"), text("from"), text("text"));
                received.lock().push(message);
            }
        });
        Self { room, messages, watching }
    }
}
