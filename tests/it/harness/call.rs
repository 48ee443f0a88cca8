//! A page in a voice call, and what its microphone sends.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::{PATIENCE, Server};

/// The packet that stands for silence.
const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];
/// The length of a packet.
const FRAME: Duration = Duration::from_millis(20);
/// How often a page tells what it has played.
const PLAYED_EVERY: Duration = Duration::from_millis(100);
/// The samples of a packet at 48 kHz.
const SAMPLES: u64 = 960;

/// Opus packets of somebody who says one sentence of 3.2 s, as browsers and Discord's clients send them
/// (src/adapters/audio/opus/vectors/README.md).
pub fn sentence() -> Vec<Vec<u8>> {
    let mut bytes: &[u8] = include_bytes!("../../../src/adapters/audio/opus/vectors/browser.vector");
    let mut take = |size: usize| {
        let (head, rest) = bytes.split_at_checked(2)?;
        let (taken, rest) = rest.split_at(size * usize::from(u16::from_le_bytes([head[0], head[1]])));
        bytes = rest;
        Some(taken.to_vec())
    };
    let mut packets = Vec::new();
    while let (Some(packet), Some(_)) = (take(1), take(2)) {
        packets.push(packet);
    }
    packets
}

/// One person's connection to a call.
pub struct Page {
    socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
    /// The number of the next packet.
    number: u32,
}

impl Page {
    /// Enters the call of a room, and sends a packet of silence.
    pub async fn enter(server: &Server, room: &str, from: &str) -> Self {
        let url = format!("{}/api/voice?room={room}&from={from}&v=1", server.url.replacen("http", "ws", 1));
        let connected = timeout(PATIENCE, tokio_tungstenite::connect_async(url)).await.expect("a connection in time");
        let mut page = Self { socket: connected.expect("a WebSocket").0, number: 0 };
        page.wait_for("hello").await;
        page.send_packet(&SILENCE).await;
        page
    }

    async fn send_packet(&mut self, packet: &[u8]) {
        let frame = [&[1], &self.number.to_be_bytes()[..], packet].concat();
        self.number += 1;
        self.socket.send(Message::binary(frame)).await.expect("it is connected");
    }

    /// Talks at the pace of speech.
    pub async fn talk(&mut self, packets: &[Vec<u8>]) {
        let mut ticks = interval(FRAME);
        for packet in packets {
            ticks.tick().await;
            self.send_packet(packet).await;
        }
    }

    /// Hears a reply to its end, and tells meanwhile what was played. Returns the number of packets, and the messages that came with them.
    pub async fn hear_reply(&mut self) -> (u32, Vec<Value>) {
        let hearing = async {
            let (mut packets, mut messages, mut newest, mut ticks) = (0, Vec::new(), None, interval(PLAYED_EVERY));
            loop {
                let message = tokio::select! {
                    message = self.socket.next() => message.expect("it is connected").expect("a message"),
                    _ = ticks.tick() => {
                        if let Some((reply, number)) = newest.take() {
                            let samples = SAMPLES * (u64::from(number) + 1);
                            self.send(json!({ "type": "played", "reply": reply, "samples": samples })).await;
                        }
                        continue;
                    }
                };
                match message {
                    Message::Binary(frame) => {
                        let [number, reply] =
                            [1, 5].map(|at| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes")));
                        packets += 1;
                        newest = Some((reply, number));
                    }
                    Message::Text(text) => {
                        let message: Value = serde_json::from_str(&text).expect("JSON");
                        let is_end = message["type"] == "done";
                        messages.push(message);
                        if is_end {
                            return (packets, messages);
                        }
                    }
                    _ => {}
                }
            }
        };
        timeout(PATIENCE, hearing).await.expect("a reply")
    }

    /// Hears replies for ever.
    pub async fn hear_replies(&mut self) {
        loop {
            self.hear_reply().await;
        }
    }

    /// Says a text as if it were spoken.
    pub async fn say(&mut self, text: &str) {
        self.send(json!({ "type": "say", "text": text })).await;
    }

    pub async fn send(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await.expect("it is connected");
    }

    /// Waits for a message of this type.
    pub async fn wait_for(&mut self, kind: &str) -> Value {
        let message = async {
            while let Some(Ok(message)) = self.socket.next().await {
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
        while let Some(Ok(_)) = timeout(PATIENCE, self.socket.next()).await.expect("it is closed in time") {}
    }
}
