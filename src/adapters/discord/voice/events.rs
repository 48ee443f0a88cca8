//! The events of a voice connection.

use super::closing::Ended;

/// Something that happened in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Audio can be received and sent. Reported again after a move to another server, and after a new session replaced one that could not be
    /// resumed.
    Connected,
    /// A packet of a person's audio.
    Heard(Heard),
    /// The voice server reports a user in the call.
    Here(u64),
    /// The voice server reports that a user has left.
    Left(u64),
    /// Whether the companions' speech is encrypted end to end. Reported after `Connected`, and on each change.
    EndToEnd(bool),
    /// How much of a reply was sent. Reported about every 100 ms, when the queue is empty, when another reply begins, and after a flush.
    Sent(Sent),
    /// The connection to the voice gateway is lost and is being resumed. Audio continues meanwhile.
    Resuming,
    /// The connection to the voice gateway was resumed.
    Resumed,
    /// The connection has ended. This is the last event.
    Ended(Ended),
}

/// A packet of a person's audio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The speaker. With end-to-end encryption, the owner of the key that decrypted the packet; otherwise, the user that the voice server named.
    pub user: u64,
    /// The line of packets. Each line has its own numbers.
    pub line: u64,
    /// The time of capture, in frames of 20 ms. It advances during pauses, and may jump ahead.
    pub number: u32,
    pub opus: Vec<u8>,
}

/// How much of a reply was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub reply: u64,
    /// The number of the reply's frames that have left this machine. People hear them about 200 ms later.
    pub frames: u32,
}
