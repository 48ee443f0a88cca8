//! Messages to the switchboard.

use crate::domain::id::{ChannelId, GuildId};

pub enum SwitchboardMessage {
    /// An event was accepted for a channel that is not running. The channel reads it when it starts.
    Wake(GuildId, ChannelId),
}
