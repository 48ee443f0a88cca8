//! Companions that want to speak: those whose votes are held, and the selected one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::closing::Stage;
use super::super::id::{CompanionId, Seq, TurnId};
use super::super::moment::Moment;
use super::super::round::message_id;
use super::super::trigger::Trigger;
use super::super::vote::{Stance, State, USUAL_IMPORTANCE};

/// The selection of a companion to speak.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The newest inbound event when the selecting round opened. For a single companion in a channel: when it was asked.
    pub opened: Seq,
    /// The newest inbound event when it was selected.
    pub selected_at: Seq,
    /// The other candidates, in their order of speaking. If the statement fails, the first one that still can speak takes over.
    pub others: Vec<Candidate>,
    /// It replaces a companion whose statement failed. If its statement fails, too, no other candidate takes over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replacement: bool,
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
    /// The reason that the companion gave. None if it gave none, or the reason was removed.
    pub why: Option<Arc<str>>,
    /// The number of the message that triggered its question. None for a long silence, and in snapshots of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Seq>,
    /// It is the only companion, and ends the conversation with this statement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_farewell: bool,
}

impl Candidate {
    pub(super) fn forget_reason_of(&mut self, companion: &CompanionId) {
        self.why.take_if(|_| self.companion == *companion);
    }
}

/// A companion that was selected and has not begun to speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selected {
    /// The companion that speaks next.
    pub candidate: Candidate,
    pub selection: Selection,
    /// When it starts to speak. None: at once.
    pub speak_at: Option<Moment>,
}

/// A vote that is held, because the floor was taken, a statement was being judged or the loop guard applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldVote {
    /// The State that the companion submitted.
    pub state: State,
    /// The newest inbound event when its round opened.
    pub opened: Seq,
}

impl HeldVote {
    /// The vote of a companion that was asked outside a round.
    pub fn without_state(companion: &CompanionId, trigger: Trigger, upto: Seq) -> Self {
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
