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
    /// Rooms of which something cannot be read, where all were asked for: what was decided there may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<RoomId>,
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
    /// Of which companion: its id, its name or an alias. Absent where several are present, each is told of in short.
    pub companion: Option<Arc<str>>,
    /// Which decision; absent, the newest, and what is waited for since.
    pub at: Option<WhyAt>,
}

/// How a story's decision is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyAt {
    /// The decision with this number, or the first one after it.
    Event(Seq),
    /// The last decision at or before this moment, or within its millisecond: times are told to that.
    Moment(Moment),
    /// Whatever was decided about the message with this number, or with this id of its platform or its sender.
    Message(Arc<str>),
}

/// The story of a decision, or of why nothing has triggered yet; or what became of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Why {
    /// Whose story it is; absent where several are told of in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionId>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The number of the message that was asked about, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Seq>,
    /// What happened, oldest first.
    pub story: Vec<StoryLine>,
    /// The decision, if there is one.
    pub decision: Option<DecisionRecord>,
    /// What it would take for the companion to be asked, if it is told of now.
    pub waiting_for: Option<WaitingFor>,
    /// What the model was given to read, if one was asked.
    pub prompt: Option<Vec<PromptPart>>,
    /// In short, by id: what became of the message for each companion; or, of several that are present, the newest decision of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<Brief>,
}

/// One companion's side, in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Brief {
    /// Whose.
    pub companion: CompanionId,
    /// What people call it.
    pub name: Arc<str>,
    /// What became of a message for it, if one was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What happened, in words.
    pub text: String,
    /// The number of the decision that is told of, if there is one.
    pub seq: Option<Seq>,
    /// When that was made; without one, when it happened.
    pub at: Option<Stamp>,
    /// What it would take for the companion to be asked, if it is told of now.
    pub waiting_for: Option<WaitingFor>,
}

/// What became of a message for one companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It spoke, with this message among those that it answered.
    Answered,
    /// It got the floor, with this message among those to be answered, and has not spoken yet.
    Speaking,
    /// It got the floor, and no statement was made.
    Failed,
    /// It stayed silent on it.
    Silent,
    /// It is not settled yet.
    Waiting,
    /// It said this itself.
    Own,
    /// The message was taken back first.
    #[serde(rename = "taken_back")]
    Deleted,
    /// What was going on in the room was dropped first.
    Cleared,
    /// It left first.
    Left,
    /// It was not there.
    Absent,
    /// The message was set aside, because whoever handled it died of it: nobody is asked about it.
    #[serde(rename = "set_aside")]
    DeadLetter,
    /// The record does not say, as far as it is read.
    Unknown,
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
    /// Messages that it has heard and not settled.
    pub unsettled: usize,
}

/// One part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromptPart {
    /// What it is: `persona`, `summary`, `history`, `buffer` …
    pub part: Arc<str>,
    /// Its size, in tokens, as estimated.
    pub tokens: u64,
}
