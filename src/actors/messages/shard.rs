//! What a connection to a platform is told.

use crate::ports::gateway::Disconnected;

/// What a connection is told, by itself.
pub enum ShardMessage {
    /// The pause is over.
    Live,
    /// The life is over; none: it panicked.
    Over(Option<Disconnected>),
}
