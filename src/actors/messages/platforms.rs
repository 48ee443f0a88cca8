//! What the supervisor of the connections to platforms is told.

use std::num::NonZeroU32;

use super::supervision::Upkeep;
use crate::ports::gateway::{Disconnected, Shard};

/// What the supervisor of the connections is told.
pub enum PlatformsMessage {
    /// It is time to ask a platform how many connections there are to be.
    Ask(&'static str),
    /// What it said.
    Counted(&'static str, Result<NonZeroU32, Disconnected>),
    /// A connection has no use any more before a person has done something.
    OverForGood {
        /// To which platform.
        platform: &'static str,
        /// Why.
        reason: String,
        /// It was there for a while: what is in the way now was not before.
        was_up: bool,
    },
    /// What its supervision tells itself.
    Upkeep(Upkeep<ShardName>),
}

/// A connection: its platform, and which of that platform's connections.
pub type ShardName = (&'static str, Shard);

impl From<Upkeep<ShardName>> for PlatformsMessage {
    fn from(upkeep: Upkeep<ShardName>) -> Self {
        Self::Upkeep(upkeep)
    }
}
