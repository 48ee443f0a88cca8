//! The connections of a person: the voice gateway and UDP.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval, sleep_until};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::super::super::Id;
use super::super::Grant;
use super::super::transport::{Cipher, Header, SILENCE, is_end_to_end, packet};
use super::encryption::Encryption;
use super::{Heard, Notes};
use crate::discord::counterpart::voice::Mode;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How many frames that no key opens yet are kept.
const KEPT: usize = 200;

pub enum Command {
    Say { packets: VecDeque<Vec<u8>>, pace: Duration, end_to_end: bool, sent: oneshot::Sender<usize>, count: usize },
    Leave,
}

pub struct Client {
    socket: Socket,
    udp: UdpSocket,
    ssrc: u32,
    cipher: Cipher,
    heartbeat: Duration,
    sequence: u16,
    timestamp: u32,
    speaking: bool,
    /// The number of the newest message.
    newest: i64,
    /// Who was named as the speaker of an SSRC.
    speakers: BTreeMap<u32, Id>,
    encryption: Encryption,
    /// Frames that no key opens yet.
    kept: Vec<(Header, Vec<u8>)>,
    notes: Arc<Notes>,
}

impl Client {
    pub async fn join(grant: Grant, max_dave: u64, notes: Arc<Notes>) -> Self {
        let url = match grant.endpoint.contains("://") {
            true => format!("{}/?v=8", grant.endpoint),
            false => format!("ws://{}/?v=8", grant.endpoint),
        };
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("a WebSocket");
        let (user, mut early) = (grant.seat.user, Vec::new());
        let hello = expect(&mut socket, 8, &mut early).await;
        let identify = json!({
            "server_id": grant.guild,
            "user_id": user,
            "session_id": grant.session,
            "token": grant.token,
            "max_dave_protocol_version": max_dave,
        });
        send(&mut socket, 0, identify).await;
        let ready = expect(&mut socket, 2, &mut early).await;
        let ssrc = u32::try_from(ready["ssrc"].as_u64().expect("an SSRC")).expect("32 bits");
        let udp = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = (ready["ip"].as_str().expect("an address"), ready["port"].as_u64().expect("a port") as u16);
        udp.connect(address).await.expect("a local address");
        let port = discover(&udp, ssrc).await;
        let mode = [Mode::Aes256Gcm, Mode::XChaCha20Poly1305]
            .into_iter()
            .find(|mode| ready["modes"].as_array().expect("modes").iter().any(|offered| offered == mode.name()));
        let mode = mode.expect("a known mode");
        let data = json!({ "address": "127.0.0.1", "port": port, "mode": mode.name() });
        send(&mut socket, 1, json!({ "protocol": "udp", "data": data })).await;
        let description = expect(&mut socket, 4, &mut early).await;
        let key = description["secret_key"].as_array().expect("a key").iter().map(|byte| byte.as_u64().expect("a byte") as u8);
        let key: Vec<u8> = key.collect();
        let version = description["dave_protocol_version"].as_u64().unwrap_or_default() as u16;
        let mut client = Self {
            socket,
            udp,
            ssrc,
            cipher: Cipher::new(mode, key.try_into().expect("32 bytes")),
            heartbeat: Duration::from_secs_f64(hello["heartbeat_interval"].as_f64().expect("an interval") / 1_000.0),
            sequence: 0,
            timestamp: 0,
            speaking: false,
            newest: -1,
            speakers: BTreeMap::new(),
            encryption: Encryption::new(user, grant.seat.channel, version),
            kept: Vec::new(),
            notes,
        };
        if let Some(package) = client.encryption.begin_group() {
            client.send_binary(26, &package).await;
        }
        for message in early {
            client.received(message).await;
        }
        client
    }

    pub async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut heartbeat = interval(self.heartbeat);
        let mut datagram = [0; 2_048];
        let mut saying: VecDeque<Command> = VecDeque::new();
        let mut next_frame = Instant::now();
        loop {
            tokio::select! {
                biased;
                message = self.socket.next() => match message {
                    Some(Ok(Message::Close(frame))) => return self.end(frame.map(|frame| frame.code.into())),
                    Some(Ok(message)) => self.received(message).await,
                    Some(Err(_)) | None => return self.end(None),
                },
                length = self.udp.recv(&mut datagram) => {
                    if let Ok(length) = length {
                        self.received_datagram(&datagram[..length]);
                    }
                }
                command = commands.recv() => match command {
                    Some(say @ Command::Say { .. }) => {
                        if saying.is_empty() {
                            next_frame = next_frame.max(Instant::now());
                        }
                        saying.push_back(say);
                    }
                    Some(Command::Leave) | None => {
                        // The server may be gone already.
                        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
                        let _ = self.socket.close(Some(frame)).await;
                        // With unread messages, the connection would break instead.
                        while let Some(Ok(_)) = self.socket.next().await {}
                        return self.end(None);
                    }
                },
                _ = heartbeat.tick() => self.send(3, json!({ "t": 7, "seq_ack": self.newest })).await,
                () = sleep_until(next_frame), if !saying.is_empty() => {
                    next_frame += self.say_next(&mut saying).await;
                }
            }
        }
    }

    fn end(&self, code: Option<u16>) {
        self.notes.note(|noted| noted.closed = Some(code));
    }

    /// Sends one packet. Returns the time until the next one.
    async fn say_next(&mut self, saying: &mut VecDeque<Command>) -> Duration {
        let Some(Command::Say { packets, pace, end_to_end, count, .. }) = saying.front_mut() else { return Duration::ZERO };
        let (pace, end_to_end) = (*pace, *end_to_end);
        if let Some(frame) = packets.pop_front() {
            *count += usize::from(self.say_frame(frame, end_to_end).await);
        }
        if packets.is_empty()
            && let Some(Command::Say { sent, count, .. }) = saying.pop_front()
        {
            // The test may not wait for it.
            let _ = sent.send(count);
        }
        pace
    }

    async fn say_frame(&mut self, frame: Vec<u8>, end_to_end: bool) -> bool {
        if !self.speaking {
            self.send_speaking(1).await;
        }
        let header = Header::new(self.sequence, self.timestamp, self.ssrc);
        self.timestamp = self.timestamp.wrapping_add(960);
        let frame = if end_to_end { self.encryption.seal(frame) } else { Some(frame) };
        let Some(frame) = frame else { return false };
        self.sequence = self.sequence.wrapping_add(1);
        let datagram = packet(&mut self.cipher, header, &frame);
        self.udp.send(&datagram).await.is_ok()
    }

    async fn send_speaking(&mut self, modes: u64) {
        self.speaking = true;
        self.send(5, json!({ "speaking": modes, "delay": 0, "ssrc": self.ssrc })).await;
    }

    async fn send(&mut self, op: u64, data: Value) {
        send(&mut self.socket, op, data).await;
    }

    async fn send_binary(&mut self, op: u8, payload: &[u8]) {
        // The connection may have ended, which the next read tells.
        let _ = self.socket.send(Message::Binary([&[op], payload].concat().into())).await;
    }

    async fn received(&mut self, message: Message) {
        match message {
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).unwrap_or_default();
                self.newest = message["seq"].as_i64().unwrap_or(self.newest);
                self.received_json(message["op"].as_u64().unwrap_or_default(), &message["d"]).await;
            }
            Message::Binary(bytes) => {
                if let [high, low, op, payload @ ..] = &bytes[..] {
                    self.newest = i64::from(u16::from_be_bytes([*high, *low]));
                    let answers = self.encryption.received(*op, payload);
                    self.encrypted(answers).await;
                }
            }
            _ => {}
        }
    }

    async fn received_json(&mut self, op: u64, data: &Value) {
        let number = |field: &str| data[field].as_u64().unwrap_or_default();
        match op {
            5 => {
                if let Some(user) = Id::read(&data["user_id"]) {
                    let ssrc = number("ssrc") as u32;
                    self.speakers.insert(ssrc, user);
                }
            }
            11 => {
                let users = data["user_ids"].as_array().into_iter().flatten().filter_map(Id::read).collect::<Vec<Id>>();
                self.encryption.expect(&users);
            }
            13 => {
                if let Some(user) = Id::read(&data["user_id"]) {
                    self.encryption.expect_no_longer(user);
                }
            }
            21 | 22 | 24 => {
                let (transition, version) = (number("transition_id") as u16, number("protocol_version") as u16);
                let answers = match op {
                    21 => self.encryption.prepare(transition, version),
                    22 => self.encryption.execute(transition),
                    _ => self.encryption.prepare_epoch(number("epoch"), version),
                };
                self.encrypted(answers).await;
            }
            _ => {}
        }
    }

    /// Sends the answers of the encryption, and notes its state.
    async fn encrypted(&mut self, answers: Vec<Message>) {
        for answer in answers {
            if let Message::Text(text) = &answer
                && text.contains("\"op\":31")
            {
                self.notes.note(|noted| noted.reported += 1);
            }
            let _ = self.socket.send(answer).await;
        }
        for (header, frame) in std::mem::take(&mut self.kept) {
            self.hear(header, frame);
        }
        let encryption = &self.encryption;
        self.notes.note(|noted| {
            noted.group = encryption.group();
            noted.can_encrypt = encryption.can_encrypt();
        });
    }

    fn received_datagram(&mut self, datagram: &[u8]) {
        let Some(header) = Header::read(datagram) else { return };
        let body = self.cipher.open(datagram, header.length);
        if let Some(frame) = body.as_ref().and_then(|body| header.payload(datagram, body)) {
            self.hear(header, frame.to_vec());
        }
    }

    fn hear(&mut self, header: Header, frame: Vec<u8>) {
        let named = self.speakers.get(&header.ssrc).copied();
        let end_to_end = self.encryption.has_group() && is_end_to_end(&frame);
        let (user, frame) = if end_to_end {
            match self.encryption.open(named, &frame) {
                Some((user, frame)) => (Some(user), frame),
                None => {
                    self.notes.note(|noted| noted.unopened += 1);
                    self.kept.push((header, frame));
                    let over = self.kept.len().saturating_sub(KEPT);
                    self.kept.drain(..over);
                    return;
                }
            }
        } else if frame == SILENCE || self.encryption.takes_plain() {
            (named, frame)
        } else {
            self.notes.note(|noted| noted.plain += 1);
            return;
        };
        let Header { ssrc, sequence, timestamp, .. } = header;
        let heard = Heard { at: Instant::now(), user, ssrc, sequence, timestamp, frame, end_to_end };
        self.notes.note(|noted| noted.heard.push(heard));
    }
}

async fn send(socket: &mut Socket, op: u64, data: Value) {
    // The connection may have ended, which the next read tells.
    let _ = socket.send(Message::text(json!({ "op": op, "d": data }).to_string())).await;
}

/// Waits for a message. Others that come before it are kept.
async fn expect(socket: &mut Socket, op: u64, early: &mut Vec<Message>) -> Value {
    loop {
        let message = socket.next().await.expect("an open connection").expect("an open connection");
        match &message {
            Message::Text(text) => {
                let payload: Value = serde_json::from_str(text).expect("JSON");
                if payload["op"] == op {
                    return payload["d"].clone();
                }
            }
            Message::Close(frame) => panic!("refused: {frame:?}"),
            _ => {}
        }
        early.push(message);
    }
}

/// Discovers the own port.
async fn discover(udp: &UdpSocket, ssrc: u32) -> u16 {
    let mut datagram = vec![0; 74];
    datagram[..4].copy_from_slice(&[0, 1, 0, 70]);
    datagram[4..8].copy_from_slice(&ssrc.to_be_bytes());
    udp.send(&datagram).await.expect("a local address");
    udp.recv(&mut datagram).await.expect("an answer");
    assert!(datagram.starts_with(&[0, 2, 0, 70]) && datagram[8..].starts_with(b"127.0.0.1\0"));
    u16::from_be_bytes([datagram[72], datagram[73]])
}
