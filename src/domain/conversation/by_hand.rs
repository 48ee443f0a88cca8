//! Companions that a person chooses to speak next, and everybody once (docs/design/turn-taking.md T-24, T-25).

use super::super::vote::{Stance, State as Ballot};
use super::*;
use crate::named::named;

/// The companions that speak without a vote, because a person chose them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ByHand {
    /// The companion that a person chose to speak next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    one: Option<CompanionId>,
    /// Everybody once: the companions that have yet to speak, in their order. Until a person writes, no other companion is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    everybody: Option<Vec<CompanionId>>,
}

impl ByHand {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a chosen companion has not spoken yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.one.is_some() || self.everybody.as_ref().is_some_and(|left| !left.is_empty())
    }

    /// A companion got the floor, by hand or otherwise. It has its turn.
    pub(super) fn note_owed(&mut self, companion: &CompanionId) {
        self.retain(|next| next != companion);
    }

    /// A person wrote. That ends everybody once, but not the choice of a single companion, which then answers this message, too.
    pub(super) fn note_person(&mut self) {
        self.everybody = None;
    }

    /// A person stopped a companion.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// Companions that voted to speak come first, by the importance of their votes.
    pub(super) fn note_votes(&mut self, states: &[Ballot]) {
        let importance = |companion: &CompanionId| {
            let speaks = |state: &&Ballot| state.from == *companion && state.state == Stance::Speak;
            states.iter().find(speaks).map_or(-1.0, |state| state.importance)
        };
        if let Some(left) = &mut self.everybody {
            left.sort_by(|one, other| importance(other).total_cmp(&importance(one)));
        }
    }

    fn retain(&mut self, stays: impl Fn(&CompanionId) -> bool) {
        self.one.take_if(|one| !stays(one));
        self.everybody.iter_mut().for_each(|left| left.retain(&stays));
    }
}

named! {
    /// Why a companion cannot be chosen to speak next, by the key of the text for users.
    pub enum NotChosen {
        /// It is paused, or has ended the conversation.
        Silent = "refusals.silent_chosen",
        /// It already writes or speaks.
        Speaking = "refusals.speaks_already",
        /// The newest message is by a person who may be at risk.
        AtRisk = "refusals.chosen_at_risk",
    }
}

impl Conversation {
    /// Checks whether a person may choose this companion to speak next. `helps_at_risk` as in [`Rules`].
    ///
    /// # Errors
    /// Returns the reason if it cannot speak now.
    pub fn check_chosen(&self, companion: &CompanionId, helps_at_risk: bool) -> Result<(), NotChosen> {
        if self.gates.get(companion).is_none_or(Gate::is_silent) {
            Err(NotChosen::Silent)
        } else if self.turns.owed_replies().any(|owed| owed.companion == *companion) {
            Err(NotChosen::Speaking)
        } else if helps_at_risk && self.is_newest_at_risk() {
            Err(NotChosen::AtRisk)
        } else {
            Ok(())
        }
    }

    pub(super) fn apply_chosen(&mut self, companions: &[CompanionId], everybody: bool) {
        if everybody {
            let mut companions = companions.to_vec();
            companions.sort_by_key(|companion| self.spoke.get(companion).copied());
            self.by_hand.everybody = Some(companions);
        } else {
            // The newest choice counts. It comes before those who are left of everybody once.
            self.by_hand.one = companions.first().cloned();
        }
    }

    /// Drops chosen companions that left, were paused, or have ended the conversation.
    pub(super) fn drop_unable(&mut self) {
        let Self { by_hand, gates, .. } = self;
        by_hand.retain(|companion| gates.get(companion).is_some_and(|gate| !gate.is_silent()));
    }

    /// The chosen companion that speaks next, if it can begin now. One with a question in flight answers that first, and one that writes late ends
    /// that statement first.
    fn next_by_hand(&self) -> Option<CompanionId> {
        let is_free = |companion: &CompanionId| {
            let waits_for_floor = self.turns.is_held(companion);
            let is_engaged = self.gates.get(companion).is_some_and(Gate::is_engaged);
            (waits_for_floor || !is_engaged) && !self.turns.is_late(companion)
        };
        if let Some(one) = &self.by_hand.one {
            return Some(one.clone()).filter(is_free);
        }
        // The votes of open rounds decide the order.
        let left = self.by_hand.everybody.as_ref().filter(|_| self.turns.rounds.is_empty())?;
        left.iter().filter(|companion| is_free(companion)).min_by_key(|companion| !self.is_called(companion)).cloned()
    }
}

impl Step<'_, '_> {
    /// Whether no companion may be asked before a person writes: the loop guard applies, or everybody has spoken once.
    pub(super) fn is_guarded(&self) -> bool {
        let most = self.world.rules.turn_taking.max_companion_streak;
        self.state.by_hand.everybody.is_some() || self.state.streak() >= most
    }

    /// Gives the free floor to chosen companions. A message whose author may be at risk is decided about first.
    pub(super) fn speak_by_hand(&mut self) {
        while !self.state.turns.is_floor_taken() && !self.state.turns.is_being_judged() && !self.awaits_last_statement() {
            let Some(companion) = self.state.next_by_hand() else { return };
            if self.world.rules.helps_at_risk && self.state.may_be_at_risk(&companion, self.state.position.handled) {
                return;
            }
            let candidate = Candidate { companion, trigger: Trigger::Chosen, why: None, message: None, is_farewell: false };
            self.give_floor(&candidate);
        }
    }
}
