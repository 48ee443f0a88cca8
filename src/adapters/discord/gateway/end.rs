//! The reasons why a connection ends, with descriptions for the operator.

use std::time::Duration;

use super::super::identify::{self, NextStep};
use super::session::Session;
use crate::ports::gateway::Disconnected;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Unreachable(String),
    /// The connection was not open, or HELLO did not arrive, in time.
    Silent,
    /// No session began in time.
    NoSession,
    /// Discord closed the connection, with this code if it sent one, or the connection broke.
    Closed(Option<u16>),
    /// Heartbeats are no longer acknowledged.
    Zombie,
    /// Discord requested a new connection.
    ReconnectRequested,
    /// Discord refused the session, permanently or for now.
    InvalidSession {
        /// Whether the session can still be resumed.
        is_resumable: bool,
    },
    /// An accepted event was lost. Discord must send it again.
    Lost,
    /// The intake accepts no more events.
    Stuck,
    /// Discord sent invalid data, without which the connection cannot continue.
    InvalidData,
    /// An identify is not permitted now, or this node may not be connected.
    NotPermitted(Disconnected),
}

pub struct Ended {
    pub end: End,
    /// The session that began on the connection, or that it tried to resume.
    pub session: Option<Session>,
    /// How long the connection had a session. `None` if it had none.
    pub session_lasted: Option<Duration>,
    /// Whether an event other than READY and RESUMED arrived.
    pub has_received_event: bool,
    pub has_hello: bool,
    /// Whether an identify was sent.
    pub has_identified: bool,
}

impl Ended {
    /// A connection that was not attempted.
    pub const fn not_attempted(end: End) -> Self {
        Self { end, session: None, session_lasted: None, has_received_event: false, has_hello: false, has_identified: false }
    }
}

impl End {
    /// The next step of the shard.
    pub fn next_step(&self) -> NextStep {
        match self {
            Self::Closed(code) => identify::after_close(*code),
            Self::InvalidSession { is_resumable } => identify::after_invalid_session(*is_resumable),
            _ => NextStep::Resume,
        }
    }

    /// A metric label.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Silent => "silent",
            Self::NoSession => "no_session",
            Self::Closed(Some(_)) => "closed",
            Self::Closed(None) => "cut",
            Self::Zombie => "zombie",
            Self::ReconnectRequested => "asked",
            Self::InvalidSession { .. } => "invalid_session",
            Self::Lost => "lost",
            Self::Stuck => "stuck",
            Self::InvalidData => "confused",
            Self::NotPermitted(_) => "no_leave",
        }
    }

    /// A description for the operator.
    pub fn description(&self) -> String {
        match self {
            Self::Unreachable(detail) => format!("Discord's gateway cannot be reached: {detail}"),
            Self::Silent => "Discord's gateway does not answer".to_owned(),
            Self::NoSession => "Discord's gateway answers, but no session begins".to_owned(),
            Self::Closed(Some(code)) => format!("Discord closed the connection (code {code})"),
            Self::Closed(None) => "the connection to Discord's gateway was cut".to_owned(),
            Self::Zombie => "Discord does not acknowledge heartbeats any more".to_owned(),
            Self::ReconnectRequested => "Discord requests a new connection".to_owned(),
            Self::InvalidSession { .. } => "Discord does not know the session any more".to_owned(),
            Self::Lost => "an event could not be journaled".to_owned(),
            Self::Stuck => "events are no longer accepted: this server is overloaded".to_owned(),
            Self::InvalidData => "Discord's gateway sent invalid data".to_owned(),
            Self::NotPermitted(why) => why.to_string(),
        }
    }
}
