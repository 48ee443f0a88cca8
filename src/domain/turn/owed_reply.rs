//! An owed reply, and the statement that it results in.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::closing::Stage;
use super::super::id::{CompanionId, Seq, Ticket, TurnId};
use super::super::message::Modality;
use super::super::moment::Moment;
use super::super::trigger::Trigger;
use super::Selection;

/// A reply that a companion owes, with the floor or late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OwedReply {
    /// The companion that owes it.
    pub companion: CompanionId,
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
    /// The deadline for the text of an external companion.
    pub due_at: Option<Moment>,
    /// When its first attempt began. Zero in snapshots of older versions.
    #[serde(default)]
    pub began_at: Moment,
    /// When the companion loses the floor and its reply becomes late. None: it keeps the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Moment>,
    /// The number of restarts of the statement.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replans: u32,
    /// The number of statements that this one replaces at a user's request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
    /// The newest of them. It stays until this one is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Seq>,
    /// It extends that statement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// A message that it answers was deleted, so that the former answers are erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spoilt: bool,
    /// When the next attempt starts. Until then, no call is made. None: no restart is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replan_at: Option<Moment>,
    /// The reply took the floor with a late text. If that text cannot be posted, no other candidate takes over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_late: bool,
    /// The companion becomes terminal after the statement, because of its State.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_farewell: bool,
    /// The statement is not judged for repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unjudged: bool,
    /// The stage that repetition forced when the call began.
    #[serde(default, skip_serializing_if = "Stage::is_none")]
    pub forced: Stage,
    /// The number of the message that triggered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Seq>,
    /// Whether it is spoken or posted.
    #[serde(default, skip_serializing_if = "Modality::is_text")]
    pub modality: Modality,
    /// For a spoken reply: the sentences whose start was journaled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentences: Vec<SpokenSentence>,
    /// The text is complete and is being posted. This is not journaled. After a restart the reply is generated again, unless it was posted.
    #[serde(skip)]
    pub is_posting: bool,
    /// The complete text of a late reply that waits for the floor. It is not journaled.
    #[serde(skip)]
    pub text: Option<Arc<str>>,
}

impl OwedReply {
    /// Whether a call to the main model is in progress, or the text of an external companion is pending.
    pub fn is_being_made(&self) -> bool {
        !self.is_posting && self.replan_at.is_none() && self.text.is_none()
    }

    /// The heard part of a spoken reply, according to the journal.
    pub fn heard(&self) -> String {
        self.sentences.iter().flat_map(|sentence| sentence.text.chars().take(sentence.heard as usize)).collect()
    }

    /// The next deadline of the companion that has the floor.
    pub fn deadline(&self) -> Option<Moment> {
        let expiry = self.expires_at.filter(|_| self.replan_at.is_none());
        self.due_at.into_iter().chain(self.replan_at).chain(expiry).min().filter(|_| !self.is_posting)
    }
}

/// A sentence of a spoken reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpokenSentence {
    pub text: Arc<str>,
    /// The number of characters that were heard, according to the journal.
    pub heard: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A posted statement, until it opens a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostedStatement {
    pub companion: CompanionId,
    pub message: Seq,
    pub opened: Seq,
    pub judgement: Judgement,
    /// The turn that it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The companion becomes terminal after it, because of its State.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_farewell: bool,
    /// It is not judged for repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unjudged: bool,
    /// A message that is being judged was deleted. The score counts, but the text of the answer is not stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spoilt: bool,
}

/// The progress of the repetition judgement of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Judgement {
    /// No judgement has started. Older snapshots may say that none is needed.
    #[serde(alias = "NotNeeded")]
    Due,
    /// The side model was asked.
    Asked(Ticket),
    Given,
}
