//! A voice server of a few lines around one connection: it answers the handshake, and shows what the connection does.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::dave::{SILENCE, is_encrypted};
use super::super::messages::MAX_MESSAGE_BYTES;
use super::super::transport::{Mode, Transport};
use super::super::{Connection, Counts, Effect, Ended, Event, Frame, Heard, Sent, Server, rtp};
use crate::domain::moment::Moment;
use crate::ports::audio::{CodecFailed, Encoder, SPOKEN_FRAME};

pub const GUILD: u64 = 11;
pub const CHANNEL: u64 = 22;
pub const OWN: u64 = 900;
pub const OWN_SSRC: u32 = 7_000;
pub const KEY: [u8; 32] = [9; 32];
pub const TICK: Duration = Duration::from_millis(20);
const TOKEN: &str = "secret-token";
const SESSION: &str = "secret-session";

/// Writes the first and the last sample, which say which frame it is and how loud.
pub struct Marks;

impl Encoder for Marks {
    fn encode(&mut self, frame: &[i16; SPOKEN_FRAME]) -> Result<Vec<u8>, CodecFailed> {
        Ok([&[0x78], &frame[0].to_be_bytes()[..], &frame[SPOKEN_FRAME - 1].to_be_bytes()].concat())
    }
}

pub fn server() -> Server {
    Server {
        endpoint: "voice.example".to_owned(),
        token: TOKEN.into(),
        session_id: SESSION.into(),
        guild: GUILD,
        channel: CHANNEL,
        user: OWN,
    }
}

pub fn frames(count: usize) -> Vec<Frame> {
    vec![[1_000; SPOKEN_FRAME]; count]
}

pub struct World {
    pub connection: Connection,
    pub now: Moment,
    /// What the connection did and no test has looked at.
    pub texts: VecDeque<Value>,
    pub binaries: VecDeque<Vec<u8>>,
    pub datagrams: VecDeque<Vec<u8>>,
    pub events: VecDeque<Event>,
    pub opened: Vec<String>,
    pub datagram_addresses: Vec<String>,
    pub closed: Vec<u16>,
    /// The number of the newest message with one.
    pub number: u16,
    /// Whether the call is encrypted end to end, as the connection tells.
    is_end_to_end: bool,
    /// Whether heartbeats are acknowledged.
    pub acknowledges: bool,
    /// What the server sends is encrypted with it.
    pub transport: Transport,
    /// What the server receives is decrypted with it. It counts no nonces.
    opener: Transport,
}

impl World {
    /// One that has only begun.
    pub fn begun() -> Self {
        let now = Moment::from_micros(1_000_000);
        let transport = || Transport::new(Mode::Aes256Gcm, &KEY).unwrap();
        let mut world = Self {
            connection: Connection::new(server(), Box::new(Marks), now),
            now,
            texts: VecDeque::new(),
            binaries: VecDeque::new(),
            datagrams: VecDeque::new(),
            events: VecDeque::new(),
            opened: Vec::new(),
            datagram_addresses: Vec::new(),
            closed: Vec::new(),
            number: 0,
            is_end_to_end: false,
            acknowledges: true,
            transport: transport(),
            opener: transport(),
        };
        world.carry_out();
        world
    }

    /// One that is connected.
    pub fn connected(dave_version: u16) -> Self {
        let mut world = Self::begun();
        world.open_socket();
        world.shake_hands(&["aead_aes256_gcm_rtpsize"]);
        world.describe(Mode::Aes256Gcm, dave_version);
        world.forget();
        world
    }

    pub fn open_socket(&mut self) {
        self.connection.opened(self.now);
        self.carry_out();
        self.tell(json!({"op": 8, "d": {"v": 8, "heartbeat_interval": 5_000.0}}));
    }

    /// Up to the choice of the protocol.
    pub fn shake_hands(&mut self, modes: &[&str]) {
        let ready = json!({"ssrc": OWN_SSRC, "ip": "127.0.0.1", "port": 5_000, "modes": modes, "heartbeat_interval": 1});
        self.tell_numbered(2, ready);
        self.discover();
    }

    pub fn discover(&mut self) {
        let mut answer = [vec![0, 2, 0, 70], OWN_SSRC.to_be_bytes().to_vec(), b"198.51.100.7".to_vec()].concat();
        answer.resize(72, 0);
        answer.extend(4_321_u16.to_be_bytes());
        self.hear_datagram(answer);
    }

    pub fn describe(&mut self, mode: Mode, dave_version: u16) {
        self.tell_numbered(4, json!({"mode": mode.name(), "secret_key": KEY, "dave_protocol_version": dave_version}));
    }

    pub fn tell(&mut self, message: Value) {
        let text = message.to_string();
        assert!(text.len() <= MAX_MESSAGE_BYTES);
        self.connection.text(&text, self.now);
        self.carry_out();
    }

    pub fn tell_numbered(&mut self, op: u64, data: Value) {
        self.number = self.number.wrapping_add(1);
        self.tell(json!({"op": op, "d": data, "seq": self.number}));
    }

    pub fn tell_binary(&mut self, op: u8, payload: &[u8]) {
        self.number = self.number.wrapping_add(1);
        let message = [&self.number.to_be_bytes()[..], &[op], payload].concat();
        self.connection.binary(&message, self.now);
        self.carry_out();
    }

    pub fn close(&mut self, code: Option<u16>) {
        self.connection.closed(code, self.now);
        self.carry_out();
    }

    pub fn hear_datagram(&mut self, mut datagram: Vec<u8>) {
        self.connection.datagram(&mut datagram, self.now);
        self.carry_out();
    }

    /// A packet as the server sends it.
    pub fn packet(&mut self, ssrc: u32, sequence: u16, frame: &[u8]) -> Vec<u8> {
        let mut packet = rtp::header(ssrc, sequence, u32::from(sequence) * 960);
        packet.extend_from_slice(frame);
        self.transport.seal(packet, 12).unwrap()
    }

    pub fn hear(&mut self, ssrc: u32, sequence: u16, frame: &[u8]) {
        let packet = self.packet(ssrc, sequence, frame);
        self.hear_datagram(packet);
    }

    pub fn pass(&mut self, duration: Duration) {
        let until = self.now + duration;
        while self.now < until {
            self.now = self.now + TICK;
            self.connection.tick(self.now);
            self.carry_out();
        }
    }

    pub fn play(&mut self, reply: u64, frames: Vec<Frame>) {
        self.connection.play(reply, frames);
    }

    pub fn counts(&self) -> Counts {
        self.connection.counts()
    }

    pub fn is_open(&self) -> bool {
        self.opened.len() > self.closed.len()
    }

    /// What was heard since the last look.
    pub fn heard(&mut self) -> Vec<Heard> {
        self.take_events(|event| match event {
            Event::Heard(heard) => Some(heard.clone()),
            _ => None,
        })
    }

    /// Who said what since the last look.
    pub fn said(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.heard().into_iter().map(|heard| (heard.user, heard.opus)).collect()
    }

    pub fn sent(&mut self) -> Vec<Sent> {
        self.take_events(|event| match event {
            Event::Sent(sent) => Some(*sent),
            _ => None,
        })
    }

    pub fn ended(&mut self) -> Option<Ended> {
        self.take_events(|event| match event {
            Event::Ended(ended) => Some(*ended),
            _ => None,
        })
        .pop()
    }

    pub fn take_events<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        let picked = self.events.iter().filter_map(&pick).collect();
        self.events.retain(|event| pick(event).is_none());
        picked
    }

    /// The messages with this number since the last look.
    pub fn told(&mut self, op: u64) -> Vec<Value> {
        let (told, left) = std::mem::take(&mut self.texts).into_iter().partition(|text| text["op"] == op);
        self.texts = left;
        let told: VecDeque<Value> = told;
        told.into_iter().map(|text| text["d"].clone()).collect()
    }

    pub fn told_binary(&mut self, op: u8) -> Vec<Vec<u8>> {
        let (told, left) = std::mem::take(&mut self.binaries).into_iter().partition(|bytes| bytes[0] == op);
        self.binaries = left;
        let told: VecDeque<Vec<u8>> = told;
        told.into_iter().map(|bytes| bytes[1..].to_vec()).collect()
    }

    /// The packets that we sent since the last look: sequence, timestamp, and what is in them.
    pub fn packets(&mut self) -> Vec<(u16, u32, Vec<u8>)> {
        let sent: Vec<_> = self.datagrams.drain(..).filter(|datagram| datagram.len() > 32 && datagram[0] == 0x80).collect();
        let packets = sent.into_iter().map(|mut packet| {
            let header = rtp::parse(&packet).unwrap();
            assert_eq!(header.ssrc, OWN_SSRC);
            let (opened, _) = self.opener.open(&mut packet, header.clear).unwrap();
            (header.sequence, header.timestamp, opened.to_vec())
        });
        packets.collect()
    }

    pub fn forget(&mut self) {
        self.texts.clear();
        self.binaries.clear();
        self.datagrams.clear();
        self.events.clear();
    }

    /// Nothing is ever sent in plain in a call that is encrypted end to end.
    fn check(&self, datagram: &[u8]) {
        if let (Ok(header), true) = (rtp::parse(datagram), self.is_end_to_end)
            && let Some((frame, _)) = self.opener.open(&mut datagram.to_vec(), header.clear)
        {
            assert!(frame == SILENCE || is_encrypted(frame), "sent in plain: {frame:?}");
        }
    }

    pub fn carry_out(&mut self) {
        while let Some(effect) = self.connection.next_effect() {
            assert!(!format!("{effect:?}").contains("secret"), "{effect:?}");
            match effect {
                Effect::Open(address) => {
                    if self.is_open() {
                        self.closed.push(0);
                    }
                    self.opened.push(address);
                }
                Effect::Close(code) => self.closed.push(code),
                Effect::Text(text) => {
                    let text: Value = serde_json::from_str(&text).unwrap();
                    let acknowledges = self.acknowledges && text["op"] == 3;
                    let nonce = text["d"]["t"].clone();
                    self.texts.push_back(text);
                    if acknowledges {
                        self.connection.text(&json!({"op": 6, "d": {"t": nonce}}).to_string(), self.now);
                    }
                }
                Effect::Binary(bytes) => self.binaries.push_back(bytes),
                Effect::OpenDatagrams(address) => self.datagram_addresses.push(address.to_string()),
                Effect::Datagram(datagram) => {
                    self.check(&datagram);
                    self.datagrams.push_back(datagram);
                }
                Effect::Report(event) => {
                    if let Event::EndToEnd(is_end_to_end) = event {
                        self.is_end_to_end = is_end_to_end;
                    }
                    self.events.push_back(event);
                }
            }
        }
    }
}
