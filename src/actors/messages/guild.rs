//! Messages to a guild.

use super::supervision::Upkeep;
use crate::domain::id::{ChannelId, CompanionId};

/// A child of a guild.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Child {
    Companion(CompanionId),
    Channel(ChannelId),
    VoiceCall(ChannelId),
}

pub enum GuildMessage {
    /// A channel has something to do.
    Open(ChannelId),
    /// The members of a channel, or their settings, have changed. `None`: in all channels.
    MembershipChanged(Option<ChannelId>),
    /// A channel was deleted.
    Close(ChannelId),
    /// The suspension of a channel is over, or an operator ends it.
    TryAgain(ChannelId),
    /// Drop expired uses from the budgets.
    Prune,
    /// The guild's own supervision messages.
    Upkeep(Upkeep<Child>),
}

impl From<Upkeep<Child>> for GuildMessage {
    fn from(upkeep: Upkeep<Child>) -> Self {
        Self::Upkeep(upkeep)
    }
}
