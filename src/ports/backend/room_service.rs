//! Rooms, their members and settings, and their events as they happen.

use async_trait::async_trait;

use super::live::{LiveStream, Watched};
use super::refused::Refused;
use super::room::{Companions, Deletion, NewRoom, Room, RoomId, RoomPatch, RoomPlan, Rooms};
use super::state::RoomState;
use crate::domain::id::CompanionId;
use crate::inbound_events::ChannelRef;

/// Lists, creates, changes and deletes rooms, and shows what happens in them.
#[async_trait]
pub trait RoomService: Send + Sync + 'static {
    /// All rooms, ordered by id.
    async fn list(&self) -> Result<Rooms, Refused>;

    /// A room by its id.
    async fn get(&self, room: &RoomId) -> Result<Room, Refused>;

    /// The room with this id or title, without regard to case. The error lists the rooms.
    async fn find(&self, name: &str) -> Result<RoomId, Refused>;

    /// Creates a console room whose id is made from its title. A title that another room has is a [`Refused::Conflict`].
    async fn create(&self, new: NewRoom) -> Result<Room, Refused>;

    /// Creates a console room, or changes its members. The flag is true when the room is new. A room that belongs to another guild, or two
    /// companions that share a name, are a [`Refused::Conflict`].
    async fn put(&self, room: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused>;

    /// Sets overrides at run time, or resets them. All of the patch applies, or nothing.
    async fn patch(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused>;

    /// What deleting a room would delete, or when it is deleted.
    async fn deletion(&self, room: &RoomId) -> Result<Deletion, Refused>;

    /// Silences and hides a room, and deletes it with its history ten seconds later. Repeating it changes nothing.
    async fn delete(&self, room: &RoomId) -> Result<Deletion, Refused>;

    /// Brings a room back that is not deleted yet.
    async fn undelete(&self, room: &RoomId) -> Result<Room, Refused>;

    /// Cancels work in progress in a room (docs/design/gate.md G-25). The history stays.
    async fn clear(&self, room: &RoomId) -> Result<(), Refused>;

    /// The current state of a room.
    async fn state(&self, room: &RoomId) -> Result<RoomState, Refused>;

    /// All companions with their settings.
    async fn companions(&self) -> Result<Companions, Refused>;

    /// Adds a companion to a channel of another platform. A channel that is not a room yet becomes one. True if the companion was not a member before.
    ///
    /// # Errors
    /// There is no such companion, it shares a name with one of the guild, or the channel is full.
    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused>;

    /// Removes a companion from a channel of another platform. True if it was a member.
    ///
    /// # Errors
    /// The change could not be stored.
    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused>;

    /// The events of one room from now on, or of all rooms, those that are created later included. The events of each room are preceded by its state, and
    /// by those after the number that the caller has, without a gap. A room in the cursor that does not exist is reported as deleted.
    async fn live(&self, watched: Watched) -> Result<LiveStream, Refused>;
}
