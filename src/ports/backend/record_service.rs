//! What is on record: messages, decisions and the reasons for them, and usage.

use async_trait::async_trait;

use super::decisions::{DecisionQuery, Decisions, Why, WhyQuery};
use super::keeping::{ExportQuery, Lines, Person};
use super::messages::{Found, History, HistoryQuery, SearchQuery};
use super::refused::Refused;
use super::room::RoomId;
use super::usage::{SafetyFigures, Usage, UsageQuery};

/// Reads the record.
#[async_trait]
pub trait RecordService: Send + Sync + 'static {
    /// Messages: without `after` the newest `limit` before `before`, with `after` the first `limit` after it.
    async fn history(&self, room: &RoomId, query: HistoryQuery) -> Result<History, Refused>;

    /// The messages that have these words, in any of their forms, or this text as a part; the best first.
    async fn search(&self, room: &RoomId, query: SearchQuery) -> Result<Found, Refused>;

    /// Decisions on record: without `after` the newest `limit`, with it (which needs `room`) the first `limit` after it.
    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused>;

    /// The explanation of a decision, or of why nothing has triggered yet.
    async fn why(&self, query: WhyQuery) -> Result<Why, Refused>;

    /// What guilds used in a span of time, and their daily caps. A span that ends before it begins is rejected ([`Refused::Invalid`], field
    /// `from`), and so is an unknown guild ([`Refused::NotFound`]).
    async fn usage(&self, query: UsageQuery) -> Result<Usage, Refused>;

    /// The figures that laws ask for, of all months that the span touches: without `from`, twelve. Rejects what [`Self::usage`] rejects, and more than
    /// 120 months.
    async fn safety_figures(&self, query: UsageQuery) -> Result<SafetyFigures, Refused>;

    /// Exports stored events, one JSON object per line, a bounded part at a time.
    async fn export(&self, query: ExportQuery) -> Result<Lines, Refused>;

    /// Exports what a person said in a guild, in its current form: one JSON object per line, room by room, without what others said that the
    /// person quoted. If the person was told that companions are AI, or opted out, a first line says that. Deleted messages have no text any
    /// more, and are left out. Unreadable entries may be the person's: if there are any, the stream ends with an error after all other lines.
    async fn export_person(&self, person: Person) -> Result<Lines, Refused>;
}
