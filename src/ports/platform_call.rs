//! Calls of platforms that carry a whole call over one connection, such as Discord's voice channels.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::backend::refused::Refused;
use super::call_room::{Description, Line, Listener};
use super::inbound_events::ChannelRef;
use crate::domain::id::ChannelId;
use crate::domain::message::Author;

/// The calls, as a platform sees them.
pub trait PlatformCalls: Send + Sync + 'static {
    /// Begins the call of a channel, which runs the connection from now on. A call that runs has a connection already. It keeps that until that one
    /// finds that the call is over, and then runs the newer one. `left` is the channel whose call ends for it, and does not count.
    ///
    /// # Errors
    /// No companion is in the channel, or there are as many calls as there may be.
    fn begin(
        &self,
        channel_ref: &ChannelRef,
        left: Option<&ChannelId>,
        connection: Arc<dyn CallConnection>,
    ) -> Result<(), Refused>;

    /// The connection of the channel's call may work now. If it waits to be made again, it is made at once, unless the platform asked for the wait.
    fn try_again(&self, channel: &ChannelId);

    /// Whether a companion is in the channel.
    fn has_companions(&self, channel: &ChannelId) -> bool;

    /// The services that hear and speak in the channel, and who is in its call.
    fn describe(&self, channel: &ChannelId) -> Description;
}

/// A platform's connection to one call.
#[async_trait]
pub trait CallConnection: Send + Sync + 'static {
    /// Connects, tells who is there and what they say, and plays what companions say. Returns when the connection has ended. It runs again unless
    /// the call is [`Over`](Ended::Over). Dropping the future ends the connection.
    async fn live(&self, call: Arc<dyn PlatformCall>) -> Ended;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The bot does not belong in the call any more.
    Over,
    /// It was lost, or could not be made.
    Lost {
        /// How long the platform asks to wait, if it does.
        after: Option<Duration>,
        /// Whether it worked before. Then it is made again at once.
        has_worked: bool,
        /// What happened, for logs.
        detail: String,
    },
}

/// A call, as its connection sees it.
#[async_trait]
pub trait PlatformCall: Send + Sync {
    /// Somebody is in the call. The person is on record as being there when this returns. Dropping the line without
    /// [`PersonAction::Leave`](super::call_room::PersonAction::Leave) means that the connection was lost.
    ///
    /// # Errors
    /// The call is full, or the store takes nothing now.
    async fn enter(&self, author: Author) -> Result<Arc<dyn Line>, Refused>;

    /// The listener is shown the call, and plays what companions say. It tells the line how far. Dropping the line ends that.
    fn attach(&self, listener: Arc<dyn Listener>) -> Arc<dyn Line>;
}
