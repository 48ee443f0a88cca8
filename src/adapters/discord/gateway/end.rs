//! The reasons why a connection ends, with descriptions for the operator.

use std::time::Duration;

use serde_json::json;

use super::super::identify::{self, NextStep};
use super::session::Session;
use crate::ports::backend::Detail;
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
    pub fn description(&self) -> Detail {
        match self {
            Self::Unreachable(detail) => Detail::from(format!("Discord's gateway cannot be reached: {detail}"))
                .coded("refusals.discord_unreachable", json!({ "error": detail })),
            Self::Silent => Detail::key("refusals.discord_silent"),
            Self::NoSession => Detail::key("refusals.discord_no_session"),
            Self::Closed(Some(code)) => Detail::of("refusals.discord_closed", json!({ "number": code })),
            Self::Closed(None) => Detail::key("refusals.discord_cut"),
            Self::Zombie => Detail::key("refusals.discord_heartbeats"),
            Self::ReconnectRequested => Detail::key("refusals.discord_reconnect"),
            Self::InvalidSession { .. } => Detail::key("refusals.discord_session_gone"),
            Self::Lost => Detail::key("refusals.discord_not_journaled"),
            Self::Stuck => Detail::key("refusals.discord_overloaded"),
            Self::InvalidData => Detail::key("refusals.discord_invalid"),
            Self::NotPermitted(Disconnected::Never(why) | Disconnected::Later { detail: why, .. }) => why.clone(),
        }
    }
}
