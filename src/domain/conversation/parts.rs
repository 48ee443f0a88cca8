//! The parts of a conversation's state, besides gates, window and round.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::closing::Stage;
use super::super::id::{CompanionId, Seq, Ticket, TurnId};
use super::super::message::Message;
use super::super::moment::Moment;
use super::super::trigger::Trigger;
use super::ending::Judgement;

/// How a companion was selected to speak.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The newest inbound event when the round opened that selected it. Alone in a channel: when it was asked.
    pub opened: Seq,
    /// The newest inbound event when it was selected.
    pub selected_at: Seq,
    /// The other candidates, in their order of speaking. The first who still can takes over if the statement fails.
    pub others: Vec<Candidate>,
    /// The turn that selected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// A companion that wants to speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The companion.
    pub companion: CompanionId,
    /// The trigger of its question.
    pub trigger: Trigger,
    /// The reason that it gave.
    pub why: Option<Arc<str>>,
    /// It is alone, and ends the conversation with this statement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_farewell: bool,
}

/// A companion that was selected and has not begun to speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The companion that speaks next.
    pub candidate: Candidate,
    /// How it was selected.
    pub selection: Selection,
    /// When it starts to speak. None: at once.
    pub speak_at: Option<Moment>,
}

/// A posted statement, until the round that it opens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PostedStatement {
    pub(super) companion: CompanionId,
    pub(super) message: Seq,
    pub(super) opened: Seq,
    pub(super) judgement: Judgement,
    /// The turn that it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<TurnId>,
    /// The companion becomes terminal after it, because its State said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_farewell: bool,
    /// It is not judged for repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_unjudged: bool,
    /// A message that is being judged was deleted. The score counts, but the words of the answer are not stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_spoilt: bool,
}

/// A statement that the next judgement of repetition considers. The window shares the message while it holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecentStatement {
    pub(super) seq: Seq,
    pub(super) message: Arc<Message>,
    /// A person spoke between the statement before it and this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) follows_person: bool,
}

/// The right to speak, with the reply that is owed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// The companion that has the floor.
    pub companion: CompanionId,
    /// The reply's number.
    pub ticket: Ticket,
    /// The trigger that led to the reply.
    pub trigger: Trigger,
    /// The numbers of the messages that it answers.
    pub messages: Vec<Seq>,
    /// The newest event that settled with it.
    pub upto: Seq,
    /// The companion's reason to speak.
    pub why: Option<Arc<str>>,
    /// How the companion was selected.
    #[serde(default)]
    pub selection: Selection,
    /// The deadline for the words of an external companion.
    #[serde(default)]
    pub due_at: Option<Moment>,
    /// The companion becomes terminal after the statement, because its State said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_farewell: bool,
    /// The statement is not judged for repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unjudged: bool,
    /// The stage that repetition forced when the call began.
    #[serde(default, skip_serializing_if = "Stage::is_none")]
    pub forced: Stage,
    /// The text is complete and is being posted. This is not on record: after a restart the reply is written again, unless it was posted.
    #[serde(skip)]
    pub is_posting: bool,
}

/// One conversation in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// When its first message was said.
    pub began_at: Moment,
    /// When its last message was said.
    pub last_at: Moment,
}

/// The counters that limit endless conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The number of statements that were selected after the newest human message.
    pub streak: u32,
    /// The number of statements since the conversation was opened.
    pub turns: u32,
    /// The number of judgements in a row that found repetition.
    pub detections: u32,
    /// The score of the last repetition judgement, in thousandths.
    pub repetition: u32,
    /// The stage that repetition forced last. `none` if the last judgement found none.
    #[serde(default, skip_serializing_if = "Stage::is_none")]
    pub forced: Stage,
    /// A statement whose call began under `forced` was posted, so that the next stage may be forced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_next_allowed: bool,
    pub(super) newest_human: Seq,
}
