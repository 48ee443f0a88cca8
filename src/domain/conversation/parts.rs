//! What the state of a conversation is made of, besides gates, window and round.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::id::{CompanionId, Seq, Ticket, TurnId};
use super::super::moment::Moment;
use super::super::trigger::Trigger;
use super::ending::Judgement;

/// How a companion came to the right to speak.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The newest event from outside when the round opened that selected it; alone in a channel: when it was asked.
    pub opened: Seq,
    /// The newest event from outside when it was selected.
    pub selected_at: Seq,
    /// In its round somebody was asked because another companion had spoken.
    pub asked_for_turn: bool,
    /// Those who wanted to speak too, in the order in which they would have; the first who still can takes over if the statement fails.
    pub others: Vec<Candidate>,
    /// The turn that selected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// Somebody who wants to speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Who.
    pub companion: CompanionId,
    /// Why it was asked.
    pub trigger: Trigger,
    /// What it gave as its reason.
    pub why: Option<Arc<str>>,
}

/// A companion that was selected and has not begun to speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Whose turn it is.
    pub candidate: Candidate,
    /// How it came to it.
    pub selection: Selection,
    /// When it speaks; none: at once.
    pub speak_at: Option<Moment>,
}

/// A statement that was posted, until the round that it opens is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Spoken {
    pub(super) companion: CompanionId,
    pub(super) message: Seq,
    pub(super) opened: Seq,
    pub(super) judgement: Judgement,
    /// The turn that it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<TurnId>,
    /// Something that is being judged was taken back: the score counts, and not in which words it was given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_spoilt: bool,
}

/// The right to speak, and the reply that it is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Who has it.
    pub companion: CompanionId,
    /// The reply's number.
    pub ticket: Ticket,
    /// What it answers to.
    pub trigger: Trigger,
    /// The snapshot that it answers.
    pub messages: Vec<Seq>,
    /// The newest event that settled with it.
    pub upto: Seq,
    /// What the companion gave as its reason to speak.
    pub why: Option<Arc<str>>,
    /// How it came to the floor.
    #[serde(default)]
    pub selection: Selection,
    /// When an external companion's words are waited for no longer.
    #[serde(default)]
    pub due_at: Option<Moment>,
    /// The words are written and on their way. Not on record: after a restart they are written again, unless they arrived.
    #[serde(skip)]
    pub is_posting: bool,
}

/// One conversation in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// When its first message was said.
    pub began_at: Moment,
    /// When its last one was.
    pub last_at: Moment,
}

/// What is counted against conversations without end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Statements that were selected after the newest human message.
    pub streak: u32,
    /// Statements since the conversation was opened.
    pub turns: u32,
    /// Judgements in a row that found repetition.
    pub detections: u32,
    /// How much the last messages repeated each other when they were judged last, in thousandths.
    pub repetition: u32,
    pub(super) newest_human: Seq,
}

/// What is known of a channel's past beyond its window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The rolling summary.
    pub text: Option<Arc<str>>,
    /// The newest event that it covers.
    pub upto: Seq,
    /// Messages that settled since, up to `counted`.
    pub behind: u64,
    pub(super) counted: Seq,
    #[serde(skip)]
    pub(super) is_being_written: bool,
    /// Something that the one being written may hold was taken back.
    #[serde(skip)]
    pub(super) is_spoilt: bool,
}
