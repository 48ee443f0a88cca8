//! What happens in a room.

use std::time::Duration;

use futures_util::StreamExt as _;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::PATIENCE;

/// What a talk may have come to when it is interrupted, after so many events more.
const MOMENTS: [&str; 7] = ["round_opened", "evaluate", "decision", "round", "respond", "statement", "closing"];
const EVENTS_AFTER_IT: std::ops::RangeInclusive<usize> = 0..=6;

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// A room that is watched.
pub struct Watch {
    socket: Socket,
    /// What has happened so far, for whoever waits in vain.
    seen: Vec<Value>,
}

impl Watch {
    /// Watches what is told at this address.
    pub(super) async fn of(url: &str) -> Self {
        let connected = timeout(PATIENCE, tokio_tungstenite::connect_async(url)).await.expect("a connection in time");
        Self { socket: connected.expect("a WebSocket").0, seen: Vec::new() }
    }

    /// Lets a talk go on until something happens that chance chooses, or so long at most.
    pub async fn until_some_moment(&mut self, longest: Duration, chance: &mut StdRng) {
        // Not waiting for anything by the clock: when the server is killed is all that this chooses.
        let life = longest.mul_f64(chance.random());
        let moment = MOMENTS[chance.random_range(0..MOMENTS.len())];
        let events = chance.random_range(EVENTS_AFTER_IT);
        let _ = timeout(life, async {
            self.event(moment).await;
            for _ in 0..events {
                self.next().await;
            }
        })
        .await;
    }

    /// The next event; none when the connection is over.
    pub async fn next(&mut self) -> Option<Value> {
        self.next_within(PATIENCE).await
    }

    /// The same, waited for so long at most.
    pub(super) async fn next_within(&mut self, patience: Duration) -> Option<Value> {
        // Pings are no events: they end no wait.
        let next = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Text(text))) => return Some(serde_json::from_str::<Value>(&text).expect("JSON")),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return None,
                }
            }
        };
        let event = timeout(patience, next).await.unwrap_or_else(|_| panic!("nothing happens any more: {:#?}", self.seen));
        self.seen.extend(event.clone());
        event
    }

    /// Waits for an event of this name.
    pub async fn event(&mut self, name: &str) -> Value {
        self.event_that(name, |_| true).await
    }

    /// Waits for an event of this name of which that is true.
    pub async fn event_that(&mut self, name: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        while let Some(event) = self.next().await {
            if event["event"] == name && is_it(&event) {
                return event;
            }
        }
        panic!("the connection ended before {name}: {:#?}", self.seen)
    }
}
