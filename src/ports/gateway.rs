//! A platform's gateway connections. Each shard is one of them.

#[cfg(any(test, feature = "samples"))]
pub mod fake;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;

/// Why a connection ended, or could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disconnected {
    /// Not now; try again, after this delay if one is given.
    #[error("not now: {detail}")]
    Later {
        /// The delay that the platform asked for, if it did.
        after: Option<Duration>,
        /// What happened, for logs.
        detail: String,
    },
    /// Not until a person has fixed something; the text says what.
    #[error("{0}")]
    Never(String),
}

/// The state of a platform's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// All connections are up, so that events of every channel arrive.
    pub ready: bool,
    /// In plain words: how many connections there are, or what prevents them and what to do about it.
    pub detail: String,
    /// Since when a connection is missing; none: all are up, or it is not known.
    pub since: Option<Moment>,
    /// The names of the platform's servers where the bot is, as far as they are known, in alphabetical order.
    pub servers: Vec<Arc<str>>,
    /// The link that invites the bot to another server, once it is known.
    pub invitation: Option<String>,
    /// The server must not report itself as ready: the platform stopped for good, and the settings say that it is required.
    pub blocks_readiness: bool,
}

/// One of the platform's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// Its number, from 0.
    pub number: u32,
    /// The number of all connections.
    pub of: NonZeroU32,
}

/// A command that a connection sends to the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Puts the bot into a voice channel of a guild, or takes it out.
    VoiceState {
        guild: GuildId,
        /// The voice channel; none: the bot leaves its current one.
        channel: Option<ChannelId>,
    },
}

/// Why a command was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// The connection of its guild has no session now; send it again when it has.
    #[error("the guild's connection to the platform is down")]
    NotConnected,
    /// Too many commands wait on the connection already; send it again later.
    #[error("too many commands wait on the guild's connection")]
    TooMany,
    /// The platform has no such command.
    #[error("refused: {0}")]
    Refused(String),
}

/// A platform that delivers events over its own connections.
#[async_trait]
pub trait Gateway: Send + Sync + 'static {
    /// Its name: `discord`.
    fn name(&self) -> &'static str;

    /// Asks the platform how many connections to open.
    async fn shards(&self) -> Result<NonZeroU32, Disconnected>;

    /// Runs one of the connections: connects, receives events, and reconnects after every loss. Returns only when reconnecting is of no use.
    /// Dropping the future closes the connection in a way that lets the next one resume.
    async fn live(&self, shard: Shard) -> Disconnected;

    /// Accepts a command for the connection of its guild, which sends it as soon as the platform's limits allow. A command still queued when
    /// the connection ends is never sent. A caller that must know waits for the platform's response.
    ///
    /// # Errors
    /// The command was not accepted and is not sent.
    fn send(&self, command: Command) -> Result<(), Unsent>;

    /// The current state of the connections.
    fn condition(&self) -> Condition;
}

/// The platforms that deliver events over their own connections. Cheap to clone.
#[derive(Clone, Default)]
pub struct Gateways(Arc<[Arc<dyn Gateway>]>);

impl Gateways {
    /// The same set with one more gateway. Its name must be unique.
    pub fn with(self, gateway: Arc<dyn Gateway>) -> Self {
        Self(self.0.iter().cloned().chain([gateway]).collect())
    }

    /// All gateways, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Gateway>> {
        self.0.iter()
    }

    /// The gateway of this name; `None` if there is none.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn Gateway>> {
        self.iter().find(|gateway| gateway.name() == name)
    }
}
