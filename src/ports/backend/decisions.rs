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

/// The decisions to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionQuery {
    pub room: Option<RoomId>,
    pub companion: Option<CompanionId>,
    /// Returns only events after this one. It is never set without `room`, because each room has its own numbers.
    pub after: Option<Seq>,
    /// The most decisions to return: 1 to 1,000.
    pub limit: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Decisions {
    /// Oldest first.
    pub decisions: Vec<DecisionRecord>,
    /// Rooms with unreadable records, whose decisions may be missing, if all rooms were requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<RoomId>,
}

/// One decision on record.
///
/// Additional fields, each where it applies:
///
/// * `message_count`, `check_count` and `threshold`.
/// * `messages`: the texts that the decision was about.
/// * `why`: the model's reason.
/// * `trace`: the id of the trace that has the decision's span.
/// * `took_ms`, `model_ms`, `wait_ms`, `model`, `provider`, `input_tokens` and `output_tokens`, if a model was asked.
/// * `asked_together`: the number of companions that the same call asked, if it asked several. The call's tokens are then only in the usage of the
///   room.
/// * `budget`, if the reason is `budget`: the budget that is used up. `free_at`: when it is free again; absent: never.
/// * In rounds: the `vote` (a State), the `round`, as in the live view, and, for a YES, once it is known, `floor` (`won` or `lost`).
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
    /// The additional fields.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The decision or message to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyQuery {
    pub room: RoomId,
    /// The companion: its id, its name or an alias. If it is absent and several companions are present, each gets a short entry.
    pub companion: Option<Arc<str>>,
    /// The decision. Absent: the newest decision, and what the companion has been waiting for since.
    pub at: Option<WhyAt>,
    /// The language of the sentences.
    pub language: Language,
}

/// How the query identifies the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyAt {
    /// The decision with this number, or the first one after it.
    Event(Seq),
    /// The last decision at or before this moment, or within its millisecond, because times are shown in milliseconds.
    Moment(Moment),
    /// All decisions about the message with this number, or with this id of its platform or its sender.
    Message(Arc<str>),
}

/// The explanation of a decision, of the absence of a trigger, or of the outcome of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Why {
    /// The room's title, or its id if it has none.
    pub room: Arc<str>,
    /// The companion. Absent if several companions are described briefly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The number of the message, if the query named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Seq>,
    /// The steps of the explanation, oldest first.
    pub story: Vec<StoryLine>,
    pub decision: Option<DecisionRecord>,
    /// The condition that the companion waits for, if its current state was requested.
    pub waiting_for: Option<WaitingFor>,
    /// The parts of the model's prompt, if a model was asked.
    pub prompt: Option<Vec<PromptPart>>,
    /// Short entries, ordered by id: the outcome of the message for each companion, or the newest decision of each companion present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<Brief>,
}

/// A short entry about one companion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    pub companion: CompanionId,
    pub name: Arc<str>,
    /// The outcome of the message for this companion, if the query named a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    pub text: String,
    /// The number of the described decision, if there is one.
    pub seq: Option<Seq>,
    /// When the decision was made. Without a decision, when the event occurred.
    pub at: Option<Stamp>,
    /// The condition that the companion waits for, if its current state was requested.
    pub waiting_for: Option<WaitingFor>,
}

/// The outcome of a message for one companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The companion spoke, and answered this message among others.
    Answered,
    /// The companion holds the floor to answer this message among others, and has not spoken yet.
    Speaking,
    /// The companion got the floor, but no statement was made.
    Failed,
    /// The companion decided to stay silent about the message.
    Silent,
    /// The message is not settled yet.
    Waiting,
    /// The message is the companion's own statement.
    Own,
    /// The message was deleted before it was settled.
    Deleted,
    /// The room was cleared before the message was settled.
    Cleared,
    /// The companion left before the message was settled.
    Left,
    /// The companion was not a member when the message arrived.
    Absent,
    /// The message became a dead letter because it killed its handler. No companion is asked about it.
    DeadLetter,
    /// The outcome is not in the records that were read, or the server has another version.
    #[serde(other)]
    Unknown,
}

/// One step of an explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoryLine {
    pub at: Stamp,
    /// The number of the step's event, if the step is an event.
    pub seq: Option<Seq>,
    /// The kind of step, as in the live view.
    pub event: Arc<str>,
    pub text: String,
    /// A setting or a request with which an operator can change this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<Arc<str>>,
}

/// The conditions that a companion waits for before it is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingFor {
    /// The conditions as a sentence.
    pub text: String,
    /// The number of messages that are missing for an interjection.
    pub messages: Option<u64>,
    pub lull_at: Option<Stamp>,
    /// When the companion is asked again, if it is in back-off.
    pub retry_at: Option<Stamp>,
    /// The number of received messages that are not settled.
    pub unsettled: usize,
}

/// One part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptPart {
    /// The name of the part: `persona`, `summary`, `history`, `buffer` …
    pub part: Arc<str>,
    pub tokens: u64,
}
