//! The parts of a conversation's state, besides gates, window and round.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::closing::Stage;
use super::super::id::{CompanionId, Seq, Ticket, TurnId};
use super::super::message::{Message, Modality};
use super::super::moment::Moment;
use super::super::round::{Round, message_id};
use super::super::trigger::Trigger;
use super::super::vote::{Stance, State, USUAL_IMPORTANCE};
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
    pub companion: CompanionId,
    /// The trigger of its question.
    pub trigger: Trigger,
    /// The reason that it gave.
    pub why: Option<Arc<str>>,
    /// The number of the message that triggered its question. None for a long silence, and in snapshots of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Seq>,
    /// It is alone, and ends the conversation with this statement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_farewell: bool,
}

/// A companion that was selected and has not begun to speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The companion that speaks next.
    pub candidate: Candidate,
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
    pub(super) text: Option<Arc<str>>,
}

impl Floor {
    /// Whether a call to the main model is in progress, or the words of an external companion are awaited.
    pub fn is_being_made(&self) -> bool {
        !self.is_posting && self.replan_at.is_none() && self.text.is_none()
    }

    /// What was heard of a spoken reply, as far as it is on record.
    pub fn heard(&self) -> String {
        self.sentences.iter().flat_map(|sentence| sentence.text.chars().take(sentence.heard as usize)).collect()
    }

    /// The next deadline of the companion that has the floor.
    pub(super) fn deadline(&self) -> Option<Moment> {
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

pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A vote for the floor that arrived while the floor was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Held {
    /// The State that the companion submitted.
    pub(super) state: State,
    /// The newest inbound event when its round opened.
    pub(super) opened: Seq,
}

impl Held {
    /// The vote of a companion that was asked outside a round.
    pub(super) fn without_state(companion: &CompanionId, trigger: Trigger, upto: Seq) -> Self {
        let state = State {
            from: companion.clone(),
            message_id: message_id(upto),
            state: Stance::Speak,
            importance: USUAL_IMPORTANCE,
            selected: trigger == Trigger::DirectAddress,
            closing: Stage::None,
            mood: 0.0,
        };
        Self { state, opened: upto }
    }
}

/// Reads a list, or what an older version wrote: one or none.
pub(super) fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Round>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        Many(Vec<Round>),
        One(Option<Round>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::Many(rounds) => rounds,
        OneOrMany::One(round) => round.into_iter().collect(),
    })
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
    /// The newest inbound event when the number of statements began at 0.
    #[serde(default)]
    pub(super) opened: Seq,
}
