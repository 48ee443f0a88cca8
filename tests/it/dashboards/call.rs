//! A page in a voice call, as far as the evening needs one.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{PATIENCE, Server};

/// A packet of silence with its header: the first of a microphone.
const SILENCE: [u8; 8] = [1, 0, 0, 0, 0, 0xf8, 0xff, 0xfe];

/// One person's connection to a call.
pub struct Page(tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>);

impl Page {
    /// Enters the call of a room, and sends a packet of silence.
    pub async fn enter(server: &Server, room: &str, from: &str) -> Self {
        let url = format!("{}/api/voice?room={room}&from={from}&v=1", server.url.replacen("http", "ws", 1));
        let connected = timeout(PATIENCE, tokio_tungstenite::connect_async(url)).await.expect("a connection in time");
        let mut page = Self(connected.expect("a WebSocket").0);
        page.wait_for("hello").await;
        page.0.send(Message::binary(SILENCE.to_vec())).await.expect("it is connected");
        page
    }

    /// Says a text as if it were spoken.
    pub async fn say(&mut self, text: &str) {
        self.send(json!({ "type": "say", "text": text })).await;
    }

    pub async fn send(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.expect("it is connected");
    }

    /// Waits for a message of this type.
    pub async fn wait_for(&mut self, kind: &str) -> Value {
        let message = async {
            while let Some(Ok(message)) = self.0.next().await {
                let Message::Text(text) = message else { continue };
                let message: Value = serde_json::from_str(&text).expect("JSON");
                if message["type"] == kind {
                    return message;
                }
            }
            panic!("the connection ended before {kind}")
        };
        timeout(PATIENCE, message).await.unwrap_or_else(|_| panic!("no {kind}"))
    }

    /// Leaves the call.
    pub async fn leave(mut self) {
        self.send(json!({ "type": "leave" })).await;
        while let Some(Ok(_)) = timeout(PATIENCE, self.0.next()).await.expect("it is closed in time") {}
    }
}
