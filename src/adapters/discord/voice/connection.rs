//! The state machine of a voice connection: messages, datagrams and the time are inputs, effects are outputs. It has no clock and no sockets.

mod attempts;
mod group;
mod session;
mod talk;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use self::talk::Talk;
use super::closing::{AfterClose, CLOSE_TO_LEAVE, CLOSE_TO_RESUME, Ended, after_close};
use super::counts::Counts;
use super::dave::Dave;
use super::discovery;
use super::events::{Event, Heard};
use super::hearing::Hearing;
use super::messages::{self, Told};
use super::server::Server;
use super::speaking::{Frame, Speaking};
use super::transport::{Mode, Transport};
use crate::domain::moment::Moment;
use crate::ports::audio::Encoder;

/// The server must answer within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Without datagrams, routers would drop the mapping of our address.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
/// How many messages of ours the server may refuse before the connection ends.
const MOST_FAULTS: u32 = 3;
/// The limit of tracked users in a call.
const MOST_USERS: usize = 5_000;
/// An effect that the task carries out.
#[derive(PartialEq, Eq)]
pub enum Effect {
    /// Drop the current WebSocket, if any, and open one to this address, which has no scheme.
    Open(String),
    /// Close the WebSocket with this code. The task does not report that it closed.
    Close(u16),
    /// Send text over the WebSocket. It may contain the token.
    Text(String),
    /// Send bytes over the WebSocket.
    Binary(Vec<u8>),
    /// From now on, exchange datagrams with this address.
    OpenDatagrams(SocketAddr),
    /// Send a datagram.
    Datagram(Vec<u8>),
    /// Report an event.
    Report(Event),
}

impl fmt::Debug for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(_) => formatter.write_str("Open"),
            Self::Close(code) => write!(formatter, "Close({code})"),
            Self::Text(text) => write!(formatter, "Text({} bytes)", text.len()),
            Self::Binary(bytes) => write!(formatter, "Binary({} bytes)", bytes.len()),
            Self::OpenDatagrams(address) => write!(formatter, "OpenDatagrams({address})"),
            Self::Datagram(bytes) => write!(formatter, "Datagram({} bytes)", bytes.len()),
            Self::Report(event) => write!(formatter, "Report({event:?})"),
        }
    }
}

pub struct Connection {
    server: Server,
    phase: Phase,
    ready: Option<Ready>,
    /// The encryption of packets, once the session description has arrived. With it, the session can be resumed.
    transport: Option<Transport>,
    dave: Dave,
    heartbeats: Option<Heartbeats>,
    /// The number of the newest message received, or -1.
    newest: i64,
    early: VecDeque<Early>,
    early_bytes: usize,
    users: BTreeSet<u64>,
    hearing: Hearing,
    talk: Talk,
    /// When the next keepalive is due, and its number.
    keepalive: (Moment, u32),
    /// The transition whose failure is still to be reported, and the earliest time for that.
    recovery: (Option<u16>, Moment),
    was_end_to_end: Option<bool>,
    attempts: u32,
    faults: u32,
    counts: Counts,
    effects: VecDeque<Effect>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between two attempts.
    Waiting {
        until: Moment,
    },
    /// The WebSocket is being opened.
    Opening {
        until: Moment,
    },
    /// Waiting for `Ready`.
    Identifying {
        until: Moment,
    },
    /// Waiting for our external address.
    Discovering {
        again: Moment,
        asked: u32,
    },
    /// Waiting for the session description.
    Selecting {
        until: Moment,
    },
    /// Waiting for `Resumed`.
    Resuming {
        until: Moment,
    },
    Running {
        since: Moment,
    },
    Ended,
}

#[derive(Clone, Copy)]
struct Ready {
    ssrc: u32,
    mode: Mode,
}

struct Heartbeats {
    interval: Duration,
    next: Moment,
    is_unacknowledged: bool,
}

/// A message that arrived before the session description.
enum Early {
    Text(Told),
    Binary(Vec<u8>),
}

impl Connection {
    /// Starts to connect to a call.
    pub fn new(server: Server, encoder: Box<dyn Encoder>, now: Moment) -> Self {
        let mut connection = Self {
            phase: Phase::Waiting { until: now },
            ready: None,
            transport: None,
            dave: Dave::new(server.user, server.channel, 0),
            heartbeats: None,
            newest: -1,
            early: VecDeque::new(),
            early_bytes: 0,
            users: BTreeSet::from([server.user]),
            hearing: Hearing::new(server.user),
            talk: Talk::new(Speaking::new(encoder), now),
            keepalive: (now, 0),
            recovery: (None, now),
            was_end_to_end: None,
            attempts: 0,
            faults: 0,
            counts: Counts::default(),
            effects: VecDeque::new(),
            server,
        };
        connection.open(now);
        connection
    }

    /// Removes and returns the next effect.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The counters so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of queued frames.
    #[cfg(any(test, feature = "samples"))]
    pub fn waiting(&self) -> usize {
        self.talk.speaking.waiting()
    }

    /// The WebSocket is open.
    pub fn opened(&mut self, now: Moment) {
        let Phase::Opening { .. } = self.phase else { return };
        let until = now + ANSWER_TIMEOUT;
        let (message, phase) = match self.transport {
            Some(_) => (messages::resume(&self.server, self.newest), Phase::Resuming { until }),
            None => (messages::identify(&self.server), Phase::Identifying { until }),
        };
        self.phase = phase;
        self.effects.push_back(Effect::Text(message));
    }

    /// The WebSocket was closed with this code, or could not be opened.
    pub fn closed(&mut self, code: Option<u16>, now: Moment) {
        if self.is_ended() {
            return;
        }
        match after_close(code) {
            AfterClose::Resume => self.lost(now),
            AfterClose::IdentifyAgain(code) if self.faults >= MOST_FAULTS => self.end(Ended::Refused(code)),
            AfterClose::IdentifyAgain(_) => {
                self.faults += 1;
                self.lost(now);
                self.forget_session();
            }
            AfterClose::End(ended) => self.end(ended),
        }
    }

    /// Datagrams cannot be sent or received.
    pub fn datagrams_failed(&mut self, now: Moment) {
        if !self.is_ended() {
            self.effects.push_back(Effect::Close(CLOSE_TO_RESUME));
            self.lost(now);
            self.forget_session();
        }
    }

    /// Handles a text message.
    pub fn text(&mut self, text: &str, now: Moment) {
        if self.is_ended() {
            return;
        }
        let Some(message) = messages::parse(text) else {
            self.counts.messages_refused += 1;
            return;
        };
        if let Some(number) = message.number
            && !self.is_new(number)
        {
            return;
        }
        match (message.told, self.phase) {
            (Told::Hello(interval), _) => {
                self.heartbeats = Some(Heartbeats { interval, next: now + interval, is_unacknowledged: false });
            }
            (Told::HeartbeatAcknowledged, _) => {
                if let Some(heartbeats) = &mut self.heartbeats {
                    heartbeats.is_unacknowledged = false;
                }
            }
            (Told::Ready { ssrc, ip, port, mode }, Phase::Identifying { .. }) => self.ready(ssrc, ip, port, mode, now),
            (Told::Description { mode, key, dave_version }, Phase::Selecting { .. }) => {
                self.described(mode, &key, dave_version, now);
            }
            (Told::Resumed, Phase::Resuming { .. }) => {
                self.phase = Phase::Running { since: now };
                self.counts.resumes += 1;
                self.effects.push_back(Effect::Report(Event::Resumed));
                self.tell_speaking();
            }
            (Told::Ready { .. } | Told::Description { .. } | Told::Resumed | Told::Other, _) => {}
            (told, _) if self.transport.is_some() => self.follow(told, now),
            (told, _) => self.keep_early(Early::Text(told), text.len()),
        }
    }

    /// Handles a binary message.
    pub fn binary(&mut self, bytes: &[u8], now: Moment) {
        if self.is_ended() {
            return;
        }
        let Some(message) = messages::parse_binary(bytes) else {
            self.counts.messages_refused += 1;
            return;
        };
        if !self.is_new(message.number.into()) {
            return;
        }
        if self.transport.is_some() {
            self.follow_group(message.told, now);
        } else {
            self.keep_early(Early::Binary(bytes.to_vec()), bytes.len());
        }
    }

    /// Handles a datagram, and decrypts it in place.
    pub fn datagram(&mut self, datagram: &mut [u8], now: Moment) {
        if self.is_ended() {
            return;
        }
        self.counts.received += 1;
        if let (Phase::Discovering { .. }, Some(ready)) = (self.phase, self.ready) {
            match discovery::answer(datagram, ready.ssrc) {
                Some(address) => {
                    self.phase = Phase::Selecting { until: now + ANSWER_TIMEOUT };
                    self.effects.push_back(Effect::Text(messages::select_protocol(address, ready.mode)));
                }
                None => self.counts.not_audio += 1,
            }
            return;
        }
        let Some(transport) = &self.transport else {
            self.counts.not_audio += 1;
            return;
        };
        let heard = self.hearing.receive_datagram(datagram, transport, &mut self.dave, now, &mut self.counts);
        self.report_heard(heard);
    }

    /// Advances the time. Must be called every 20 ms; missed calls are made up for.
    pub fn tick(&mut self, now: Moment) {
        self.watch_deadlines(now);
        if self.is_ended() {
            return;
        }
        self.beat(now);
        self.recover_if_due(now);
        self.hearing.expire(now, &mut self.counts);
        if self.ready.is_some() && self.keepalive.0 <= now {
            let number = self.keepalive.1;
            self.keepalive = (now + KEEPALIVE_EVERY, number.wrapping_add(1));
            // The server echoes it.
            let datagram = u64::from(number).to_le_bytes();
            self.effects.push_back(Effect::Datagram(datagram.to_vec()));
        }
        self.send_due_frames(now);
    }

    /// Queues frames of a reply. Frames beyond [`MOST_WAITING`](super::MOST_WAITING) are dropped and counted.
    pub fn play(&mut self, reply: u64, frames: Vec<Frame>) {
        self.counts.frames_dropped += self.talk.speaking.play(reply, frames.into_iter()) as u64;
    }

    /// Turns ducking on or off: companions are 12 dB quieter.
    pub fn duck(&mut self, on: bool) {
        self.talk.speaking.duck(on);
    }

    /// Drops the queued frames, and reports how much was sent.
    pub fn flush(&mut self) {
        self.talk.speaking.flush();
        if let Some(sent) = self.talk.speaking.report_progress() {
            self.effects.push_back(Effect::Report(Event::Sent(sent)));
        }
    }

    pub fn leave(&mut self) {
        if !self.is_ended() {
            self.effects.push_back(Effect::Close(CLOSE_TO_LEAVE));
            self.end(Ended::Left);
        }
    }

    /// Continues on another server. Queued frames are kept.
    pub fn move_to(&mut self, server: Server, now: Moment) {
        if self.is_ended() {
            return;
        }
        self.effects.push_back(Effect::Close(CLOSE_TO_LEAVE));
        self.server = server;
        self.forget_session();
        (self.attempts, self.faults) = (0, 0);
        self.open(now);
    }

    fn is_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    fn follow(&mut self, told: Told, now: Moment) {
        match told {
            Told::Speaking { user, ssrc } => self.name(ssrc, user, now),
            Told::Here { users, ssrc } => {
                if let (Some(ssrc), Some(user)) = (ssrc, users.first()) {
                    self.name(ssrc, *user, now);
                }
                for user in users {
                    match self.users.len() < MOST_USERS {
                        true if self.users.insert(user) => self.effects.push_back(Effect::Report(Event::Here(user))),
                        true => {}
                        false => self.counts.messages_refused += 1,
                    }
                }
            }
            Told::Left(user) if user != self.server.user => {
                self.users.remove(&user);
                self.hearing.leave(user);
                self.effects.push_back(Effect::Report(Event::Left(user)));
            }
            Told::PrepareTransition { transition, version } => self.prepare_transition(transition, version, now),
            Told::ExecuteTransition { transition } => self.execute_transition(transition, now),
            Told::PrepareEpoch { epoch: 1, version, .. } => self.begin_group(version),
            Told::PrepareEpoch { version, transition, .. } if transition != 0 => {
                self.prepare_transition(transition, version, now);
            }
            _ => {}
        }
    }

    fn name(&mut self, ssrc: u32, user: u64, now: Moment) {
        self.hearing.name(ssrc, user);
        if self.dave.takes_plain(now) {
            let heard = self.hearing.retry_plain(ssrc, &mut self.dave, now, &mut self.counts);
            self.report_heard(heard);
        }
    }

    fn report_heard(&mut self, heard: impl IntoIterator<Item = Heard>) {
        self.effects.extend(heard.into_iter().map(|heard| Effect::Report(Event::Heard(heard))));
    }
}
