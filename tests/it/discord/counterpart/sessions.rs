//! Sessions of the gateway: which events they receive, and which they buffer for RESUME.
//!
//! <https://docs.discord.com/developers/events/gateway#resuming>

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::journal::{Connected, Delivery};
use super::{Closed, Id, Intents, State};

/// Everything about the gateway that is not in the journal.
#[derive(Default)]
pub struct Gateway {
    pub sessions: BTreeMap<String, Session>,
    pub connections: BTreeMap<usize, Connection>,
    /// The times of IDENTIFYs within the window of their daily limit.
    pub starts: VecDeque<Instant>,
    /// The time of the last IDENTIFY of each rate limit key.
    pub keys: BTreeMap<u64, Instant>,
}

/// A stream of events that outlives its connections.
pub struct Session {
    pub shard: (u64, u64),
    pub intents: Intents,
    /// The sequence number of the newest event.
    pub sequence: u64,
    /// The newest events, as they were or would have been sent.
    buffer: VecDeque<BufferedEvent>,
    pub connection: Option<usize>,
    pub disconnected_at: Option<Instant>,
    /// The newest sequence number that the client acknowledged.
    pub acknowledged: u64,
    /// How many heartbeats the client sent.
    pub heartbeats: usize,
}

#[derive(Clone)]
struct BufferedEvent {
    sequence: u64,
    frame: String,
    delivery: usize,
}

/// A WebSocket.
pub struct Connection {
    orders: mpsc::UnboundedSender<Order>,
    pub session: Option<String>,
    /// The times of payloads within the window of their limit.
    pub sends: VecDeque<Instant>,
    /// Whether its heartbeats stay without acknowledgement.
    pub unacknowledged: bool,
    /// Whether nothing is sent on it. Missed events stay in the session's buffer for RESUME.
    pub silent: bool,
}

/// An order to a connection's task.
#[derive(Debug)]
pub enum Order {
    /// Write a text. If it is an event, mark its delivery as sent.
    Send(String, Option<usize>),
    /// Write bytes.
    SendBytes(Vec<u8>),
    /// Close with a code.
    Close(u16, &'static str),
    /// Close with a code when the grace period is over, unless the client has closed before.
    CloseLater,
    /// Cut the connection without a close frame.
    Cut,
}

/// An event for the sessions that it concerns.
pub struct Event {
    pub name: &'static str,
    pub place: Place,
    /// The intent that a session needs to receive it, if any.
    pub intent: Intents,
    pub data: Value,
    /// The data for a session without MESSAGE_CONTENT.
    pub bare: Option<Value>,
    pub message: Option<Id>,
}

/// Where something happened. This decides which shard receives the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Guild(Id),
    /// Outside guilds: the first shard receives the event.
    Elsewhere,
}

impl Event {
    pub fn new(name: &'static str, place: Place, intent: Intents, data: Value) -> Self {
        Self { name, place, intent, data, bare: None, message: None }
    }
}

impl Session {
    pub fn new(shard: (u64, u64), intents: Intents) -> Self {
        let buffer = VecDeque::new();
        Self { shard, intents, sequence: 0, buffer, connection: None, disconnected_at: None, acknowledged: 0, heartbeats: 0 }
    }

    /// Whether its shard receives events of this place.
    pub fn covers(&self, place: Place) -> bool {
        let (shard, shards) = self.shard;
        match place {
            Place::Guild(guild) => guild.shard(shards) == shard,
            Place::Elsewhere => shard == 0,
        }
    }

    /// The events after this sequence number, if all of them are still in the buffer.
    fn after(&self, sequence: u64) -> Option<Vec<BufferedEvent>> {
        let oldest = self.buffer.front().map_or(self.sequence + 1, |event| event.sequence);
        (oldest <= sequence + 1).then(|| self.buffer.iter().filter(|event| event.sequence > sequence).cloned().collect())
    }
}

impl State {
    /// Sends an event to every session that it concerns.
    pub fn send_event(&mut self, event: &Event) {
        // For a guild that has an outage or that the bot is not in, the bot receives nothing but GUILD_DELETE.
        if let Place::Guild(guild) = event.place
            && event.name != "GUILD_DELETE"
            && !self.world.joined().any(|joined| joined.id == guild && !joined.outage)
        {
            return;
        }
        let receives = |session: &Session| session.covers(event.place) && session.intents.contains(event.intent);
        let sessions = self.gateway.sessions.iter().filter(|(_, session)| receives(session));
        let ids: Vec<String> = sessions.map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.send_event_to(&id, event);
        }
    }

    /// Sends an event to one session. The session buffers the event, whether it is connected or not.
    pub fn send_event_to(&mut self, id: &str, event: &Event) {
        let max_buffered = self.rules.resume_buffer;
        let Some(session) = self.gateway.sessions.get_mut(id) else { return };
        session.sequence += 1;
        let open = session.intents.contains(Intents::MESSAGE_CONTENT);
        let mut data = event.bare.as_ref().filter(|_| !open).unwrap_or(&event.data).clone();
        if event.name == "GUILD_CREATE" && !session.intents.contains(Intents::GUILD_VOICE_STATES) {
            data["voice_states"] = json!([]);
        }
        let frame = json!({ "op": 0, "t": event.name, "s": session.sequence, "d": data }).to_string();
        let delivery = self.journal.deliveries.len();
        self.journal.deliveries.push(Delivery { message: event.message, sent: Vec::new() });
        session.buffer.push_back(BufferedEvent { sequence: session.sequence, frame: frame.clone(), delivery });
        if session.buffer.len() > max_buffered {
            session.buffer.pop_front();
        }
        let connection = session.connection.and_then(|number| self.gateway.connections.get(&number));
        if let Some(connection) = connection.filter(|connection| !connection.silent) {
            connection.order(Order::Send(frame, Some(delivery)));
        }
    }

    /// Resumes a session on a connection and replays its events after this sequence number. Returns how many, or none if it cannot be resumed.
    pub fn replay(&mut self, id: &str, sequence: u64, on: usize) -> Option<usize> {
        self.forget_old_sessions();
        let session = self.gateway.sessions.get_mut(id)?;
        let missed = session.after(sequence)?;
        let before = session.connection.replace(on).filter(|before| *before != on);
        session.disconnected_at = None;
        session.acknowledged = session.acknowledged.max(sequence);
        if let Some(before) = before {
            self.cut(before);
        }
        let connection = self.gateway.connections.get_mut(&on)?;
        connection.session = Some(id.to_owned());
        self.journal.connections[on].session = Some(id.to_owned());
        let replayed = missed.len();
        for event in missed {
            connection.order(Order::Send(event.frame, Some(event.delivery)));
        }
        Some(replayed)
    }

    /// Drops sessions that have been without a connection for longer than the resume window.
    pub fn forget_old_sessions(&mut self) {
        let window = self.rules.resume_window;
        self.gateway
            .sessions
            .retain(|_, session| session.disconnected_at.is_none_or(|disconnected| disconnected.elapsed() <= window));
        self.end_lost_voice();
    }

    /// Adds a connection. Returns its number, and the orders for its task.
    pub fn open(&mut self, by_resume_url: bool, compresses: bool) -> (usize, mpsc::UnboundedReceiver<Order>) {
        let (orders, received) = mpsc::unbounded_channel();
        let number = self.journal.connections.len();
        self.journal.connections.push(Connected { by_resume_url, compresses, session: None, closed: None });
        let connection = Connection { orders, session: None, sends: VecDeque::new(), unacknowledged: false, silent: false };
        self.gateway.connections.insert(number, connection);
        (number, received)
    }

    /// Records the end of a connection. Its session stays, unless the close code ends it.
    ///
    /// <https://docs.discord.com/developers/events/gateway#initiating-a-disconnect>
    pub fn closed(&mut self, number: usize, end: Closed) {
        let ends = matches!(end, Closed::Client(Some(1000 | 1001)) | Closed::Here(4004 | 4007 | 4009, _));
        self.journal.connections[number].closed.get_or_insert(end);
        let Some(connection) = self.gateway.connections.remove(&number) else { return };
        let Some(id) = connection.session else { return };
        if let Some(session) = self.gateway.sessions.get_mut(&id).filter(|session| session.connection == Some(number)) {
            session.connection = None;
            session.disconnected_at = Some(Instant::now());
            if ends {
                self.gateway.sessions.remove(&id);
                self.end_lost_voice();
            }
        }
    }

    /// Closes a connection. Payloads that were queued before are still sent.
    pub fn close(&mut self, number: usize, code: u16, reason: &'static str) {
        if let Some(connection) = self.gateway.connections.get(&number) {
            connection.order(Order::Close(code, reason));
        }
        self.closed(number, Closed::Here(code, reason.to_owned()));
    }

    pub fn cut(&mut self, number: usize) {
        if let Some(connection) = self.gateway.connections.get(&number) {
            connection.order(Order::Cut);
        }
        self.closed(number, Closed::Cut);
    }

    /// Sends a payload that is not an event.
    pub fn send(&self, number: usize, payload: &Value) {
        self.order(number, Order::Send(payload.to_string(), None));
    }

    pub fn order(&self, number: usize, order: Order) {
        if let Some(connection) = self.gateway.connections.get(&number) {
            connection.order(order);
        }
    }

    /// The connections that serve a shard now.
    pub fn serving(&self, shard: u64) -> Vec<usize> {
        let sessions = self.gateway.sessions.values().filter(|session| session.shard.0 == shard);
        sessions.filter_map(|session| session.connection).collect()
    }
}

impl Connection {
    fn order(&self, order: Order) {
        // A task that has ended has recorded how.
        let _ = self.orders.send(order);
    }
}
