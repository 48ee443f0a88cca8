//! Calls of platforms that carry a whole call over one connection, such as Discord's voice channels.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::backend::refused::Refused;
use super::call_room::{Description, Line, Listener};
use super::inbound_events::ChannelRef;
use crate::domain::id::{ChannelId, PersonId};
use crate::domain::message::{Author, Standing};

/// The server's interface for the calls of a platform.
pub trait PlatformCalls: Send + Sync + 'static {
    /// Begins the call of a channel, and runs the connection. A call that runs already keeps its connection. When that one finds that the call is
    /// over, the new connection runs. `left` is a channel whose call ends in exchange; it does not count towards the limit.
    ///
    /// # Errors
    /// Returns an error if no companion is in the channel, or if the maximum number of calls is reached.
    fn begin(
        &self,
        channel_ref: &ChannelRef,
        left: Option<&ChannelId>,
        connection: Arc<dyn CallConnection>,
    ) -> Result<(), Refused>;

    /// Reports that the connection of the channel's call may work now. A pending reconnection happens at once, unless the platform asked for the
    /// wait.
    fn try_again(&self, channel: &ChannelId);

    /// Whether a companion is in the channel.
    fn has_companions(&self, channel: &ChannelId) -> bool;

    /// The speech services of the channel, and the people in its call.
    fn describe(&self, channel: &ChannelId) -> Description;
}

/// A platform's connection to one call.
#[async_trait]
pub trait CallConnection: Send + Sync + 'static {
    /// Connects, reports people and their audio, and plays the companions' speech. Returns when the connection has ended. It is called again unless
    /// the call is [`Over`](Ended::Over). Dropping the future ends the connection.
    async fn live(&self, call: Arc<dyn PlatformCall>) -> Ended;

    /// Whether a person in the call may address companions, by the rules of the platform.
    async fn standing(&self, _person: &PersonId) -> Standing {
        Standing::Free
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The bot no longer belongs in the call.
    Over,
    /// The connection was lost, or could not be made.
    Lost {
        /// How long the platform asks to wait. `None` if it does not ask.
        after: Option<Duration>,
        /// Whether the connection worked before. If so, it is made again at once.
        has_worked: bool,
        /// The cause, for logs.
        detail: String,
    },
}

/// The server's interface for the connection of one call.
#[async_trait]
pub trait PlatformCall: Send + Sync {
    /// Adds a person to the call. The entrance is journaled when this returns. Dropping the line without
    /// [`PersonAction::Leave`](super::call_room::PersonAction::Leave) means that the connection was lost.
    ///
    /// # Errors
    /// Returns an error if the call is full, or if the store does not accept writes now.
    async fn enter(&self, author: Author) -> Result<Arc<dyn Line>, Refused>;

    /// Adds a listener that shows the call and plays the companions' speech. It reports the playback position to the line. Dropping the line removes
    /// the listener.
    fn attach(&self, listener: Arc<dyn Listener>) -> Arc<dyn Line>;
}
