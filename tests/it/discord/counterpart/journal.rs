//! A record of what happened, for assertions.

use serde_json::Value;
use tokio::time::Instant;

use super::{Author, Id, Mentions};

/// Everything that happened, in order.
#[derive(Default)]
pub struct Journal {
    pub requests: Vec<Request>,
    /// Messages that the application posted.
    pub posts: Vec<Post>,
    /// When and in which channels the application showed that it is typing.
    pub typing: Vec<(Instant, Id)>,
    /// First answers to interactions.
    pub answers: Vec<Answer>,
    pub connections: Vec<Connected>,
    /// Connections to the gateway that were answered with 503.
    pub refused_connects: usize,
    pub identifies: Vec<Identified>,
    pub resumes: Vec<Resumed>,
    /// Presence updates of clients (op 3).
    pub presences: Vec<Value>,
    /// Voice state updates of clients (op 4).
    pub voice_states: Vec<Value>,
    /// Voice state updates that got no answer: the channel, and why.
    pub refused_voice: Vec<(Option<Id>, &'static str)>,
    /// Every event of every session, in the order of their sequences within a session.
    pub deliveries: Vec<Delivery>,
    /// How often the token was reset because there were too many IDENTIFYs.
    pub token_resets: usize,
    /// How often the address was banned.
    pub bans: usize,
    /// Features of Discord that a client used and that this test double lacks.
    pub unsupported: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// The route's name. Empty for an unknown route.
    pub route: &'static str,
    pub channel: Option<Id>,
    pub guild: Option<Id>,
    pub outcome: Option<Outcome>,
}

/// How a request ended. A request without an outcome still hangs, or its connection was cut.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub status: u16,
    /// Discord's own error code, for a refusal.
    pub code: Option<u32>,
    /// Which limit was exceeded: `user`, `global` or `shared`.
    pub limit: Option<&'static str>,
}

/// A message that the application posted.
#[derive(Clone, Debug)]
pub struct Post {
    pub at: Instant,
    pub message: Id,
    pub channel: Id,
    pub author: Author,
    pub content: String,
    pub mentions: Mentions,
    pub nonce: Option<Value>,
    /// The `User-Agent` of the request.
    pub agent: String,
}

/// A first answer to an interaction.
#[derive(Clone, Debug)]
pub struct Answer {
    pub interaction: Id,
    /// The type of the answer: 4 a message, 5 a deferred message, 8 choices.
    pub kind: u64,
    pub data: Value,
    pub ephemeral: bool,
}

/// A connection to the gateway.
#[derive(Clone, Debug)]
pub struct Connected {
    /// Whether the client used the resume address that READY announces.
    pub by_resume_url: bool,
    /// Whether the transport is compressed as one zlib stream.
    pub compresses: bool,
    pub session: Option<String>,
    pub closed: Option<Closed>,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Closed {
    /// We closed it, with this code and for this reason.
    Here(u16, String),
    /// We cut it without a close frame.
    Cut,
    /// The client closed it, with this code if it gave one.
    Client(Option<u16>),
    /// It broke off.
    Broken,
}

/// An IDENTIFY and its result.
#[derive(Clone, Debug)]
pub struct Identified {
    pub at: Instant,
    pub shard: (u64, u64),
    /// The session, if one was started.
    pub session: Option<String>,
    /// The presence that it requested.
    pub presence: Value,
}

/// A RESUME and its result.
#[derive(Clone, Debug)]
pub struct Resumed {
    pub connection: usize,
    pub sequence: u64,
    /// How many events were replayed, if it was accepted.
    pub replayed: Option<usize>,
}

/// An event of a session.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub message: Option<Id>,
    /// The connections on which it was written, one entry per write. It is recorded after the write. With several threads a client may
    /// receive the event a moment earlier, so wait for it.
    pub sent: Vec<usize>,
}

impl Journal {
    /// Requests that were refused, in order.
    pub fn refused(&self) -> impl Iterator<Item = (&Request, &Outcome)> {
        let ended = self.requests.iter().filter_map(|request| Some((request, request.outcome.as_ref()?)));
        ended.filter(|(_, outcome)| outcome.status >= 400)
    }

    /// How often a limit was exceeded.
    pub fn limits_exceeded(&self) -> usize {
        self.refused().filter(|(_, outcome)| outcome.limit.is_some()).count()
    }

    /// Requests of a route.
    pub fn requests_of<'a>(&'a self, route: &'a str) -> impl Iterator<Item = &'a Request> {
        self.requests.iter().filter(move |request| request.route == route)
    }

    /// Connections that we closed, with code and reason.
    pub fn closed_here(&self) -> Vec<(u16, String)> {
        let closed = self.connections.iter().filter_map(|connection| connection.closed.clone());
        let here = closed.filter_map(|closed| match closed {
            Closed::Here(code, reason) => Some((code, reason)),
            _ => None,
        });
        here.collect()
    }
}
