//! Watches the events of a room.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::PATIENCE;

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// A live connection to a room.
pub struct Watch {
    socket: Socket,
    /// The events so far, to print when a wait fails.
    seen: Vec<Value>,
}

impl Watch {
    /// Connects to this WebSocket address.
    pub(super) async fn of(url: &str) -> Self {
        let connected = timeout(PATIENCE, tokio_tungstenite::connect_async(url)).await.expect("a connection in time");
        Self { socket: connected.expect("a WebSocket").0, seen: Vec::new() }
    }

    /// The next event. `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<Value> {
        self.next_within(PATIENCE).await
    }

    /// Like [`Self::next`], with a limit of its own.
    pub(super) async fn next_within(&mut self, patience: Duration) -> Option<Value> {
        // Pings are not events, and end no wait.
        let next = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Text(text))) => return Some(serde_json::from_str::<Value>(&text).expect("JSON")),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return None,
                }
            }
        };
        let event = timeout(patience, next).await.unwrap_or_else(|_| panic!("no further event: {:#?}", self.seen));
        self.seen.extend(event.clone());
        event
    }

    /// Waits for an event of this name.
    pub async fn event(&mut self, name: &str) -> Value {
        self.event_that(name, |_| true).await
    }

    /// Waits for an event of this name that passes the test.
    pub async fn event_that(&mut self, name: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        while let Some(event) = self.next().await {
            if event["event"] == name && is_wanted(&event) {
                return event;
            }
        }
        panic!("the connection ended before {name}: {:#?}", self.seen)
    }
}
