//! The core as the console and the HTTP API call it: rooms, their messages, decisions and the reasons for them.
//!
//! The caller has bounded every text and checked every name ([`RoomId`] and the limits given at the fields). The core rejects what it alone
//! can check: whether a room exists, whether there is such a companion, whether a value is one of a closed list. Every list is ordered from
//! oldest to newest. Every method returns committed data.

pub mod decisions;
pub mod keeping;
pub mod live;
pub mod messages;
pub mod room;
pub mod stamp;
pub mod state;
pub mod usage;

#[cfg(test)]
pub(crate) mod fake;

use std::time::Duration;

use async_trait::async_trait;

use super::call_room::CallRooms;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::vote::State;
use decisions::{DecisionQuery, Decisions, Why, WhyQuery};
use keeping::{BackedUp, ExportQuery, Forget, Forgotten, Lines, Person, Quarantine, Readiness};
use live::{Cursor, LiveStream};
use messages::{Edit, History, HistoryQuery, NewEvent, NewMessage, Words};
use room::{Companions, Room, RoomId, RoomPatch, RoomPlan, Rooms};
use state::RoomState;
use usage::{Usage, UsageQuery};

/// The core, as the console sees it.
#[async_trait]
pub trait Backend: CallRooms {
    /// All rooms, ordered by id.
    async fn rooms(&self) -> Result<Rooms, Refused>;

    /// A room by its id.
    async fn room(&self, room: &RoomId) -> Result<Room, Refused>;

    /// Creates a console room, or changes its members. The flag is true when the room is new. A room that belongs to another guild, or two
    /// companions that share a name, are a [`Refused::Conflict`].
    async fn put_room(&self, room: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused>;

    /// Sets overrides at run time, or resets them. All of the patch applies, or nothing.
    async fn patch_room(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused>;

    /// Deletes a room and its history.
    async fn delete_room(&self, room: &RoomId) -> Result<(), Refused>;

    /// Accepts a message. It is committed when this returns. The same `id` again returns the first number, whatever the text. Mentions are
    /// resolved here, including `@name` in the text.
    async fn say(&self, room: &RoomId, message: NewMessage) -> Result<Seq, Refused>;

    /// Accepts an event that a companion must acknowledge. It is committed when this returns. The same `id` again returns the first number,
    /// whatever the rest.
    async fn event(&self, room: &RoomId, event: NewEvent) -> Result<Seq, Refused>;

    /// The companion in the room's guild that has this name, if there is one. People by that name are accepted, and hard to tell from it.
    async fn namesake(&self, room: &RoomId, name: &str) -> Result<Option<CompanionId>, Refused>;

    /// Replaces a message's text; returns the number of the message.
    async fn edit(&self, room: &RoomId, seq: Seq, edit: Edit) -> Result<Seq, Refused>;

    /// Deletes a message from buffers and history; returns the number of the message. Deleting it again changes nothing.
    async fn delete_message(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused>;

    /// Cancels work in progress in a room (docs/design/gate.md G-25). The history stays.
    async fn clear(&self, room: &RoomId) -> Result<(), Refused>;

    /// Stops the reply that a companion is making (docs/design/speaking.md S-16). If there is none, or it is being posted, that is a
    /// [`Refused::Conflict`].
    async fn stop_reply(&self, room: &RoomId, companion: &CompanionId) -> Result<(), Refused>;

    /// Deletes the newest message of a room, a companion's statement, and has the companion answer again (docs/design/speaking.md S-17). Where that
    /// is impossible, it is a [`Refused::Conflict`].
    async fn try_again(&self, room: &RoomId, statement: Seq) -> Result<(), Refused>;

    /// Submits the vote of an external companion in the open round. Its State counts when this returns.
    async fn vote(&self, room: &RoomId, state: State) -> Result<(), Refused>;

    /// Submits the statement of an external companion that was selected. It is committed when this returns.
    async fn speak(&self, room: &RoomId, words: Words) -> Result<Seq, Refused>;

    /// Messages: without `after` the newest `limit` before `before`, with `after` the first `limit` after it.
    async fn history(&self, room: &RoomId, query: HistoryQuery) -> Result<History, Refused>;

    /// The current state of a room.
    async fn state(&self, room: &RoomId) -> Result<RoomState, Refused>;

    /// Decisions on record: without `after` the newest `limit`, with it (which needs `room`) the first `limit` after it.
    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused>;

    /// The explanation of a decision, or of why nothing has triggered yet.
    async fn why(&self, query: WhyQuery) -> Result<Why, Refused>;

    /// What guilds used in a span of time, and their daily caps. A span that ends before it begins is rejected ([`Refused::Invalid`], field
    /// `from`), and so is an unknown guild ([`Refused::NotFound`]).
    async fn usage(&self, query: UsageQuery) -> Result<Usage, Refused>;

    /// All companions with their settings.
    async fn companions(&self) -> Result<Companions, Refused>;

    /// Guilds in quarantine, suspended channels and dead letters.
    async fn quarantine(&self) -> Result<Quarantine, Refused>;

    /// Releases a guild from quarantine, named by its id, or retries a suspended channel, named by its entry's id.
    async fn release(&self, entry: &str) -> Result<(), Refused>;

    /// Retries a dead letter, named by its entry's id.
    async fn retry(&self, entry: &str) -> Result<(), Refused>;

    /// Drops a dead letter, named by its entry's id.
    async fn drop_entry(&self, entry: &str) -> Result<(), Refused>;

    /// Exports stored events, one JSON object per line, a bounded part at a time.
    async fn export(&self, query: ExportQuery) -> Result<Lines, Refused>;

    /// Exports what a person said in a guild, in its current form: one JSON object per line, room by room.
    async fn export_person(&self, person: Person) -> Result<Lines, Refused>;

    /// Writes a consistent copy of the store to a path on the server's machine.
    async fn backup(&self, to: &str) -> Result<BackedUp, Refused>;

    /// Writes such a copy into a file that the store names, for a process on the server's machine that reads the file and deletes it.
    async fn copy_for(&self, process: u32) -> Result<BackedUp, Refused>;

    /// Forgets a person in a guild: deletes their messages, and the decisions and summaries that came from them.
    async fn forget(&self, forget: Forget) -> Result<Forgotten, Refused>;

    /// Whether messages can be accepted, and what prevents it.
    async fn readiness(&self) -> Readiness;

    /// The room's events from now on, preceded by those after `after`. There is no gap between the stored events and the live ones.
    async fn live(&self, room: &RoomId, after: Option<Seq>) -> Result<LiveStream, Refused>;

    /// The events of all rooms from now on, those of rooms that are created later included. The events of each room are preceded by its state,
    /// and for a room in the cursor by those after its number. A room in the cursor that does not exist is reported as deleted.
    async fn live_rooms(&self, after: Cursor) -> Result<LiveStream, Refused>;
}

/// The problem type (RFC 9457) for damaged stored data, for programs that check it.
pub const DAMAGED: &str = "urn:tertulia:damaged";

/// Why the core rejects a request. Each variant is named for what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The named thing does not exist. (404)
    #[error("{0}")]
    NotFound(String),
    /// It conflicts with existing data. (409)
    #[error("{0}")]
    Conflict(String),
    /// A value cannot be accepted, now or later. (422)
    #[error("{field}: {detail}")]
    Invalid {
        /// The field, as a path: `companions.aria.interjection`.
        field: String,
        /// What is wrong, and what is allowed.
        detail: String,
    },
    /// It is larger than what is accepted at once. (413)
    #[error("{0}")]
    TooLarge(String),
    /// The caller sends requests too often. (429)
    #[error("{detail}")]
    TooMany {
        /// What is limited, and to how much.
        detail: String,
        /// The delay before the next attempt.
        retry_after: Duration,
    },
    /// It cannot be done now. The outcome of a write may be unknown, so repeat it with the same `id`. (503)
    #[error("{detail}")]
    Unavailable {
        /// What prevents it.
        detail: String,
        /// The delay before the next attempt, if it is known.
        retry_after: Option<Duration>,
    },
    /// This version does not support it. (501)
    #[error("{0}")]
    NotYet(String),
    /// Stored data can no longer be read. The message says what to do. (500)
    #[error("{0}")]
    Damaged(String),
    /// Something on our side is broken. It was logged where it broke. (500)
    #[error("{0}")]
    Broken(String),
}
