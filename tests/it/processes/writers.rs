//! Simulated people who continue to talk while the server is killed and restarted.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, watch};

/// A message that the server has accepted.
pub struct Accepted {
    pub room: &'static str,
    pub seq: u64,
    pub from: String,
    pub text: String,
    /// The writer's id. A message that is sent again with the same id is the same message.
    pub id: String,
    /// The number of attempts without an answer.
    pub unanswered: usize,
}

/// Tells the writers whether and where the server runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Sign {
    Open(String),
    Closed,
    /// The writers stop after the next message.
    Over(String),
}

/// Sends one message after the other to a room. `line` makes the text from the numbers of the writer and the message; each message takes a permit.
/// A message without an answer is sent again with the same id.
pub async fn write(
    writer: usize,
    room: &'static str,
    line: fn(usize, usize) -> String,
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
                    accepted.send(Accepted { room, seq, from, text, id, unanswered }).expect("the receiver is open");
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
