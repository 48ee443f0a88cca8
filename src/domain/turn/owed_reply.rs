//! A reply that is owed, and the statement that it ends with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::closing::Stage;
use super::super::id::{CompanionId, Seq, Ticket, TurnId};
use super::super::message::Modality;
use super::super::moment::Moment;
use super::super::trigger::Trigger;
use super::Selection;

/// The right to speak, with the reply that is owed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwedReply {
    /// The companion that has the floor.
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
    /// The deadline for the words of an external companion.
    #[serde(default)]
    pub due_at: Option<Moment>,
    /// When it began: the first call, if it was begun again since. Zero in snapshots of older versions.
    #[serde(default)]
    pub began_at: Moment,
    /// When the companion loses the floor and writes on late. None: it keeps the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Moment>,
    /// How often the statement was begun again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replans: u32,
    /// How often somebody wanted another statement in the place of one that was made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
    /// When the next attempt starts. While it waits, no call is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replan_at: Option<Moment>,
    /// It has taken the floor with a late text. If that cannot be posted, nobody takes its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_late: bool,
    /// The companion becomes terminal after the statement, because its State said so.
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
    /// If it is spoken: the sentences that were about to be heard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentences: Vec<SpokenSentence>,
    /// The text is complete and is being posted. This is not on record: after a restart the reply is written again, unless it was posted.
    #[serde(skip)]
    pub is_posting: bool,
    /// The complete text of a late reply that waits for the floor. Not on record either.
    #[serde(skip)]
    pub text: Option<Arc<str>>,
}

impl OwedReply {
    /// Whether a call to the main model is in progress, or the words of an external companion are awaited.
    pub fn is_being_made(&self) -> bool {
        !self.is_posting && self.replan_at.is_none() && self.text.is_none()
    }

    /// What was heard of a spoken reply, as far as it is on record.
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
    /// The number of characters that were heard, as far as it is on record.
    pub heard: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A posted statement, until the round that it opens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostedStatement {
    pub companion: CompanionId,
    pub message: Seq,
    pub opened: Seq,
    pub judgement: Judgement,
    /// The turn that it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The companion becomes terminal after it, because its State said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_farewell: bool,
    /// It is not judged for repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unjudged: bool,
    /// A message that is being judged was deleted. The score counts, but the words of the answer are not stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spoilt: bool,
}

/// The progress of the repetition judgement of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Judgement {
    /// Older snapshots may say that none is needed.
    #[serde(alias = "NotNeeded")]
    Due,
    /// The side model was asked.
    Asked(Ticket),
    Given,
}
