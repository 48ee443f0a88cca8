//! A platform's connections, as the core keeps them alive: each shard is one of them.

#[cfg(test)]
pub(crate) mod fake;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::id::{ChannelId, GuildId};

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disconnected {
    /// Not now; try again, after this time if one is named.
    #[error("not now: {detail}")]
    Later {
        /// What the platform asked for, if it did.
        after: Option<Duration>,
        /// What happened.
        detail: String,
    },
    /// Not before a person has done something.
    #[error("{0}")]
    Never(String),
}

/// How a platform's connections stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What is said can be heard everywhere.
    pub ready: bool,
    /// In plain words: how many connections there are, or what is in the way and what to do about it.
    pub detail: String,
    /// The server is not to count as ready because of it: it stopped for good, and the settings say that nothing works without it.
    pub holds_up_server: bool,
}

/// One connection of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub of: NonZeroU32,
}

/// What a connection can be told to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The bot is in this voice channel of a guild from now on.
    VoiceState {
        /// The guild.
        guild: GuildId,
        /// The voice channel; none: it leaves the one that it is in.
        channel: Option<ChannelId>,
        /// Nobody hears it.
        is_muted: bool,
        /// It hears nobody.
        is_deafened: bool,
    },
}

/// Why a command is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// The connection of its guild has no session now; send it again when it has.
    #[error("the guild's connection to the platform is down")]
    NotConnected,
    /// Too many commands wait on the connection already; send it again later.
    #[error("too many commands wait on the guild's connection")]
    TooMany,
    /// The platform has no such thing.
    #[error("refused: {0}")]
    Refused(String),
}

/// A platform that is heard over connections of its own.
#[async_trait]
pub trait Gateway: Send + Sync + 'static {
    /// What it is called: `discord`.
    fn name(&self) -> &'static str;

    /// How many connections there are to be; asks the platform.
    async fn shards(&self) -> Result<NonZeroU32, Disconnected>;

    /// Lives as one of the connections: connects, hears, comes back after every loss by itself. Returns only when that has no use any
    /// more. Dropping the future ends the connection in a way that lets the next one go on where it was.
    async fn live(&self, shard: Shard) -> Disconnected;

    /// Accepts a command for the connection of its guild, which sends it as soon as the platform's limits allow. One that waits when the
    /// connection ends is never sent: whoever has to know waits for what the platform answers.
    ///
    /// # Errors
    /// It is certainly not sent.
    fn send(&self, command: Command) -> Result<(), Unsent>;

    /// How the connections stand.
    fn condition(&self) -> Condition;
}

/// The platforms that are heard over connections of their own. Cheap to clone.
#[derive(Clone, Default)]
pub struct Gateways(Arc<[Arc<dyn Gateway>]>);

impl Gateways {
    /// These, in this order; each has a name of its own.
    pub fn new(gateways: impl IntoIterator<Item = Arc<dyn Gateway>>) -> Self {
        Self(gateways.into_iter().collect())
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Gateway>> {
        self.0.iter()
    }

    /// The one of this name.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn Gateway>> {
        self.iter().find(|gateway| gateway.name() == name)
    }
}

impl fmt::Debug for Gateways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|gateway| gateway.name())).finish()
    }
}
