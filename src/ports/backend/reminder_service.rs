//! Reminders of people in rooms, and people's time zones (docs/design/reminders.md).

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;

use super::refused::Refused;
use super::room::RoomId;
use super::stamp::Stamp;
use crate::domain::id::{CompanionId, GuildId, PersonId};
use crate::domain::reminders::{NewReminder, Reading};

/// Sets, lists and cancels reminders.
#[async_trait]
pub trait ReminderService: Send + Sync + 'static {
    /// The open reminders of a room, or of one person there, in the order in which they were set.
    async fn reminders(&self, room: &RoomId, person: Option<&PersonId>) -> Result<Vec<ReminderView>, Refused>;

    /// Sets a reminder.
    async fn remind(&self, room: &RoomId, new: NewReminder) -> Result<ReminderSet, Refused>;

    /// Cancels a reminder, if `by` is its person, or is `None`.
    async fn cancel_reminder(&self, room: &RoomId, number: u64, by: Option<&PersonId>) -> Result<(), Refused>;

    /// Erases the reminders of a person in a guild, or in one of its rooms. Returns how many there were.
    async fn erase_reminders(&self, guild: &GuildId, room: Option<&RoomId>, person: &PersonId) -> Result<u64, Refused>;

    /// The time zone that a person chose in a guild, or the guild's.
    async fn time_zone(&self, guild: &GuildId, person: &PersonId) -> Result<Arc<str>, Refused>;

    /// Sets the time zone of a person in a guild, such as `Europe/Berlin`. None: the guild's.
    async fn set_time_zone(&self, guild: &GuildId, person: &PersonId, zone: Option<&str>) -> Result<(), Refused>;
}

/// An open reminder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReminderView {
    /// Its number in the room.
    pub id: u64,
    /// The name of the person who set it.
    pub from: Arc<str>,
    pub text: Arc<str>,
    pub due: Stamp,
    /// When it is due in the time zone of the person, such as `2027-03-28 14:30 (Europe/Berlin)`.
    pub local: Arc<str>,
    /// The companion that was asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionId>,
}

/// A reminder that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReminderSet {
    #[serde(flatten)]
    pub reminder: ReminderView,
    /// How the local time was understood: `plain`; `skipped`: clocks skip it on that day, so the reminder is later by as much as they are put forward;
    /// `twice`: clocks show it twice on that day, and the first time counts.
    pub reading: Reading,
}
