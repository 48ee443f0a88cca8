//! Sessions of the gateway: whom they tell what, and what they keep for those who come back.
//!
//! <https://docs.discord.com/developers/events/gateway#resuming>

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::id::Id;
use super::intents;
use super::journal::{Closed, Connected, Delivery};
use super::state::State;

/// Everything about the gateway that is not in the journal.
#[derive(Default)]
pub struct Gateway {
    pub sessions: BTreeMap<String, Session>,
    pub connections: BTreeMap<usize, Connection>,
    /// When IDENTIFYs came, within the window of their daily budget.
    pub starts: VecDeque<Instant>,
    /// When the last IDENTIFY of a rate limit key came.
    pub keys: BTreeMap<u64, Instant>,
}

/// A stream of events that outlives its connections.
pub struct Session {
    pub shard: (u64, u64),
    pub intents: u64,
    /// The newest event's number.
    pub sequence: u64,
    /// The newest events, as they were or would have been sent.
    kept: VecDeque<Kept>,
    pub connection: Option<usize>,
    pub disconnected_at: Option<Instant>,
    /// The newest sequence that the client says it has.
    pub acknowledged: u64,
    /// How many heartbeats came.
    pub heartbeats: usize,
}

#[derive(Clone)]
struct Kept {
    sequence: u64,
    frame: String,
    delivery: usize,
}

/// A WebSocket.
pub struct Connection {
    orders: mpsc::UnboundedSender<Order>,
    pub session: Option<String>,
    /// When payloads came, within the window of their limit.
    pub sends: VecDeque<Instant>,
    /// Its heartbeats are not acknowledged.
    pub unacknowledged: bool,
    /// It hears nothing at all; what it misses is kept for RESUME.
    pub silent: bool,
}

/// What a connection's task has to do.
#[derive(Debug)]
pub enum Order {
    /// Write a text; an event is noted as sent.
    Send(String, Option<usize>),
    /// Write bytes.
    SendBytes(Vec<u8>),
    /// Close with a code.
    Close(u16, &'static str),
    /// Close with a code if the client has not, when the grace is over.
    CloseLater,
    /// Cut it without a word.
    Cut,
}

/// Something that happened.
pub struct Event {
    pub name: &'static str,
    pub place: Place,
    /// The intent that a session needs to be told; 0: none.
    pub intent: u64,
    pub data: Value,
    /// The same for a session without MESSAGE_CONTENT.
    pub bare: Option<Value>,
    pub channel: Option<Id>,
    pub message: Option<Id>,
}

/// Where something happened, which decides who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Guild(Id),
    /// Without a guild: the first shard is told.
    Elsewhere,
}

impl Event {
    pub fn new(name: &'static str, place: Place, intent: u64, data: Value) -> Self {
        Self { name, place, intent, data, bare: None, channel: None, message: None }
    }
}

impl Session {
    pub fn new(shard: (u64, u64), intents: u64) -> Self {
        let kept = VecDeque::new();
        Self { shard, intents, sequence: 0, kept, connection: None, disconnected_at: None, acknowledged: 0, heartbeats: 0 }
    }

    /// Whether it is told of what happens there.
    pub fn covers(&self, place: Place) -> bool {
        let (shard, shards) = self.shard;
        match place {
            Place::Guild(guild) => guild.shard(shards) == shard,
            Place::Elsewhere => shard == 0,
        }
    }

    /// Events after this one, if all of them are still there.
    fn after(&self, sequence: u64) -> Option<Vec<Kept>> {
        let oldest = self.kept.front().map_or(self.sequence + 1, |kept| kept.sequence);
        (oldest <= sequence + 1).then(|| self.kept.iter().filter(|kept| kept.sequence > sequence).cloned().collect())
    }
}

impl State {
    /// Tells every session that is concerned.
    pub fn send_event(&mut self, event: &Event) {
        // Of a guild that it is not in, or that has an outage, the bot is told only that this is so.
        if let Place::Guild(guild) = event.place
            && event.name != "GUILD_DELETE"
            && !self.world.joined().any(|joined| joined.id == guild && !joined.outage)
        {
            return;
        }
        let concerned = |session: &Session| session.covers(event.place) && session.intents & event.intent == event.intent;
        let sessions = self.gateway.sessions.iter().filter(|(_, session)| concerned(session));
        let ids: Vec<String> = sessions.map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.send_event_to(&id, event);
        }
    }

    /// Tells one session. It keeps the event, whether it is connected or not.
    pub fn send_event_to(&mut self, id: &str, event: &Event) {
        let buffer = self.rules.resume_buffer;
        let Some(session) = self.gateway.sessions.get_mut(id) else { return };
        session.sequence += 1;
        let open = session.intents & intents::MESSAGE_CONTENT != 0;
        let data = event.bare.as_ref().filter(|_| !open).unwrap_or(&event.data);
        let frame = json!({ "op": 0, "t": event.name, "s": session.sequence, "d": data }).to_string();
        let delivery = self.journal.deliveries.len();
        self.journal.deliveries.push(Delivery {
            session: id.to_owned(),
            shard: session.shard,
            sequence: session.sequence,
            event: event.name,
            guild: match event.place {
                Place::Guild(guild) => Some(guild),
                Place::Elsewhere => None,
            },
            channel: event.channel,
            message: event.message,
            sent: Vec::new(),
        });
        session.kept.push_back(Kept { sequence: session.sequence, frame: frame.clone(), delivery });
        if session.kept.len() > buffer {
            session.kept.pop_front();
        }
        let connection = session.connection.and_then(|number| self.gateway.connections.get(&number));
        if let Some(connection) = connection.filter(|connection| !connection.silent) {
            connection.order(Order::Send(frame, Some(delivery)));
        }
    }

    /// A session that can be resumed from this sequence: its events after that.
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
        for kept in missed {
            connection.order(Order::Send(kept.frame, Some(kept.delivery)));
        }
        Some(replayed)
    }

    /// Drops sessions that nobody came back for.
    pub fn forget_old_sessions(&mut self) {
        let window = self.rules.resume_window;
        self.gateway.sessions.retain(|_, session| session.disconnected_at.is_none_or(|left| left.elapsed() <= window));
    }

    /// A new connection: its number, and what its task has to do.
    pub fn open(&mut self, by_resume_url: bool, compresses: bool) -> (usize, mpsc::UnboundedReceiver<Order>) {
        let (orders, received) = mpsc::unbounded_channel();
        let number = self.journal.connections.len();
        self.journal.connections.push(Connected { at: Instant::now(), by_resume_url, compresses, session: None, closed: None });
        let connection = Connection { orders, session: None, sends: VecDeque::new(), unacknowledged: false, silent: false };
        self.gateway.connections.insert(number, connection);
        (number, received)
    }

    /// A connection is over. Its session stays, unless the client took its leave.
    ///
    /// <https://docs.discord.com/developers/events/gateway#initiating-a-disconnect>
    pub fn closed(&mut self, number: usize, how: Closed) {
        let ends = matches!(how, Closed::Client(Some(1000 | 1001)) | Closed::Here(4004 | 4007 | 4009, _));
        self.journal.connections[number].closed.get_or_insert(how);
        let Some(connection) = self.gateway.connections.remove(&number) else { return };
        let Some(id) = connection.session else { return };
        if let Some(session) = self.gateway.sessions.get_mut(&id).filter(|session| session.connection == Some(number)) {
            session.connection = None;
            session.disconnected_at = Some(Instant::now());
            if ends {
                self.gateway.sessions.remove(&id);
            }
        }
    }

    /// Closes a connection. What it was told before still goes out.
    pub fn close(&mut self, number: usize, code: u16, reason: &'static str) {
        if let Some(connection) = self.gateway.connections.get(&number) {
            connection.order(Order::Close(code, reason));
        }
        self.closed(number, Closed::Here(code, reason.to_owned()));
    }

    /// Cuts a connection.
    pub fn cut(&mut self, number: usize) {
        if let Some(connection) = self.gateway.connections.get(&number) {
            connection.order(Order::Cut);
        }
        self.closed(number, Closed::Cut);
    }

    /// Sends something that is no event.
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
        // A task that is gone has said how it ended.
        let _ = self.orders.send(order);
    }
}
