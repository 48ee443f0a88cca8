//! Messages to the supervisor of the guilds.

use ractor::{ActorId, RpcReplyPort};

use super::supervision::Upkeep;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;

pub enum GuildsMessage {
    /// A channel of a guild has something to do. `None`: start only the guild, which wakes its channels.
    Open(GuildId, Option<ChannelId>),
    /// Answer with the quarantined guilds and the suspended channels.
    OutOfService(RpcReplyPort<OutOfService>),
    /// An operator releases a guild. Answers whether it was quarantined.
    Release(GuildId, RpcReplyPort<bool>),
    /// An operator ends the suspension of a channel. Answers whether it was suspended.
    TryAgain(ChannelId, RpcReplyPort<bool>),
    /// A guild, with this actor id, has suspended one of its channels.
    Suspended(ActorId, Suspended),
    /// A guild has ended the suspension of one of its channels.
    Resumed(ChannelId),
    /// The end of a quarantine may be due.
    QuarantineOver,
    /// The supervisor's own supervision messages.
    Upkeep(Upkeep<GuildId>),
}

impl From<Upkeep<GuildId>> for GuildsMessage {
    fn from(upkeep: Upkeep<GuildId>) -> Self {
        Self::Upkeep(upkeep)
    }
}

/// A guild in quarantine, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    pub guild: GuildId,
    /// How its last actor ended, at most 300 characters.
    pub reason: String,
    pub since: Moment,
    /// When it ends, unless an operator releases it earlier.
    pub until: Moment,
    /// How many quarantines in a row this is, from 1.
    pub times: u32,
}

/// Why a channel is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The channel died each time it continued from its journal.
    Died,
    /// Its journal cannot be read.
    Unreadable,
}

/// A channel that its guild does not start for a while, because it cannot continue from its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspended {
    pub guild: GuildId,
    pub channel: ChannelId,
    pub cause: Cause,
    /// How it last ended, or which part of its journal cannot be read, at most 300 characters.
    pub reason: String,
    pub since: Moment,
    /// When it ends, unless an operator releases it earlier.
    pub until: Moment,
}

/// All quarantined guilds and suspended channels, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutOfService {
    pub guilds: Vec<Quarantined>,
    pub channels: Vec<Suspended>,
}
