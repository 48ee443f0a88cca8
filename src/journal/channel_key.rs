//! The key of a journal: a channel of a guild.

use std::fmt;

use crate::domain::id::{ChannelId, GuildId, Ward};

/// A channel of a guild. Each has one journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelKey {
    pub guild: GuildId,
    pub channel: ChannelId,
}

impl ChannelKey {
    /// The channel of this name in this guild.
    pub fn new(guild: &GuildId, channel: &ChannelId) -> Self {
        Self { guild: guild.clone(), channel: channel.clone() }
    }

    /// The ward of its keys.
    pub fn ward(&self) -> Ward {
        Ward::of(&self.guild)
    }
}

impl fmt::Display for ChannelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel {} of guild {}", self.channel, self.guild)
    }
}
