//! People who talk on while the server is killed under them.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, watch};

/// A message that the server has accepted.
pub struct Accepted {
    pub room: &'static str,
    pub seq: u64,
    pub from: String,
    pub text: String,
    /// What the writer calls it; said again with it, it is the same message.
    pub id: String,
    /// How often it was said before it was known to be accepted.
    pub unanswered: usize,
}

/// Where the writers find the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Sign {
    Open(String),
    Closed,
    /// They go home after the next word.
    Over(String),
}

/// Says one thing after the other in a room, in the words of `line` for the writer and the message's number, and as many as `words` allow.
/// What nobody knows to be accepted is said again with the same id.
pub async fn write(
    writer: usize,
    room: &'static str,
    line: fn(usize, usize) -> String,
    words: Arc<Semaphore>,
    mut sign: watch::Receiver<Sign>,
    tell: mpsc::UnboundedSender<Accepted>,
) {
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    for number in 0.. {
        words.acquire().await.expect("somebody allows words").forget();
        let (text, from, id) = (line(writer, number), format!("Writer{writer}"), format!("w{writer}n{number}"));
        let said = json!({ "from": from, "text": text, "id": id });
        for unanswered in 0.. {
            let now = sign.wait_for(|sign| *sign != Sign::Closed).await.expect("there is a sign").clone();
            let (Sign::Open(url) | Sign::Over(url)) = &now else { unreachable!("it is not closed") };
            match post(&http, url, room, &said).await {
                Some(seq) => {
                    tell.send(Accepted { room, seq, from, text, id, unanswered }).expect("somebody counts");
                    break;
                }
                None => drop(sign.wait_for(|sign| *sign != now).await.expect("there is a sign")),
            }
        }
        if matches!(*sign.borrow(), Sign::Over(_)) {
            return;
        }
    }
}

/// The message's number; none if the server is gone.
async fn post(http: &reqwest::Client, url: &str, room: &str, said: &Value) -> Option<u64> {
    let response = http.post(format!("{url}/api/rooms/{room}/messages")).json(said).send().await.ok()?;
    let status = response.status();
    let body: Value = response.json().await.ok()?;
    assert_eq!(status, 202, "{body}");
    body["seq"].as_u64()
}
