//! Who is let into the channels of platforms that are not ours, one companion at a time.

use async_trait::async_trait;

use super::backend::Refused;
use super::backend::room::Room;
use super::inbound_events::ChannelRef;
use crate::domain::id::CompanionId;

/// Lets companions in and out of channels.
#[async_trait]
pub trait MembershipPort: Send + Sync + 'static {
    /// Lets a companion in; the channel becomes a room with that, if it was none. True if it was not there before.
    ///
    /// # Errors
    /// There is no such companion, it shares a name with one of the guild, or the channel is full.
    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused>;

    /// Takes a companion out. True if it was there.
    ///
    /// # Errors
    /// It could not be put on record.
    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused>;
}
