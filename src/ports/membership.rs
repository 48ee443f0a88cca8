//! Changes the members of channels on other platforms, one companion at a time.

use async_trait::async_trait;

use super::backend::Refused;
use super::backend::room::Room;
use super::inbound_events::ChannelRef;
use crate::domain::id::CompanionId;

/// Adds companions to channels and removes them.
#[async_trait]
pub trait MembershipPort: Send + Sync + 'static {
    /// Adds a companion. A channel that is not a room yet becomes one. True if the companion was not a member before.
    ///
    /// # Errors
    /// There is no such companion, it shares a name with one of the guild, or the channel is full.
    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused>;

    /// Removes a companion. True if it was a member.
    ///
    /// # Errors
    /// The change could not be stored.
    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused>;
}
