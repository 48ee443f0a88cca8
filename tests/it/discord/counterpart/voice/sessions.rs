//! Sessions of the voice gateway: their connections, and the numbered messages that RESUME replays.
//!
//! <https://docs.discord.com/developers/topics/voice-connections#buffered-resume>

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::Id;
use super::Voice;
use super::journal::{Counts, Ended};
use super::transport::Cipher;

/// A user in a voice channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    pub channel: Id,
    pub user: Id,
}

/// What VOICE_STATE_UPDATE and VOICE_SERVER_UPDATE tell a user: the right to join one call on one server.
#[derive(Clone)]
pub struct Grant {
    /// The number of the server.
    pub server: usize,
    pub endpoint: String,
    pub guild: Id,
    pub seat: Seat,
    pub session: String,
    pub token: String,
}

/// A member's session. It outlives its connections.
pub struct Session {
    pub grant: Grant,
    /// The highest version of end-to-end encryption that the client knows.
    pub max_dave: u64,
    pub ssrc: u32,
    /// The SSRC that others see. It differs when a test changes it.
    pub shown_ssrc: u32,
    pub key: [u8; 32],
    /// None: no protocol is selected yet.
    pub cipher: Option<Cipher>,
    /// Where its audio is sent.
    pub address: Option<SocketAddr>,
    /// The newest speaking mode that the client sent.
    pub speaking: Option<u64>,
    /// Whether it received the external sender (op 25).
    pub knows_sender: bool,
    pub connection: Option<usize>,
    pub disconnected_at: Option<Instant>,
    /// How many numbered messages there were.
    newest: u64,
    buffer: VecDeque<Frame>,
}

/// A message as it is or would have been sent.
#[derive(Clone, Debug)]
pub enum Frame {
    Text(String),
    Binary(Vec<u8>),
}

/// A WebSocket.
pub struct Connection {
    orders: mpsc::UnboundedSender<Order>,
    pub server: usize,
    pub seat: Option<Seat>,
    /// The times of payloads within the window of their limit.
    pub sends: VecDeque<Instant>,
    /// Whether its heartbeats stay without acknowledgement.
    pub unacknowledged: bool,
    /// Whether nothing is sent on it. Missed messages stay in the buffer for RESUME.
    pub silent: bool,
}

/// An order to a connection's task.
#[derive(Debug)]
pub enum Order {
    Send(Frame),
    Close(u16, &'static str),
    /// Cut the connection without a close frame.
    Cut,
}

impl Session {
    pub fn new(grant: Grant, max_dave: u64, ssrc: u32, key: [u8; 32]) -> Self {
        Self {
            grant,
            max_dave,
            ssrc,
            shown_ssrc: ssrc,
            key,
            cipher: None,
            address: None,
            speaking: None,
            knows_sender: false,
            connection: None,
            disconnected_at: None,
            newest: 0,
            buffer: VecDeque::new(),
        }
    }
}

impl Voice {
    /// Sends a numbered message.
    pub fn send(&mut self, seat: Seat, op: u64, data: Value) {
        self.send_numbered(seat, |sequence| Frame::Text(json!({ "op": op, "d": data, "seq": sequence }).to_string()));
    }

    /// Sends a numbered binary message.
    pub fn send_binary(&mut self, seat: Seat, op: u8, payload: &[u8]) {
        self.send_numbered(seat, |sequence| Frame::Binary([&sequence.to_be_bytes()[..], &[op], payload].concat()));
    }

    fn send_numbered(&mut self, seat: Seat, frame: impl FnOnce(u16) -> Frame) {
        let (first, max_buffered) = (self.rules.first_sequence, self.rules.resume_buffer);
        let Some(session) = self.sessions.get_mut(&seat) else { return };
        let frame = frame(first.wrapping_add(session.newest as u16));
        session.newest += 1;
        session.buffer.push_back(frame.clone());
        if session.buffer.len() > max_buffered {
            session.buffer.pop_front();
        }
        if let Some(connection) = session.connection {
            self.order(connection, Order::Send(frame));
        }
    }

    /// Sends a message without a number.
    pub fn send_unnumbered(&self, connection: usize, op: u64, data: Value) {
        self.order(connection, Order::Send(Frame::Text(json!({ "op": op, "d": data }).to_string())));
    }

    fn order(&self, number: usize, order: Order) {
        let Some(connection) = self.connections.get(&number) else { return };
        if !(connection.silent && matches!(order, Order::Send(_))) {
            // A task that has ended has recorded how.
            let _ = connection.orders.send(order);
        }
    }

    /// The messages after this number. None: the buffer has lost one of them, or there is no such number.
    pub fn missed(&self, seat: Seat, acknowledged: Option<u16>) -> Option<Vec<Frame>> {
        let session = self.sessions.get(&seat)?;
        let newest = self.rules.first_sequence.wrapping_add(session.newest as u16).wrapping_sub(1);
        let count = acknowledged.map_or(session.newest, |acknowledged| u64::from(newest.wrapping_sub(acknowledged)));
        let kept = session.buffer.len().checked_sub(usize::try_from(count).ok()?)?;
        Some(session.buffer.iter().skip(kept).cloned().collect())
    }

    /// Sends messages again, with the numbers that they had.
    pub fn replay(&self, connection: usize, missed: Vec<Frame>) {
        for frame in missed {
            self.order(connection, Order::Send(frame));
        }
    }

    /// Adds a connection to a server. Returns its number, and the orders for its task.
    pub fn open(&mut self, server: usize) -> (usize, mpsc::UnboundedReceiver<Order>) {
        let (orders, received) = mpsc::unbounded_channel();
        self.connected += 1;
        let sends = VecDeque::new();
        let connection = Connection { orders, server, seat: None, sends, unacknowledged: false, silent: false };
        self.connections.insert(self.connected, connection);
        (self.connected, received)
    }

    /// Gives a session to a connection. An earlier connection of the session is cut.
    pub fn attach(&mut self, seat: Seat, number: usize) {
        let Some(session) = self.sessions.get_mut(&seat) else { return };
        session.disconnected_at = None;
        let before = session.connection.replace(number).filter(|before| *before != number);
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.seat = Some(seat);
        }
        if let Some(before) = before {
            self.cut(before);
        }
    }

    /// Records the end of a connection. Its session stays for a while, unless the end was meant for good.
    pub fn closed(&mut self, number: usize, end: Ended) {
        let Some(connection) = self.connections.remove(&number) else { return };
        let seat = connection.seat;
        let for_good = matches!(end, Ended::Client(Some(1000 | 1001)))
            || matches!(end, Ended::Here(code, _) if !matches!(code, 1001 | 1006 | 4000 | 4015));
        self.journal.ended.push((seat.map(|seat| seat.user), end));
        let Some(seat) = seat else { return };
        let window = self.rules.resume_window;
        let Some(session) = self.sessions.get_mut(&seat).filter(|session| session.connection == Some(number)) else { return };
        session.connection = None;
        session.disconnected_at = Some(Instant::now());
        if for_good {
            self.leave(seat);
        } else {
            self.later(window, move |voice| {
                let gone = |session: &Session| session.disconnected_at.is_some_and(|at| at.elapsed() >= window);
                if voice.sessions.get(&seat).is_some_and(gone) {
                    voice.leave(seat);
                }
            });
        }
    }

    /// Closes a connection. Messages that were queued before are still sent.
    pub fn close(&mut self, number: usize, code: u16, reason: &'static str) {
        self.order(number, Order::Close(code, reason));
        self.closed(number, Ended::Here(code, reason));
    }

    pub fn cut(&mut self, number: usize) {
        self.order(number, Order::Cut);
        self.closed(number, Ended::Cut);
    }

    /// Ends a session, and tells the other members of the call.
    pub fn leave(&mut self, seat: Seat) {
        let Some(session) = self.sessions.remove(&seat) else { return };
        self.revoke(&session.grant.token);
        if let Some(connection) = session.connection {
            self.close(connection, 4014, "Disconnected.");
        }
        if session.cipher.is_none() {
            return;
        }
        for user in self.members(seat.channel) {
            self.send(Seat { user, ..seat }, 13, json!({ "user_id": seat.user }));
        }
        self.left_group(seat);
    }

    /// Makes a token invalid.
    pub fn revoke(&mut self, token: &str) {
        if self.grants.remove(token).is_some() {
            self.revoked.insert(token.to_owned());
        }
    }

    /// The counts of a seat, also after its session has ended.
    pub fn count(&mut self, seat: Seat) -> &mut Counts {
        self.counts.entry(seat).or_default()
    }
}

impl Voice {
    /// Lets a user join the call of a channel. An earlier grant of the user for the call becomes invalid.
    pub fn grant(&mut self, guild: Id, seat: Seat, session: &str) -> Grant {
        let earlier = self.grants.values().find(|grant| grant.seat == seat).map(|grant| grant.token.clone());
        if let Some(earlier) = earlier {
            self.revoke(&earlier);
        }
        let server = self.hosts.get(&seat.channel).copied().unwrap_or_default();
        let address = &self.servers[server].0;
        let endpoint = if self.rules.endpoints_with_scheme { format!("ws://{address}") } else { address.clone() };
        let token = format!("voice-{}-{:x}", self.number(), seat.user.0);
        let grant = Grant { server, endpoint, guild, seat, session: session.to_owned(), token: token.clone() };
        self.grants.insert(token, grant.clone());
        grant
    }

    /// Disconnects a user, or withdraws the right to join.
    pub fn disconnect(&mut self, seat: Seat, code: u16, reason: &'static str) {
        let granted: Vec<String> =
            self.grants.values().filter(|grant| grant.seat == seat).map(|grant| grant.token.clone()).collect();
        for token in granted {
            self.revoke(&token);
        }
        if let Some(connection) = self.sessions.get(&seat).and_then(|session| session.connection) {
            self.close(connection, code, reason);
        }
        self.leave(seat);
    }

    pub fn set_deafened(&mut self, seat: Seat, deafened: bool) {
        if deafened {
            self.deafened.insert(seat)
        } else {
            self.deafened.remove(&seat)
        };
    }

    pub fn connection_of(&self, seat: Seat) -> Option<usize> {
        self.sessions.get(&seat).and_then(|session| session.connection)
    }
}
