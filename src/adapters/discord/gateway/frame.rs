//! Parses gateway frames, as far as a connection needs them. Parsing is lenient and bounded, and errors contain no part of a frame.

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::num::NonZeroU64;

use reqwest::Url;
use serde::Deserialize;
use serde_json::value::RawValue;
use twilight_model::gateway::OpCode;

use super::super::wire::Ready;

/// The length limit of a frame. Discord's longest frames, for large guilds, have a few million bytes.
pub const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;
/// The length limit of a session's id and of an event's name.
const LONGEST_WORD: usize = 128;
const LONGEST_ADDRESS: usize = 512;

/// A frame, as far as a connection needs it (Discord's documentation, "Gateway", "Payloads").
#[derive(Debug)]
pub enum Frame {
    Dispatch {
        /// The event's number within the session.
        sequence: u64,
        kind: String,
        /// The event's data, unparsed.
        data: Box<RawValue>,
    },
    /// Discord requests a heartbeat now.
    Heartbeat,
    /// Discord requests a new connection.
    Reconnect,
    /// The session is invalid. The value says whether it can still be resumed.
    InvalidSession(bool),
    /// The heartbeat interval in milliseconds. `None` if it is invalid or zero.
    Hello(Option<NonZeroU64>),
    HeartbeatAcknowledged,
    /// Any other opcode, which is ignored.
    Other,
}

/// Why a frame could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidFrame {
    /// The frame is not JSON, or has the wrong structure.
    Malformed,
    /// The frame is longer than any that Discord sends.
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
    s: Option<u64>,
    t: Option<String>,
    d: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Hello {
    heartbeat_interval: NonZeroU64,
}

/// Parses a frame.
///
/// # Errors
/// Returns an error if the frame is invalid. The error contains no part of it.
pub fn parse(text: &str) -> Result<Frame, InvalidFrame> {
    if text.len() > MAX_FRAME_BYTES {
        return Err(InvalidFrame::TooLong);
    }
    let Envelope { op, s, t, d } = serde_json::from_str(text).map_err(|_| InvalidFrame::Malformed)?;
    Ok(match u8::try_from(op).ok().and_then(OpCode::from) {
        Some(OpCode::Dispatch) => {
            let (Some(sequence), Some(kind)) = (s, t) else { return Err(InvalidFrame::Malformed) };
            // The data of RESUMED is not documented.
            let data = d.unwrap_or_else(|| RawValue::NULL.to_owned());
            if kind.is_empty() || kind.len() > LONGEST_WORD {
                return Err(InvalidFrame::Malformed);
            }
            Frame::Dispatch { sequence, kind, data }
        }
        Some(OpCode::Heartbeat) => Frame::Heartbeat,
        Some(OpCode::Reconnect) => Frame::Reconnect,
        // Any value other than `true` means that the session cannot be resumed.
        Some(OpCode::InvalidSession) => Frame::InvalidSession(d.is_some_and(|d| d.get() == "true")),
        Some(OpCode::Hello) => {
            let hello: Option<Hello> = d.and_then(|d| serde_json::from_str(d.get()).ok());
            Frame::Hello(hello.map(|hello| hello.heartbeat_interval))
        }
        Some(OpCode::HeartbeatAck) => Frame::HeartbeatAcknowledged,
        _ => Frame::Other,
    })
}

/// Parses READY. `None` if it has no valid session. An invalid address for resuming is dropped.
pub fn parse_ready(data: &RawValue) -> Option<Ready> {
    let mut ready: Ready = serde_json::from_str(data.get()).ok()?;
    ready.resume_gateway_url = ready.resume_gateway_url.as_deref().and_then(address);
    Some(ready).filter(|ready| (1..=LONGEST_WORD).contains(&ready.session_id.len()))
}

/// Normalises the address of a gateway. `None` unless the address is encrypted or on this machine. The result does not end with a slash.
pub fn address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= LONGEST_ADDRESS)?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_secure = url.scheme() == "wss" || (url.scheme() == "ws" && is_loopback);
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    (is_secure && is_bare).then(|| url.as_str().trim_end_matches('/').to_owned())
}
