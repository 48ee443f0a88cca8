//! Reads what comes over the gateway, as far as a connection needs it: lenient, bounded, and without a word of it in a log.

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::num::NonZeroU64;

use reqwest::Url;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::snowflake::Snowflake;

/// A frame longer than this is not read. The longest that Discord sends, a large guild's, has a few million bytes.
pub const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;
/// A session's id is shorter, as is the name of an event.
const LONGEST_WORD: usize = 128;
/// An address is shorter.
const LONGEST_ADDRESS: usize = 512;

/// A frame, as far as the connection itself has to know (Discord's documentation, "Gateway", "Payloads").
#[derive(Debug)]
pub enum Frame {
    /// Opcode 0.
    Dispatch {
        /// Its number within the session.
        sequence: u64,
        /// What it is called.
        kind: String,
        /// What it tells.
        data: Box<RawValue>,
    },
    /// Opcode 1: a heartbeat is wanted now.
    Heartbeat,
    /// Opcode 7: we are to come back on another connection.
    Reconnect,
    /// Opcode 9: whether the session can be resumed all the same.
    InvalidSession(bool),
    /// Opcode 10: how many milliseconds lie between heartbeats, if that can be read and is more than none.
    Hello(Option<NonZeroU64>),
    /// Opcode 11.
    HeartbeatAcknowledged,
    /// Whatever else; nothing is to be done about it.
    Other,
}

/// Why a frame could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no JSON, or not of the form that a frame has.
    Malformed,
    /// It is longer than anything that Discord sends.
    TooLong,
}

impl Unreadable {
    /// A label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLong => "too_long",
        }
    }
}

#[derive(Deserialize)]
struct Envelope {
    op: u64,
    #[serde(default)]
    s: Option<u64>,
    #[serde(default)]
    t: Option<String>,
    #[serde(default)]
    d: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Hello {
    heartbeat_interval: NonZeroU64,
}

/// Reads a frame.
///
/// # Errors
/// It is none. Nothing of it is told.
pub fn read(text: &str) -> Result<Frame, Unreadable> {
    if text.len() > MAX_FRAME_BYTES {
        return Err(Unreadable::TooLong);
    }
    let Envelope { op, s, t, d } = serde_json::from_str(text).map_err(|_| Unreadable::Malformed)?;
    Ok(match op {
        0 => {
            let (Some(sequence), Some(kind)) = (s, t) else { return Err(Unreadable::Malformed) };
            // Of RESUMED it is not documented that it tells anything.
            let data = d.unwrap_or_else(|| RawValue::NULL.to_owned());
            if kind.is_empty() || kind.len() > LONGEST_WORD {
                return Err(Unreadable::Malformed);
            }
            Frame::Dispatch { sequence, kind, data }
        }
        1 => Frame::Heartbeat,
        7 => Frame::Reconnect,
        // Whoever does not say that a session can be resumed says that it cannot.
        9 => Frame::InvalidSession(d.is_some_and(|d| d.get() == "true")),
        10 => Frame::Hello(d.and_then(|d| serde_json::from_str::<Hello>(d.get()).ok()).map(|hello| hello.heartbeat_interval)),
        11 => Frame::HeartbeatAcknowledged,
        _ => Frame::Other,
    })
}

/// What READY tells that a connection needs (Discord's documentation, "Gateway Events", "Ready").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The session's id.
    pub session: String,
    /// Where it can be resumed; none if that is no address that can be used.
    pub resume_url: Option<String>,
    /// The bot's user.
    pub user: Snowflake,
    /// Its application.
    pub application: Snowflake,
}

/// Reads READY.
pub fn ready(data: &RawValue) -> Option<Ready> {
    #[derive(Deserialize)]
    struct Told {
        session_id: String,
        #[serde(default)]
        resume_gateway_url: Option<String>,
        user: Named,
        #[serde(default)]
        application: Option<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        id: Snowflake,
    }
    let told: Told = serde_json::from_str(data.get()).ok()?;
    let is_word = !told.session_id.is_empty() && told.session_id.len() <= LONGEST_WORD;
    is_word.then(|| Ready {
        resume_url: told.resume_gateway_url.as_deref().and_then(address),
        user: told.user.id,
        application: told.application.unwrap_or(told.user).id,
        session: told.session_id,
    })
}

/// An address of a gateway, as a client can use it: encrypted, or on this machine; without a slash at the end.
pub fn address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= LONGEST_ADDRESS)?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_safe = url.scheme() == "wss" || (url.scheme() == "ws" && is_here);
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    (is_safe && is_bare).then(|| url.as_str().trim_end_matches('/').to_owned())
}
