//! A record of what happened in calls, for assertions.

use tokio::time::Instant;

use super::super::Id;

/// Everything that happened, in order.
#[derive(Default)]
pub struct Journal {
    pub identifies: Vec<Identified>,
    pub resumes: Vec<Resumed>,
    /// Ended connections of clients that had identified or resumed, and of those that were refused before.
    pub ended: Vec<(Option<Id>, Ended)>,
    /// Commits that were broadcast: the call's channel, who made them, and the epoch that they began.
    pub commits: Vec<(Id, Id, u64)>,
    /// Commits or welcomes that clients reported as invalid (op 31), with the transition.
    pub reported: Vec<(Id, u64)>,
}

/// An IDENTIFY.
#[derive(Clone, Debug)]
pub struct Identified {
    pub user: Id,
}

/// A RESUME and its result.
#[derive(Clone, Debug)]
pub struct Resumed {
    pub at: Instant,
    pub user: Option<Id>,
    /// How many messages were replayed, if it was accepted.
    pub replayed: Option<usize>,
}

/// How a connection of the voice gateway ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// We closed it, with this code and for this reason.
    Here(u16, &'static str),
    /// We cut it without a close frame.
    Cut,
    /// The client closed it, with this code if it gave one.
    Client(Option<u16>),
    /// It broke off.
    Broken,
}

/// Datagrams and payloads of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub heartbeats: usize,
    /// Authentic RTP packets from the client.
    pub received: usize,
    /// Of these, frames that are end-to-end encrypted.
    pub end_to_end: usize,
    /// Of these, frames that are neither end-to-end encrypted nor silence.
    pub plain: usize,
    /// Packets with a wrong tag or a wrong structure.
    pub not_authentic: usize,
    /// Of these, packets before the first speaking payload.
    pub before_speaking: usize,
    /// Packets sent to the client.
    pub sent: usize,
    /// Packets that an injected fault dropped on the way to the client or from it.
    pub lost: usize,
}
