//! Simulated people who continue to talk while the server is killed and restarted.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{REST, ROOMS};
use crate::harness::{PATIENCE, Server};

const PEOPLE_IN_A_ROOM: usize = 2;

/// A message that the server has accepted.
pub struct Accepted {
    pub room: &'static str,
    pub seq: u64,
    pub from: String,
    pub text: String,
    /// The writer's id. A message that is sent again with the same id is the same message.
    pub id: String,
    /// How many messages its writer sent before.
    pub number: usize,
    /// The number of attempts without an answer.
    pub unanswered: usize,
}

/// Tells the writers whether and where the server runs.
#[derive(Clone, Debug, PartialEq)]
enum Sign {
    Open(String),
    Closed,
    /// The writers stop after the next message.
    Over(String),
}

/// The people in all rooms.
pub struct People {
    sign: watch::Sender<Sign>,
    permits: Arc<Semaphore>,
    accepted: mpsc::UnboundedReceiver<Accepted>,
    writers: Vec<JoinHandle<()>>,
}

impl People {
    pub fn arrive() -> Self {
        let (sign, permits) = (watch::Sender::new(Sign::Closed), Arc::new(Semaphore::new(0)));
        let (sender, accepted) = mpsc::unbounded_channel();
        let writers = (0..ROOMS.len() * PEOPLE_IN_A_ROOM).map(|writer| {
            let room = ROOMS[writer % ROOMS.len()].0;
            tokio::spawn(write(writer, room, permits.clone(), sign.subscribe(), sender.clone()))
        });
        Self { writers: writers.collect(), sign, permits, accepted }
    }

    /// They send this many messages to this server.
    pub fn talk(&self, server: &Server, messages: usize) {
        self.sign.send_replace(Sign::Open(server.url.clone()));
        self.permits.add_permits(messages);
    }

    /// They wait for the next server. They do not say the rest of what they were to say, except what was sent without an answer.
    pub fn pause(&self) {
        self.sign.send_replace(Sign::Closed);
        self.permits.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Waits for the next message that is accepted.
    pub async fn next_accepted(&mut self) -> Accepted {
        timeout(PATIENCE, self.accepted.recv()).await.expect("messages are accepted").expect("the writers run")
    }

    /// The messages that were accepted meanwhile.
    pub fn accepted(&mut self) -> impl Iterator<Item = Accepted> {
        std::iter::from_fn(|| self.accepted.try_recv().ok())
    }

    /// Each says one more thing to this server, and leaves. Returns the last accepted messages.
    pub async fn leave(mut self, server: &Server) -> Vec<Accepted> {
        self.sign.send_replace(Sign::Over(server.url.clone()));
        self.permits.add_permits(self.writers.len());
        for writer in &mut self.writers {
            timeout(REST, writer).await.expect("the writer ends").expect("the writer does not panic");
        }
        self.accepted().collect()
    }
}

/// A message: some address one companion, some address several, some ask to stop, most address nobody. So people follow up, and interrupt.
fn line(writer: usize, number: usize) -> String {
    let kind = ["", "cleo, ", "", "aria and bruno, ", "", "never mind", "bruno, ", "", "aria, bruno, cleo, ", "cleo, stop"];
    match kind[(writer + number) % kind.len()] {
        // The mention makes it different from all others.
        phrase if phrase.ends_with(char::is_alphabetic) => format!("{phrase} <w{writer}n{number}>"),
        address => format!("{address}what of w{writer}n{number}?"),
    }
}

/// Sends one message after the other to a room; each takes a permit. A message without an answer is sent again with the same id.
async fn write(
    writer: usize,
    room: &'static str,
    permits: Arc<Semaphore>,
    mut sign: watch::Receiver<Sign>,
    accepted: mpsc::UnboundedSender<Accepted>,
) {
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    for number in 0.. {
        permits.acquire().await.expect("the semaphore is open").forget();
        let (text, from, id) = (line(writer, number), format!("Writer{writer}"), format!("w{writer}n{number}"));
        let message = json!({ "from": from, "text": text, "id": id });
        for unanswered in 0.. {
            let current = sign.wait_for(|sign| *sign != Sign::Closed).await.expect("the sender is open").clone();
            let (Sign::Open(url) | Sign::Over(url)) = &current else { unreachable!("the wait excludes Closed") };
            match post(&http, url, room, &message).await {
                Some(seq) => {
                    accepted.send(Accepted { room, seq, from, text, id, number, unanswered }).expect("the receiver is open");
                    break;
                }
                None => drop(sign.wait_for(|sign| *sign != current).await.expect("the sender is open")),
            }
        }
        if matches!(*sign.borrow(), Sign::Over(_)) {
            return;
        }
    }
}

/// Returns the message's number, or `None` if the server does not answer.
async fn post(http: &reqwest::Client, url: &str, room: &str, message: &Value) -> Option<u64> {
    let response = http.post(format!("{url}/api/rooms/{room}/messages")).json(message).send().await.ok()?;
    let status = response.status();
    let body: Value = response.json().await.ok()?;
    assert_eq!(status, 202, "{body}");
    body["seq"].as_u64()
}
