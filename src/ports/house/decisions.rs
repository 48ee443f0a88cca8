//! Decisions on record, and the story of one.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::room::RoomId;
use super::stamp::Stamp;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;

/// Which decisions to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionQuery {
    /// Of this room only.
    pub room: Option<RoomId>,
    /// Of this companion only.
    pub companion: Option<CompanionId>,
    /// After this event only. Never given without `room`: numbers are a room's own.
    pub after: Option<Seq>,
    /// How many at most: 1 to 1,000.
    pub limit: usize,
}

/// Decisions on record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Decisions {
    /// Oldest first.
    pub decisions: Vec<DecisionRecord>,
}

/// One decision on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionRecord {
    /// The number of its event.
    pub seq: Seq,
    /// When it was made.
    pub at: Stamp,
    /// Where.
    pub room: Arc<str>,
    /// Whose it is.
    pub companion: CompanionId,
    /// Why it was considered.
    pub trigger: Trigger,
    /// `YES` or `NO`.
    pub decision: Arc<str>,
    /// One of the closed list of reasons.
    pub reason: Arc<str>,
    /// What else is on record: `message_count`, `check_count`, `threshold`, the model's `why`, where the reason is `budget` which `budget` was
    /// used up and when it is free again (`free_at`; absent: never), in rounds the `vote` (a State) and, of a YES
    /// once it is known, `floor` (`won` or `lost`), `took_ms`, `model`, tokens, `trace` …
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Which story to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyQuery {
    /// In which room.
    pub room: RoomId,
    /// Of which companion; may be absent where only one is present.
    pub companion: Option<CompanionId>,
    /// Which decision; absent, the newest, and what is waited for since.
    pub at: Option<WhyAt>,
}

/// How a story's decision is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyAt {
    /// The decision with this number, or the first one after it.
    Event(Seq),
    /// The last decision at or before this moment.
    Moment(Moment),
}

/// The story of a decision, or of why nothing has triggered yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Why {
    /// What happened, oldest first.
    pub story: Vec<StoryLine>,
    /// The decision, if there is one.
    pub decision: Option<DecisionRecord>,
    /// What it would take for the companion to be asked, if it is told of now.
    pub waiting_for: Option<WaitingFor>,
    /// What the model was given to read, if one was asked.
    pub prompt: Option<Vec<PromptPart>>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoryLine {
    /// When.
    pub at: Stamp,
    /// The number of its event, if it is one.
    pub seq: Option<Seq>,
    /// Its kind, as in the live view.
    pub event: Arc<str>,
    /// What happened, in words.
    pub text: String,
}

/// What it would take for a companion to be asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitingFor {
    /// In words.
    pub text: String,
    /// Messages that are missing for an interjection.
    pub messages: Option<u64>,
    /// When the lull ends.
    pub lull_at: Option<Stamp>,
    /// When it is asked again, in back-off.
    pub retry_at: Option<Stamp>,
}

/// One part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromptPart {
    /// What it is: `persona`, `summary`, `history`, `buffer` …
    pub part: Arc<str>,
    /// Its size, in tokens, as estimated.
    pub tokens: u64,
}
