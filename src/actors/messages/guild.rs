//! What a guild is told.

use super::supervision::Upkeep;
use crate::domain::id::{ChannelId, CompanionId};

/// A child of a guild.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Child {
    /// A companion.
    Companion(CompanionId),
    /// A channel.
    Channel(ChannelId),
}

/// What a guild is told.
pub enum GuildMessage {
    /// A channel has something to do.
    Open(ChannelId),
    /// Who lives in a channel changed, or how they are set; none: in all of them.
    ResidenceChanged(Option<ChannelId>),
    /// A channel is no more.
    Close(ChannelId),
    /// A channel was left alone for long enough, or an operator wants it back.
    TryAgain(ChannelId),
    /// Budgets are to be cleared of what is over.
    Prune,
    /// What its supervision tells itself.
    Upkeep(Upkeep<Child>),
}

impl From<Upkeep<Child>> for GuildMessage {
    fn from(upkeep: Upkeep<Child>) -> Self {
        Self::Upkeep(upkeep)
    }
}
