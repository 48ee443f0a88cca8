//! A platform's gateway connections. Each connection is a shard.

#[cfg(any(test, feature = "samples"))]
pub mod fake;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;

use super::backend::{Detail, Why};
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;

/// Why a connection ended, or could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disconnected {
    /// Connecting is not possible at present. Try again, after this delay if one is given.
    #[error("not now: {detail}")]
    Later {
        /// The delay that the platform asked for, if it did.
        after: Option<Duration>,
        /// The error.
        detail: Detail,
    },
    /// Connecting is not possible until a person has fixed the problem that the text describes.
    #[error("{0}")]
    Never(Detail),
}

/// The state of a platform's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Whether all connections are up, so that events of every channel arrive.
    pub ready: bool,
    /// The number of connections, or the problem and how to fix it, in plain words.
    pub detail: String,
    /// The sentences of `detail`, for programs that word them themselves.
    pub why: Vec<Why>,
    /// Since when a connection is missing. `None`: all are up, or the time is unknown.
    pub since: Option<Moment>,
    /// The known names of the platform's servers that the bot is a member of, in alphabetical order.
    pub servers: Vec<Arc<str>>,
    /// The link that invites the bot to another server. `None` until it is known.
    pub invitation: Option<String>,
    /// Whether the server must report itself as not ready: the platform stopped permanently, and the settings require it.
    pub blocks_readiness: bool,
}

/// The identity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// The number of the connection, from 0.
    pub number: u32,
    /// The total number of connections.
    pub of: NonZeroU32,
}

/// A command that a connection sends to the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Joins a voice channel of a guild with the bot, or leaves it.
    VoiceState {
        guild: GuildId,
        /// The voice channel. `None`: the bot leaves its current one.
        channel: Option<ChannelId>,
    },
}

/// Why a command was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// The guild's connection has no session at present. Send the command again later.
    #[error("the guild's connection to the platform is down")]
    NotConnected,
    /// Too many commands are queued on the connection. Send the command again later.
    #[error("too many commands wait on the guild's connection")]
    TooMany,
    /// The platform has no such command.
    #[error("refused: {0}")]
    Refused(String),
}

/// A platform that delivers events over its own connections.
#[async_trait]
pub trait Gateway: Send + Sync + 'static {
    /// The platform's name: `discord`.
    fn name(&self) -> &'static str;

    /// Asks the platform how many connections to open.
    async fn shards(&self) -> Result<NonZeroU32, Disconnected>;

    /// Runs one connection: connects, receives events, and reconnects after every loss. Returns only if reconnecting is pointless. If the future is
    /// dropped, the connection is closed in a way that lets the next one resume.
    async fn live(&self, shard: Shard) -> Disconnected;

    /// Queues a command on the connection of its guild. It is sent as soon as the platform's limits allow. Commands that are still queued when the
    /// connection ends are never sent. A caller that needs certainty waits for the platform's response.
    ///
    /// # Errors
    /// Returns an error if the command was not accepted. It is then not sent.
    fn send(&self, command: Command) -> Result<(), Unsent>;

    /// The current state of the connections.
    fn condition(&self) -> Condition;
}

/// The platforms that deliver events over their own connections. Cheap to clone.
#[derive(Clone, Default)]
pub struct Gateways(Arc<RwLock<Vec<Arc<dyn Gateway>>>>);

impl Gateways {
    /// Adds a gateway. Its name must be unique.
    pub fn with(self, gateway: Arc<dyn Gateway>) -> Self {
        Self(Arc::new(RwLock::new(self.all().into_iter().chain([gateway]).collect())))
    }

    /// All gateways, in the order of their addition.
    pub fn all(&self) -> Vec<Arc<dyn Gateway>> {
        self.0.read().clone()
    }

    /// Uses these gateways from now on.
    pub fn replace(&self, other: &Self) {
        let new = other.all();
        *self.0.write() = new;
    }

    /// The gateway of this name; `None` if there is none.
    pub fn named(&self, name: &str) -> Option<Arc<dyn Gateway>> {
        self.all().into_iter().find(|gateway| gateway.name() == name)
    }
}
