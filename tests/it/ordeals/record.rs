//! What is on record of a room in which one companion lives: how each message settled, and what came of the turn that it settled with.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::harness::Server;

/// A room as its record tells it.
#[derive(Debug, Default)]
pub struct Record {
    /// What people said.
    people: Vec<u64>,
    /// What settled each message, in order.
    settled: BTreeMap<u64, Vec<Settled>>,
    /// The turns, by their tickets.
    turns: BTreeMap<u64, Turn>,
}

/// What settled a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// It was decided to stay silent on it.
    InSilence,
    /// The turn with this ticket was to answer it.
    By(u64),
}

/// A reply that was owed.
#[derive(Debug, Default)]
struct Turn {
    /// How often it was.
    owed: usize,
    /// What came of it, each time: the number of the statement, or why there is none.
    ends: Vec<Result<u64, String>>,
}

impl Record {
    /// Reads the record of a room once nothing is open in it. What was said there already is said again: that is answered after everything that
    /// a room at rest has handed in is on record, and changes nothing.
    pub async fn at_rest(server: &Server, room: &str, said: &Value) -> Self {
        server.rest(room).await;
        let (status, body) = server.ask(Method::POST, &format!("/api/rooms/{room}/messages"), Some(said.clone())).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
        let export = server.get(&format!("/api/export?room={room}")).await;
        let mut record = Self::default();
        for event in export.as_str().expect("lines").lines() {
            record.enter(&serde_json::from_str(event).expect("JSON"));
        }
        record
    }

    fn enter(&mut self, event: &Value) {
        match event["event"].as_str().expect("a name") {
            "said" if event["message"]["from"]["role"] == "companion" => {
                self.turns.entry(number(event, "reply")).or_default().ends.push(Ok(number(event, "seq")));
            }
            "said" => self.people.push(number(event, "seq")),
            "decided" => self.settle(event, Settled::InSilence),
            "reply_owed" => {
                let ticket = number(event, "ticket");
                self.turns.entry(ticket).or_default().owed += 1;
                self.settle(event, Settled::By(ticket));
            }
            "reply_failed" => {
                let error = event["error"].as_str().expect("a code").to_owned();
                self.turns.entry(number(event, "ticket")).or_default().ends.push(Err(error));
            }
            _ => {}
        }
    }

    fn settle(&mut self, event: &Value, how: Settled) {
        for message in event["messages"].as_array().into_iter().flatten() {
            self.settled.entry(message.as_u64().expect("a number")).or_default().push(how);
        }
    }

    /// People said this and nothing else; each message settled once; every turn was owed once, for something that settled with it, and
    /// ended once.
    pub fn assert_exact(&self, said: &[u64]) {
        assert_eq!(self.people, said, "{self:#?}");
        let settled: Vec<_> = said.iter().map(|seq| (*seq, self.settled.get(seq).map_or(0, Vec::len))).collect();
        assert!(settled.iter().all(|(_, times)| *times == 1), "settled so many times: {settled:?}: {self:#?}");
        for (ticket, turn) in &self.turns {
            assert_eq!((turn.owed, turn.ends.len()), (1, 1), "{ticket}: {self:#?}");
            assert!(
                self.settled.values().flatten().any(|how| *how == Settled::By(*ticket)),
                "nobody asked for {ticket}: {self:#?}"
            );
        }
    }

    /// What came of the turn that a message settled with: the number of the statement, or why there is none. Several messages may have settled
    /// with one turn.
    pub fn answer(&self, seq: u64) -> Result<u64, &str> {
        let Some([Settled::By(ticket)]) = self.settled.get(&seq).map(Vec::as_slice) else {
            panic!("{seq} settled without a turn: {self:#?}");
        };
        self.turns[ticket].ends[0].as_ref().copied().map_err(String::as_str)
    }

    /// What was said for the turns on record.
    pub fn statements(&self) -> Vec<u64> {
        let made = self.turns.values().flat_map(|turn| &turn.ends).flatten().copied();
        made.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn number(event: &Value, field: &str) -> u64 {
    event[field].as_u64().unwrap_or_else(|| panic!("{field} is no number: {event}"))
}
