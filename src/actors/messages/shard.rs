//! Messages to a connection to a platform.

use crate::ports::gateway::Disconnected;

/// Messages that a connection sends to itself.
pub enum ShardMessage {
    /// The pause is over: connect again.
    Connect,
    /// The connection has ended. None: its task panicked.
    Ended(Option<Disconnected>),
}
