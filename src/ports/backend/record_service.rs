//! Messages, decisions and the reasons for them, and usage on record.

use async_trait::async_trait;

use super::decisions::{DecisionQuery, Decisions, Why, WhyQuery};
use super::keeping::{ExportQuery, Lines, Person};
use super::messages::{Found, History, HistoryQuery, PromptText, SearchQuery};
use super::refused::Refused;
use super::room::RoomId;
use super::usage::{ReceptionQuery, Receptions, SafetyFigures, Usage, UsageQuery};
use crate::domain::id::Seq;
use crate::domain::message::Author;
use crate::inbound_events::StoredFile;

/// Reads the record.
#[async_trait]
pub trait RecordService: Send + Sync + 'static {
    /// Messages: without `after` the newest `limit` before `before`, with `after` the first `limit` after it.
    async fn history(&self, room: &RoomId, query: HistoryQuery) -> Result<History, Refused>;

    /// A file that was uploaded with a message, by its number.
    async fn file(&self, room: &RoomId, message: Seq, file: u64) -> Result<StoredFile, Refused>;

    /// The messages that contain these words in any of their forms, or contain this text; best match first.
    async fn search(&self, room: &RoomId, query: SearchQuery) -> Result<Found, Refused>;

    /// Decisions on record: without `after` the newest `limit`, with `after` (which needs `room`) the first `limit` after it.
    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused>;

    /// The explanation of a decision, or of why nothing has triggered yet.
    async fn why(&self, query: WhyQuery) -> Result<Why, Refused>;

    /// The prompt with which a companion's statement was made. Returns [`Refused::NotFound`] if it is not kept: only the newest of the last hour are, in
    /// memory, and none after words of the room were erased.
    async fn prompt(&self, room: &RoomId, statement: Seq) -> Result<PromptText, Refused>;

    /// The author of a message with this id of its platform. `None` if it is not on record.
    async fn author(&self, room: &RoomId, id: &str) -> Result<Option<Author>, Refused>;

    /// The usage of guilds in a time range, and their daily caps. Returns [`Refused::Invalid`] of `from` if the range ends before it begins, and
    /// [`Refused::NotFound`] for an unknown guild.
    async fn usage(&self, query: UsageQuery) -> Result<Usage, Refused>;

    /// How people received the statements of some days, derived from the record. Returns [`Refused::NotFound`] for an unknown guild.
    async fn receptions(&self, query: ReceptionQuery) -> Result<Receptions, Refused>;

    /// The figures that laws require, for all months of the time range; without `from` for twelve months. Returns the same errors as
    /// [`Self::usage`], and an error for more than 120 months.
    async fn safety_figures(&self, query: UsageQuery) -> Result<SafetyFigures, Refused>;

    /// Exports a room, or all rooms as JSON with one event per line. Reads a bounded part at a time, except for a script or a group chat.
    async fn export(&self, query: ExportQuery) -> Result<Lines, Refused>;

    /// Exports the messages of a person in a guild, in their current form: one JSON object per line, room by room. Quotes of other people's
    /// messages are removed. If the person received the notice that companions are AI, or opted out, the first line says so. Deleted messages have
    /// no text any more, and are omitted. Unreadable entries may belong to the person: if there are any, the stream ends with an error after all
    /// other lines.
    async fn export_person(&self, person: Person) -> Result<Lines, Refused>;
}
