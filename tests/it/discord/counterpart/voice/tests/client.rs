//! A minimal client for tests: a WebSocket of the voice gateway.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::super::{Grant, Mode};
use crate::harness::PATIENCE;

pub struct Socket {
    ws: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The number of the newest message. -1: there was none.
    pub newest: i64,
}

impl Socket {
    /// Connects to an endpoint and receives HELLO.
    pub async fn open(endpoint: &str) -> Self {
        let connected = timeout(PATIENCE, tokio_tungstenite::connect_async(format!("{endpoint}/?v=8"))).await.expect("in time");
        let mut socket = Self { ws: connected.expect("a WebSocket").0, newest: -1 };
        assert_eq!(socket.next().await.expect("HELLO")["op"], 8);
        socket
    }

    /// Connects, identifies and selects a protocol. Returns READY and the session description as well.
    pub async fn described(grant: &Grant) -> (Self, Value, Value) {
        let mut socket = Self::open(&grant.endpoint).await;
        socket.send(0, identify(grant)).await;
        let ready = socket.op(2).await;
        socket.send(1, select(Mode::Aes256Gcm.name())).await;
        let description = socket.op(4).await;
        (socket, ready, description)
    }

    pub async fn send(&mut self, op: u64, data: Value) {
        self.send_raw(Message::text(json!({ "op": op, "d": data }).to_string())).await;
    }

    pub async fn send_raw(&mut self, message: Message) {
        self.ws.send(message).await.expect("an open connection");
    }

    pub async fn resume(&mut self, grant: &Grant, newest: i64) {
        let (session, token) = (&grant.session, &grant.token);
        self.send(7, json!({ "server_id": grant.guild, "session_id": session, "token": token, "seq_ack": newest })).await;
    }

    /// The next message, or none when the connection has ended. A binary one is shown as its opcode with its number.
    pub async fn next(&mut self) -> Option<Value> {
        match timeout(PATIENCE, self.ws.next()).await.expect("in time")?.ok()? {
            Message::Text(text) => {
                let payload: Value = serde_json::from_str(&text).expect("JSON");
                self.newest = payload["seq"].as_i64().unwrap_or(self.newest);
                Some(payload)
            }
            Message::Binary(bytes) => {
                self.newest = i64::from(u16::from_be_bytes([bytes[0], bytes[1]]));
                Some(json!({ "op": bytes[2], "seq": self.newest }))
            }
            _ => None,
        }
    }

    /// Waits for a message and returns its data. Skips others.
    pub async fn op(&mut self, op: u64) -> Value {
        loop {
            let payload = self.next().await.unwrap_or_else(|| panic!("no op {op}"));
            if payload["op"] == op {
                return payload["d"].clone();
            }
        }
    }

    /// Waits for the end of the connection. Returns the close code, or none if it broke.
    pub async fn closed(&mut self) -> Option<u16> {
        loop {
            match timeout(PATIENCE, self.ws.next()).await.expect("in time") {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}

pub fn identify(grant: &Grant) -> Value {
    json!({
        "server_id": grant.guild,
        "user_id": grant.seat.user,
        "session_id": grant.session,
        "token": grant.token,
        "max_dave_protocol_version": 1,
    })
}

fn select(mode: &str) -> Value {
    json!({ "protocol": "udp", "data": { "address": "127.0.0.1", "port": 9, "mode": mode } })
}
