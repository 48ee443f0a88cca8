//! What the supervisor of the guilds is told.

use ractor::{ActorId, RpcReplyPort};

use super::supervision::Upkeep;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;

/// What the guilds' supervisor is told.
pub enum GuildsMessage {
    /// A channel of a guild has something to do; none: the guild as a whole.
    Open(GuildId, Option<ChannelId>),
    /// Who is kept away?
    OutOfService(RpcReplyPort<OutOfService>),
    /// An operator lets a guild go. Answers whether it was kept away.
    Release(GuildId, RpcReplyPort<bool>),
    /// An operator wants a channel tried again. Answers whether it was left alone.
    TryAgain(ChannelId, RpcReplyPort<bool>),
    /// A guild, of which this is the actor, leaves one of its channels alone.
    Suspended(ActorId, Suspended),
    /// A guild leaves one of its channels alone no more.
    Resumed(ChannelId),
    /// The end of a quarantine may be due.
    QuarantineOver,
    /// What its supervision tells itself.
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
    /// Which.
    pub guild: GuildId,
    /// How its last actor ended, at most 300 characters.
    pub reason: String,
    /// Since when.
    pub since: Moment,
    /// Until when, unless it is released.
    pub until: Moment,
    /// How many times in a row by now, from 1.
    pub times: u32,
}

/// Why a channel is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It died whenever it went on from its record.
    Died,
    /// What is on record of it cannot be read.
    Unreadable,
}

/// A channel that its guild leaves alone for a while, because it cannot go on from its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspended {
    /// Its guild.
    pub guild: GuildId,
    /// Which.
    pub channel: ChannelId,
    /// Why.
    pub cause: Cause,
    /// How it ended last, or what cannot be read of it, at most 300 characters.
    pub reason: String,
    /// Since when.
    pub since: Moment,
    /// Until when, unless it is released.
    pub until: Moment,
}

/// Everybody who is kept away, in the order of ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutOfService {
    /// Guilds in quarantine.
    pub guilds: Vec<Quarantined>,
    /// Channels that their guilds leave alone.
    pub channels: Vec<Suspended>,
}
