//! What the switchboard is told.

use crate::domain::id::{ChannelId, GuildId};

/// What the switchboard is told.
pub enum SwitchboardMessage {
    /// An event was accepted for a channel that is not there: it reads it when it is.
    Wake(GuildId, ChannelId),
}
