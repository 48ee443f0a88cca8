//! What the console asks of the core: its rooms, what is said in them, what was decided and why.
//!
//! Whoever calls has bounded every text and checked every name ([`RoomId`] and the limits named at the fields); what the core alone can
//! know (does the room exist, is there such a companion, is a value one of a closed list) is refused by the core. Every list comes oldest
//! first, every method returns what is committed.

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

use crate::domain::id::Seq;
use crate::domain::vote::State;
use decisions::{DecisionQuery, Decisions, Why, WhyQuery};
use keeping::{BackedUp, ExportQuery, Forget, Forgotten, Lines, Person, Quarantine, Readiness};
use live::LiveStream;
use messages::{Edit, History, HistoryQuery, NewMessage, Words};
use room::{Companions, Room, RoomId, RoomPatch, RoomPlan, Rooms};
use state::RoomState;
use usage::{Usage, UsageQuery};

/// The core, as the console sees it.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Every room, in the order of ids.
    async fn rooms(&self) -> Result<Rooms, Refused>;

    /// One room.
    async fn room(&self, room: &RoomId) -> Result<Room, Refused>;

    /// Makes a console room, or changes who is in it. The flag is true when the room is new. A room that belongs to another guild, and
    /// two companions that share a name, are a [`Refused::Conflict`].
    async fn put_room(&self, room: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused>;

    /// Sets overrides at run time, or takes them back. All of it applies, or nothing.
    async fn patch_room(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused>;

    /// Deletes a room and its history.
    async fn delete_room(&self, room: &RoomId) -> Result<(), Refused>;

    /// Accepts a message: it is committed when this returns. The same `id` again gives the first number, whatever the text. Mentions,
    /// `@name` in the text among them, are resolved here.
    async fn say(&self, room: &RoomId, message: NewMessage) -> Result<Seq, Refused>;

    /// Replaces a message's text; returns the number of the message.
    async fn edit(&self, room: &RoomId, seq: Seq, edit: Edit) -> Result<Seq, Refused>;

    /// Takes a message out of buffers and history; returns the number of the message. Deleting it again changes nothing.
    async fn delete_message(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused>;

    /// Drops what is going on in a room (unsubscribe, docs/design/gate.md G-25); the history stays.
    async fn clear(&self, room: &RoomId) -> Result<(), Refused>;

    /// An external companion votes in the round that is open: its State counts when this returns.
    async fn vote(&self, room: &RoomId, state: State) -> Result<(), Refused>;

    /// An external companion that was selected says its words: they are committed when this returns.
    async fn speak(&self, room: &RoomId, words: Words) -> Result<Seq, Refused>;

    /// What was said: without `after` the newest `limit` messages before `before`, with it the first `limit` after it.
    async fn history(&self, room: &RoomId, query: HistoryQuery) -> Result<History, Refused>;

    /// What is going on in a room at this moment.
    async fn state(&self, room: &RoomId) -> Result<RoomState, Refused>;

    /// Decisions on record: without `after` the newest `limit`, with it (which needs `room`) the first `limit` after it.
    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused>;

    /// The story of a decision, or of why nothing has triggered yet.
    async fn why(&self, query: WhyQuery) -> Result<Why, Refused>;

    /// What guilds used in a span of time, and how they stand with their caps. A span that ends before it begins is refused
    /// ([`Refused::Invalid`], field `from`), a guild that nobody has heard of too ([`Refused::NotFound`]).
    async fn usage(&self, query: UsageQuery) -> Result<Usage, Refused>;

    /// Every companion and its settings.
    async fn companions(&self) -> Result<Companions, Refused>;

    /// Guilds in quarantine, channels left alone and messages set aside.
    async fn quarantine(&self) -> Result<Quarantine, Refused>;

    /// Lets a guild out of quarantine, named by its id, or has a channel tried again that is left alone, named by its entry's id.
    async fn release(&self, entry: &str) -> Result<(), Refused>;

    /// Tries a message again that was set aside, named by its entry's id.
    async fn retry(&self, entry: &str) -> Result<(), Refused>;

    /// Gives up a message that was set aside, named by its entry's id.
    async fn drop_entry(&self, entry: &str) -> Result<(), Refused>;

    /// Reads out what is kept, a JSON object a line, a bounded part at a time.
    async fn export(&self, query: ExportQuery) -> Result<Lines, Refused>;

    /// Reads out what a person said in a guild, as it reads now: a JSON object a line, room by room.
    async fn export_person(&self, person: Person) -> Result<Lines, Refused>;

    /// Writes a consistent copy of the store to a path on the server's machine.
    async fn backup(&self, to: &str) -> Result<BackedUp, Refused>;

    /// Writes such a copy into a file that the store names, for a process of the server's machine that reads it through and deletes it.
    async fn copy_for(&self, process: u32) -> Result<BackedUp, Refused>;

    /// Forgets a person in a guild: messages, decisions and summaries that came from them.
    async fn forget(&self, forget: Forget) -> Result<Forgotten, Refused>;

    /// Whether messages can be accepted, and what is in the way.
    async fn readiness(&self) -> Readiness;

    /// The room's events from now on, those after `after` first. Subscribing and reading what was missed leave no hole between them.
    async fn live(&self, room: &RoomId, after: Option<Seq>) -> Result<LiveStream, Refused>;
}

/// The kind of problem (RFC 9457) that says that what is stored cannot be read, for programs that ask.
pub const DAMAGED: &str = "urn:tertulia:damaged";

/// Why the core does not do what it is asked to, named for what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such thing. (404)
    #[error("{0}")]
    NotFound(String),
    /// It stands against something that is there. (409)
    #[error("{0}")]
    Conflict(String),
    /// A value cannot be accepted, now or later. (422)
    #[error("{field}: {detail}")]
    Invalid {
        /// Which field, as a path: `companions.aria.interjection`.
        field: String,
        /// What is wrong, and what is allowed.
        detail: String,
    },
    /// It is more than is accepted at once. (413)
    #[error("{0}")]
    TooLarge(String),
    /// Somebody asks too often. (429)
    #[error("{detail}")]
    TooMany {
        /// What is limited, and how.
        detail: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// It cannot be done at the moment; the outcome of a write may be unknown, so repeat it with the same `id`. (503)
    #[error("{detail}")]
    Unavailable {
        /// What is in the way.
        detail: String,
        /// When to try again, if that is known.
        retry_after: Option<Duration>,
    },
    /// Not in this version. (501)
    #[error("{0}")]
    NotYet(String),
    /// What is stored cannot be read any more; this says what to do. (500)
    #[error("{0}")]
    Damaged(String),
    /// Something of ours is broken, and was logged where it broke. (500)
    #[error("{0}")]
    Broken(String),
}
