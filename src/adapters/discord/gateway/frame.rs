//! Parses frames of the gateway, as far as a connection needs them. It is lenient and bounded, and errors contain nothing of a frame.

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::num::NonZeroU64;

use reqwest::Url;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::snowflake::Snowflake;

/// The longest frame that is parsed. The longest that Discord sends, a large guild's, has a few million bytes.
pub const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;
/// The longest id of a session, and the longest name of an event.
const LONGEST_WORD: usize = 128;
const LONGEST_ADDRESS: usize = 512;

/// A frame, as far as the connection itself needs it (Discord's documentation, "Gateway", "Payloads").
#[derive(Debug)]
pub enum Frame {
    /// Opcode 0.
    Dispatch {
        /// The event's number within the session.
        sequence: u64,
        /// The event's name.
        kind: String,
        /// The event's data, not parsed yet.
        data: Box<RawValue>,
    },
    /// Opcode 1: Discord requests a heartbeat now.
    Heartbeat,
    /// Opcode 7: Discord requests a new connection.
    Reconnect,
    /// Opcode 9: whether the session can still be resumed.
    InvalidSession(bool),
    /// Opcode 10: milliseconds between heartbeats. `None` if the value is invalid or zero.
    Hello(Option<NonZeroU64>),
    /// Opcode 11.
    HeartbeatAcknowledged,
    /// Any other opcode. It is ignored.
    Other,
}

/// Why a frame could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidFrame {
    /// It is not JSON, or does not have the form of a frame.
    Malformed,
    /// It is longer than anything that Discord sends.
    TooLong,
}

impl InvalidFrame {
    /// A metric label.
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

/// Parses a frame.
///
/// # Errors
/// It is invalid. The error contains nothing of it.
pub fn parse(text: &str) -> Result<Frame, InvalidFrame> {
    if text.len() > MAX_FRAME_BYTES {
        return Err(InvalidFrame::TooLong);
    }
    let Envelope { op, s, t, d } = serde_json::from_str(text).map_err(|_| InvalidFrame::Malformed)?;
    Ok(match op {
        0 => {
            let (Some(sequence), Some(kind)) = (s, t) else { return Err(InvalidFrame::Malformed) };
            // Data of RESUMED is not documented.
            let data = d.unwrap_or_else(|| RawValue::NULL.to_owned());
            if kind.is_empty() || kind.len() > LONGEST_WORD {
                return Err(InvalidFrame::Malformed);
            }
            Frame::Dispatch { sequence, kind, data }
        }
        1 => Frame::Heartbeat,
        7 => Frame::Reconnect,
        // Anything but `true` means that the session cannot be resumed.
        9 => Frame::InvalidSession(d.is_some_and(|d| d.get() == "true")),
        10 => Frame::Hello(d.and_then(|d| serde_json::from_str::<Hello>(d.get()).ok()).map(|hello| hello.heartbeat_interval)),
        11 => Frame::HeartbeatAcknowledged,
        _ => Frame::Other,
    })
}

/// The fields of READY that a connection needs (Discord's documentation, "Gateway Events", "Ready").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub session: String,
    /// The address for resuming. `None` if it is invalid.
    pub resume_url: Option<String>,
    pub user: Snowflake,
    pub application: Snowflake,
}

pub fn parse_ready(data: &RawValue) -> Option<Ready> {
    #[derive(Deserialize)]
    struct Fields {
        session_id: String,
        #[serde(default)]
        resume_gateway_url: Option<String>,
        user: WithId,
        #[serde(default)]
        application: Option<WithId>,
    }
    #[derive(Deserialize)]
    struct WithId {
        id: Snowflake,
    }
    let fields: Fields = serde_json::from_str(data.get()).ok()?;
    let is_valid = !fields.session_id.is_empty() && fields.session_id.len() <= LONGEST_WORD;
    is_valid.then(|| Ready {
        resume_url: fields.resume_gateway_url.as_deref().and_then(address),
        user: fields.user.id,
        application: fields.application.unwrap_or(fields.user).id,
        session: fields.session_id,
    })
}

/// Normalises the address of a gateway. `None` unless it is encrypted or on this machine. The result has no slash at the end.
pub fn address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= LONGEST_ADDRESS)?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_secure = url.scheme() == "wss" || (url.scheme() == "ws" && is_loopback);
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    (is_secure && is_bare).then(|| url.as_str().trim_end_matches('/').to_owned())
}
