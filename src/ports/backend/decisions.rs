//! Decisions on record, and the explanation of one.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::room::RoomId;
use super::stamp::Stamp;
use crate::domain::decision::{Decision, Reason};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::texts::Language;

/// Which decisions to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionQuery {
    pub room: Option<RoomId>,
    pub companion: Option<CompanionId>,
    /// Only events after this one. It is never given without `room`, because numbers are a room's own.
    pub after: Option<Seq>,
    /// The most decisions to return: 1 to 1,000.
    pub limit: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Decisions {
    /// Oldest first.
    pub decisions: Vec<DecisionRecord>,
    /// Where all rooms were requested: rooms with unreadable records, whose decisions may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<RoomId>,
}

/// One decision on record.
///
/// Further fields, each where it applies: `message_count`, `check_count` and `threshold`; `messages`, the texts that it was about; `why`, the model's
/// reason; `trace`, the id of the trace that has its span; `took_ms`, `model_ms`, `wait_ms`, `model`, `provider`, `input_tokens` and `output_tokens` of
/// a model that was asked; `asked_together`, how many companions the same call asked, if it asked several, whose tokens only the usage of the room has.
/// Where the reason is `budget`: which `budget` was used up, and when it is free again (`free_at`; absent: never). In rounds: the
/// `vote` (a State), the `round`, as in the live view, and, of a YES once it is known, `floor` (`won` or `lost`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionRecord {
    pub seq: Seq,
    pub at: Stamp,
    pub room: Arc<str>,
    pub companion: CompanionId,
    pub trigger: Trigger,
    #[schemars(with = "Decision")]
    pub decision: Arc<str>,
    #[schemars(with = "Reason")]
    pub reason: Arc<str>,
    /// The further fields.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Which decision or message to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyQuery {
    pub room: RoomId,
    /// The companion: its id, its name or an alias. If it is absent and several are present, each gets a short entry.
    pub companion: Option<Arc<str>>,
    /// Which decision; absent: the newest, and what the companion waits for since.
    pub at: Option<WhyAt>,
    /// The language of the sentences.
    pub language: Language,
}

/// How the decision is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyAt {
    /// The decision with this number, or the first one after it.
    Event(Seq),
    /// The last decision at or before this moment, or within its millisecond, because times are shown in milliseconds.
    Moment(Moment),
    /// All decisions about the message with this number, or with this id of its platform or its sender.
    Message(Arc<str>),
}

/// The explanation of a decision, or of why nothing has triggered yet, or of what happened to a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Why {
    /// The room's title, or its id if it has none.
    pub room: Arc<str>,
    /// The companion; absent where several are described in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The number of the message, if the query named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Seq>,
    /// What happened, oldest first.
    pub story: Vec<StoryLine>,
    pub decision: Option<DecisionRecord>,
    /// What the companion is waiting for, if its current state was requested.
    pub waiting_for: Option<WaitingFor>,
    /// The parts of the model's prompt, if a model was asked.
    pub prompt: Option<Vec<PromptPart>>,
    /// Short entries, ordered by id: what happened to the message for each companion; or the newest decision of each companion present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<Brief>,
}

/// A short entry about one companion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    pub companion: CompanionId,
    pub name: Arc<str>,
    /// What happened to the message for it, if the query named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    pub text: String,
    /// The number of the decision that is described, if there is one.
    pub seq: Option<Seq>,
    /// When that decision was made; without one, when the event happened.
    pub at: Option<Stamp>,
    /// What the companion is waiting for, if its current state was requested.
    pub waiting_for: Option<WaitingFor>,
}

/// What happened to a message for one companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It spoke, with this message among those that it answered.
    Answered,
    /// It holds the floor, with this message among those to be answered, and has not spoken yet.
    Speaking,
    /// It got the floor, and no statement was made.
    Failed,
    /// It decided to stay silent about it.
    Silent,
    /// It is not settled yet.
    Waiting,
    /// The message is its own statement.
    Own,
    /// The message was deleted before it was settled.
    Deleted,
    /// The room was cleared before the message was settled.
    Cleared,
    /// It left before the message was settled.
    Left,
    /// It was not a member then.
    Absent,
    /// The message became a dead letter because it killed its handler. No companion is asked about it.
    DeadLetter,
    /// The records that were read do not say, or the answer is of another version.
    #[serde(other)]
    Unknown,
}

/// One step of an explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoryLine {
    pub at: Stamp,
    /// The number of its event, if it is one.
    pub seq: Option<Seq>,
    /// Its kind, as in the live view.
    pub event: Arc<str>,
    pub text: String,
    /// What an operator may change because of it: a setting, or a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<Arc<str>>,
}

/// What a companion is waiting for before it is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingFor {
    /// A whole sentence.
    pub text: String,
    /// The number of messages missing for an interjection.
    pub messages: Option<u64>,
    pub lull_at: Option<Stamp>,
    /// When it is asked again, in back-off.
    pub retry_at: Option<Stamp>,
    /// The number of messages that it received and has not settled.
    pub unsettled: usize,
}

/// One part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptPart {
    /// Its name: `persona`, `summary`, `history`, `buffer` …
    pub part: Arc<str>,
    pub tokens: u64,
}
