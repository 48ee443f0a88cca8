//! Messages to the supervisor of the connections to platforms.

use std::num::NonZeroU32;

use super::supervision::Upkeep;
use crate::ports::gateway::{Disconnected, Shard};

pub enum PlatformsMessage {
    /// Ask this platform how many connections it wants.
    Ask(&'static str),
    /// The platforms were replaced: end the connections, and ask the new ones.
    Replaced,
    /// The platform's answer to `Ask`.
    Counted(&'static str, Result<NonZeroU32, Disconnected>),
    /// A connection ended for a reason that a person has to fix first.
    Blocked {
        platform: &'static str,
        reason: String,
        /// Whether the connection was up for a while, so that the obstacle is new.
        was_up: bool,
    },
    /// The supervisor's own supervision messages.
    Upkeep(Upkeep<ShardName>),
}

/// A connection: its platform, and its number at that platform.
pub type ShardName = (&'static str, Shard);

impl From<Upkeep<ShardName>> for PlatformsMessage {
    fn from(upkeep: Upkeep<ShardName>) -> Self {
        Self::Upkeep(upkeep)
    }
}
