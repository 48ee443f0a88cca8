//! How connections end, and what an operator is told of it.

use std::time::Duration;

use super::super::identify::{self, Return};
use super::session::Session;
use crate::ports::gateway::Disconnected;

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// None came about.
    Unreachable(String),
    /// It came about, or not, and nothing was said on it in time.
    Silent,
    /// There was no session on it in time.
    NoSession,
    /// Discord closed it, with this code if it gave one, or it broke.
    Closed(Option<u16>),
    /// Heartbeats are not acknowledged any more.
    Zombie,
    /// Discord wants us on another one.
    AskedToReconnect,
    /// Discord does not know the session, or not now.
    InvalidSession {
        /// It can be resumed all the same.
        is_resumable: bool,
    },
    /// An event that was taken in was lost: it has to be told again.
    Lost,
    /// The intake takes nothing in any more.
    Stuck,
    /// What Discord said makes no sense, and without it there is no going on.
    Confused,
    /// It may not identify.
    NoLeave(Disconnected),
}

/// A connection that is over.
pub struct Ended {
    /// Why.
    pub end: End,
    /// The session that there was on it, or that it was to resume.
    pub session: Option<Session>,
    /// How long there was a session on it, if there was one.
    pub lived: Option<Duration>,
    /// Whether an event came besides READY and RESUMED.
    pub has_heard: bool,
    /// Whether the gateway answered at all.
    pub has_greeted: bool,
    /// Whether an identify left.
    pub has_identified: bool,
}

impl Ended {
    /// One that did not even begin.
    pub const fn before(end: End) -> Self {
        Self { end, session: None, lived: None, has_heard: false, has_greeted: false, has_identified: false }
    }
}

impl End {
    /// How the shard comes back.
    pub const fn followed_by(&self) -> Return {
        match self {
            Self::Closed(code) => identify::after_close(*code),
            Self::InvalidSession { is_resumable } => identify::after_invalid_session(*is_resumable),
            _ => Return::Resume,
        }
    }

    /// A label.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Silent => "silent",
            Self::NoSession => "no_session",
            Self::Closed(Some(_)) => "closed",
            Self::Closed(None) => "cut",
            Self::Zombie => "zombie",
            Self::AskedToReconnect => "asked",
            Self::InvalidSession { .. } => "invalid_session",
            Self::Lost => "lost",
            Self::Stuck => "stuck",
            Self::Confused => "confused",
            Self::NoLeave(_) => "no_leave",
        }
    }

    /// In plain words.
    pub fn told(&self) -> String {
        match self {
            Self::Unreachable(detail) => format!("Discord's gateway cannot be reached: {detail}"),
            Self::Silent => "Discord's gateway does not answer".to_owned(),
            Self::NoSession => "Discord's gateway answers, but begins no session".to_owned(),
            Self::Closed(Some(code)) => format!("Discord closed the connection (code {code})"),
            Self::Closed(None) => "the connection to Discord's gateway was cut".to_owned(),
            Self::Zombie => "Discord does not acknowledge heartbeats any more".to_owned(),
            Self::AskedToReconnect => "Discord wants a new connection".to_owned(),
            Self::InvalidSession { .. } => "Discord does not know the session any more".to_owned(),
            Self::Lost => "something that was heard could not be put on record".to_owned(),
            Self::Stuck => "what is heard is not taken in any more: this server is overloaded".to_owned(),
            Self::Confused => "what Discord's gateway says cannot be understood".to_owned(),
            Self::NoLeave(why) => why.to_string(),
        }
    }
}
