//! What the server has promised, kept by those who talk to it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::harness::{Server, Watch};
use crate::processes::writers::Accepted;

type Said = (u64, String, String);

/// Every message that was accepted, every statement that somebody saw, and how each room read last.
#[derive(Default)]
pub struct Book {
    accepted: BTreeMap<(&'static str, u64), Accepted>,
    seen: BTreeMap<(&'static str, u64), Said>,
    read: BTreeMap<&'static str, Vec<Said>>,
    said_again: usize,
    readings: usize,
    pub forgotten: usize,
    pub lost: Vec<String>,
    pub doubled: Vec<String>,
}

/// Somebody who watches a room until the connection ends.
pub struct Witness {
    room: &'static str,
    saw: Arc<Mutex<Vec<Said>>>,
    watching: JoinHandle<()>,
}

impl Book {
    pub fn accepted(&self) -> usize {
        self.accepted.len()
    }

    /// A message was accepted.
    pub fn enter(&mut self, message: Accepted) {
        let place = (message.room, message.seq);
        if let Some(other) = self.accepted.insert(place, message) {
            self.doubled.push(format!("{place:?} was given to {:?} before", other.text));
        }
    }

    pub fn accepted_in(&self, room: &str) -> Vec<&Accepted> {
        self.accepted.values().filter(|message| message.room == room).collect()
    }

    /// Has rooms watched.
    pub async fn witnesses(&self, server: &Server, rooms: &[&'static str]) -> Vec<Witness> {
        let mut witnesses = Vec::new();
        for room in rooms {
            witnesses.push(Witness::of(room, server.watch(room, None).await));
        }
        witnesses
    }

    /// What they saw must be there from now on.
    pub async fn hear(&mut self, witnesses: Vec<Witness>) {
        for Witness { room, saw, watching } in witnesses {
            watching.await.expect("a connection ends with its server");
            for said in saw.lock().expect("no panic while held").drain(..) {
                self.seen.insert((room, said.0), said);
            }
        }
    }

    /// Reads every room, and compares it with all that was promised. A message is said once more with the id that it had.
    pub async fn compare(&mut self, server: &Server, chance: &mut StdRng) {
        let rooms: std::collections::BTreeSet<_> = self.accepted.keys().map(|(room, _)| *room).collect();
        for room in rooms {
            let history = server.history(room).await;
            self.compare_room(room, &history);
            self.read.insert(room, history);
            self.readings += 1;
        }
        if !self.accepted.is_empty() {
            let place = chance.random_range(0..self.accepted.len());
            let Some(message) = self.accepted.values().nth(place) else { return };
            let Accepted { room, seq, from, text, id, .. } = message;
            let said = json!({ "from": from, "text": text, "id": id });
            let path = format!("/api/rooms/{room}/messages");
            let (status, body) = server.ask(reqwest::Method::POST, &path, Some(said)).await;
            if status != 202 || body["seq"] != *seq {
                self.doubled.push(format!("{id} was {seq} in {room}, said again it is {status} {body}"));
            }
            self.said_again += 1;
        }
    }

    fn compare_room(&mut self, room: &str, history: &[Said]) {
        let at = |what: String| format!("{room}: {what}");
        let by_number: BTreeMap<_, _> = history.iter().map(|said| (said.0, said)).collect();
        if !history.is_sorted_by(|one, next| one.0 < next.0) {
            self.doubled.push(at("the numbers do not ascend".into()));
        }
        let before = self.read.get(room).map(Vec::as_slice).unwrap_or_default();
        if let Some((was, _)) =
            before.iter().zip(history.iter().map(Some).chain(std::iter::repeat(None))).find(|(was, is)| Some(*was) != *is)
        {
            self.lost.push(at(format!("it read otherwise before the kill: {was:?}")));
        }
        for ((_, seq), seen) in self.seen.iter().filter(|((seen, _), _)| *seen == room) {
            if by_number.get(seq).is_none_or(|said| *said != seen) {
                self.lost.push(at(format!("somebody saw {seen:?}, it reads {:?}", by_number.get(seq))));
            }
        }
        for ((_, seq), message) in self.accepted.iter().filter(|((known, _), _)| *known == room) {
            if by_number.get(seq).is_none_or(|(_, from, text)| *from != message.from || *text != message.text) {
                self.lost.push(at(format!("{:?} was accepted as {seq}, it reads {:?}", message.text, by_number.get(seq))));
            }
        }
        // What people say is said once by each.
        let mut texts = BTreeMap::new();
        for (seq, from, text) in history.iter().filter(|(_, from, _)| from.starts_with("Writer")) {
            if let Some(first) = texts.insert((from, text), seq) {
                self.doubled.push(at(format!("{text:?} is there as {first} and as {seq}")));
            }
        }
    }
}

impl fmt::Display for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unanswered: usize = self.accepted.values().filter(|message| message.unanswered > 0).count();
        write!(f, "accepted {} ({unanswered} of them said again because a kill took the answer), ", self.accepted.len())?;
        write!(f, "statements and messages seen live {}, said again with a known id {}, ", self.seen.len(), self.said_again)?;
        write!(f, "forgotten on request {}, rooms read through {} times", self.forgotten, self.readings)
    }
}

impl Witness {
    fn of(room: &'static str, mut watch: Watch) -> Self {
        let saw: Arc<Mutex<Vec<Said>>> = Arc::default();
        let notes = saw.clone();
        let watching = tokio::spawn(async move {
            while let Some(event) = watch.next().await {
                if event["event"] != "message" {
                    continue;
                }
                let text = |field: &str| event[field].as_str().expect("text").to_owned();
                let said = (event["seq"].as_u64().expect("a number"), text("from"), text("text"));
                notes.lock().expect("no panic while held").push(said);
            }
        });
        Self { room, saw, watching }
    }
}
