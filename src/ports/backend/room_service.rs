//! Rooms, their members and settings, and their events as they happen.

use std::sync::Arc;

use async_trait::async_trait;

use super::live::{LiveStream, Watched};
use super::refused::Refused;
use super::room::{Companions, Deletion, NewRoom, Room, RoomId, RoomPatch, RoomPlan, Rooms};
use super::state::RoomState;
use crate::domain::id::{CompanionId, GuildId, PersonId};
use crate::inbound_events::ChannelRef;

/// Lists, creates, changes and deletes rooms, and streams their events.
#[async_trait]
pub trait RoomService: Send + Sync + 'static {
    /// All rooms, ordered by id.
    async fn list(&self) -> Result<Rooms, Refused>;

    /// The rooms of a guild, ordered by id.
    async fn of_guild(&self, guild: &GuildId) -> Result<Rooms, Refused>;

    /// A room by its id.
    async fn get(&self, room: &RoomId) -> Result<Room, Refused>;

    /// The room with this id or title, ignoring case. The error lists the rooms.
    async fn find(&self, name: &str) -> Result<RoomId, Refused>;

    /// Creates a console room with an id that is derived from its title. Returns [`Refused::Conflict`] if another room has the title.
    async fn create(&self, new: NewRoom) -> Result<Room, Refused>;

    /// Creates a console room, or changes its members. The flag is true if the room is new. Returns [`Refused::Conflict`] if the room belongs to
    /// another guild, or if two companions share a name.
    async fn put(&self, room: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused>;

    /// Sets or resets overrides at run time. A patch is applied as a whole, or not at all.
    async fn patch(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused>;

    /// The amount of data that deleting a room would delete, and when a requested deletion takes effect.
    async fn deletion(&self, room: &RoomId) -> Result<Deletion, Refused>;

    /// Stops the companions in a room and hides it, and deletes it with its history a minute later. Repeating it changes nothing.
    async fn delete(&self, room: &RoomId) -> Result<Deletion, Refused>;

    /// Restores a room before its deletion takes effect.
    async fn undelete(&self, room: &RoomId) -> Result<Room, Refused>;

    /// Cancels work in progress in a room (docs/design/gate.md G-25). The history stays.
    async fn clear(&self, room: &RoomId) -> Result<(), Refused>;

    /// Begins a new conversation: like `clear`, but the summary and the notes stay in prompts.
    async fn begin_anew(&self, room: &RoomId) -> Result<(), Refused>;

    /// What a person says of themselves in a room. `None`: nothing.
    async fn description(&self, room: &RoomId, person: &PersonId) -> Result<Option<Arc<str>>, Refused>;

    /// Replaces what a person says of themselves in a room, or removes it. Returns [`Refused::Conflict`] if too many people describe themselves there.
    async fn describe(&self, room: &RoomId, person: &PersonId, text: Option<Arc<str>>) -> Result<(), Refused>;

    /// The current state of a room.
    async fn state(&self, room: &RoomId) -> Result<RoomState, Refused>;

    /// All companions with their settings.
    async fn companions(&self) -> Result<Companions, Refused>;

    /// Adds a companion to a channel of another platform. A channel that is not a room yet becomes one. The flag is true if the companion was not a
    /// member before.
    ///
    /// # Errors
    /// Returns an error if the companion does not exist, if it shares a name with another one of the guild, or if the channel is full.
    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused>;

    /// Removes a companion from a channel of another platform. Returns whether it was a member.
    ///
    /// # Errors
    /// Returns an error if the change could not be stored.
    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused>;

    /// The events of one room from now on, or of all rooms, including rooms that are created later. For each room, the stream begins with its state
    /// and the events after the caller's number, without a gap. A room in the cursor that does not exist is reported as deleted.
    async fn live(&self, watched: Watched) -> Result<LiveStream, Refused>;
}
