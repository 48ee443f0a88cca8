//! The record of a room with one companion: how each message settled, and the result of the reply that it settled with.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::harness::Server;

/// The state of a room, reconstructed from its record.
#[derive(Debug, Default)]
pub struct Record {
    /// The numbers of the messages by people.
    people: Vec<u64>,
    /// What settled each message, in order.
    settled: BTreeMap<u64, Vec<Settled>>,
    /// The replies, by their tickets.
    replies: BTreeMap<u64, Reply>,
}

/// How a message settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// The companion decided to stay silent.
    Silently,
    /// With the reply of this ticket.
    By(u64),
}

/// A reply that was owed.
#[derive(Debug, Default)]
struct Reply {
    /// How often it was recorded as owed.
    owed: usize,
    /// Each result: the number of the statement, or the error code.
    results: Vec<Result<u64, String>>,
}

impl Record {
    /// Waits until nothing is open in a room, and reads its record. Before that, it sends an earlier message again, which changes nothing. That is
    /// answered only once every event that the room handed to the writer is on record.
    pub async fn at_rest(server: &Server, room: &str, repeated: &Value) -> Self {
        server.rest(room).await;
        let (status, body) = server.ask(Method::POST, &format!("/api/rooms/{room}/messages"), Some(repeated.clone())).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
        let export = server.get(&format!("/api/export?room={room}")).await;
        let mut record = Self::default();
        for event in export.as_str().expect("lines").lines() {
            record.apply(&serde_json::from_str(event).expect("JSON"));
        }
        record
    }

    fn apply(&mut self, event: &Value) {
        match event["event"].as_str().expect("a name") {
            "said" if event["message"]["from"]["role"] == "companion" => {
                self.replies.entry(number(event, "reply")).or_default().results.push(Ok(number(event, "seq")));
            }
            "said" => self.people.push(number(event, "seq")),
            "decided" => self.settle(event, Settled::Silently),
            "reply_owed" => {
                let ticket = number(event, "ticket");
                self.replies.entry(ticket).or_default().owed += 1;
                self.settle(event, Settled::By(ticket));
            }
            "replanned" => self.begin_again(event),
            "cancelled" => {
                self.replies.entry(number(event, "ticket")).or_default().results.push(Err("cancelled".to_owned()));
            }
            "reply_failed" => {
                let error = event["error"].as_str().expect("a code").to_owned();
                self.replies.entry(number(event, "ticket")).or_default().results.push(Err(error));
            }
            _ => {}
        }
    }

    /// The next attempt of a reply answers the same messages and those that follow. The attempt before must have no result.
    fn begin_again(&mut self, event: &Value) {
        let (ticket, next) = (number(event, "ticket"), number(event, "next"));
        let reply = self.replies.remove(&ticket).unwrap_or_default();
        self.replies.insert(next, reply);
        for seq in messages(event) {
            let how = self.settled.entry(seq).or_default();
            match how.iter_mut().find(|how| **how == Settled::By(ticket)) {
                Some(how) => *how = Settled::By(next),
                None => how.push(Settled::By(next)),
            }
        }
    }

    fn settle(&mut self, event: &Value, how: Settled) {
        for message in messages(event) {
            self.settled.entry(message).or_default().push(how);
        }
    }

    /// Checks that these are all messages by people, that each settled once, and that every reply was owed once, has one result, and settled a
    /// message.
    pub fn assert_exact(&self, messages: &[u64]) {
        assert_eq!(self.people, messages, "{self:#?}");
        let settled: Vec<_> = messages.iter().map(|seq| (*seq, self.settled.get(seq).map_or(0, Vec::len))).collect();
        assert!(settled.iter().all(|(_, times)| *times == 1), "not settled once each: {settled:?}: {self:#?}");
        for (ticket, reply) in &self.replies {
            assert_eq!((reply.owed, reply.results.len()), (1, 1), "{ticket}: {self:#?}");
            assert!(
                self.settled.values().flatten().any(|how| *how == Settled::By(*ticket)),
                "no message settled with {ticket}: {self:#?}"
            );
        }
    }

    /// The result of the reply that a message settled with: the number of the statement, or the error code. Several messages may settle with one
    /// reply.
    pub fn answer(&self, seq: u64) -> Result<u64, &str> {
        let Some([Settled::By(ticket)]) = self.settled.get(&seq).map(Vec::as_slice) else {
            panic!("{seq} settled without a reply: {self:#?}");
        };
        self.replies[ticket].results[0].as_ref().copied().map_err(String::as_str)
    }

    /// The numbers of the statements of all replies.
    pub fn statements(&self) -> Vec<u64> {
        let numbers = self.replies.values().flat_map(|reply| &reply.results).flatten().copied();
        numbers.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn messages(event: &Value) -> impl Iterator<Item = u64> {
    event["messages"].as_array().into_iter().flatten().map(|message| message.as_u64().expect("a number"))
}

fn number(event: &Value, field: &str) -> u64 {
    event[field].as_u64().unwrap_or_else(|| panic!("{field} is no number: {event}"))
}
