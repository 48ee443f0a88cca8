//! What a connection tells.

use super::closing::Ended;

/// What happens in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// People are heard and companions can speak. Comes again after a move to another server, and when the session had to
    /// begin again.
    Connected,
    /// A packet of somebody.
    Heard(Heard),
    /// Somebody is in the call, as the voice server tells it.
    Here(u64),
    /// Somebody has left, as the voice server tells it.
    Left(u64),
    /// Whether what companions say is encrypted end to end. Comes after `Connected`, and when it changes.
    EndToEnd(bool),
    /// How much of a reply was sent: about every 100 ms, when nothing waits any more, when another reply begins, and after a flush.
    Sent(Sent),
    /// The connection to the gateway is lost. People are heard and companions speak on while it is resumed.
    Resuming,
    /// The connection to the gateway is back.
    Resumed,
    /// Nothing follows.
    Ended(Ended),
}

/// A packet of somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The person. With end-to-end encryption it is whose key opened the packet, otherwise whom the voice server named.
    pub user: u64,
    /// The stream of packets to which it belongs. Each has numbers of its own.
    pub line: u64,
    /// The time of capture, in frames of 20 ms. It goes on while nothing is sent, and may jump ahead.
    pub number: u32,
    pub opus: Vec<u8>,
}

/// How much of a reply was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub reply: u64,
    /// The frames of it that have left this machine. What is heard is about 200 ms behind.
    pub frames: u32,
}
