//! Decides for a single companion: it has no competitors, so its YES gives it the floor at once (docs/design/turn-taking.md T-1).

use super::super::gate::Evaluation;
use super::advance::AnswerRecord;
use super::*;

impl Step<'_, '_> {
    /// Concludes the answer of a single companion. Its stage takes effect after the decision. If it ends the conversation although it was addressed,
    /// it says goodbye first (docs/design/closing.md C-18).
    pub(super) fn conclude_alone(
        &mut self,
        companion: CompanionId,
        evaluation: &Evaluation,
        vote: &Vote,
        reason: Reason,
        mut answered: AnswerRecord,
    ) {
        let closing = self.state.at_least_minimum(&companion, evaluation, vote).closing;
        let wants = vote.verdict == Verdict::Yes;
        let is_farewell = wants && closing == Stage::Terminal && evaluation.trigger == Trigger::DirectAddress;
        let withdraws = closing == Stage::Terminal && !is_farewell;
        if wants && !withdraws {
            answered.used_up = self.world.exhausted_statement_budget(self.state.position.clock);
        }
        self.answered_turn = evaluation.turn;
        let (trigger, upto) = (evaluation.trigger, evaluation.upto);
        if wants && !withdraws && answered.used_up.is_none() {
            // The text of an unreadable answer is not a reason.
            let why = answered.why.clone().filter(|_| reason != Reason::Unreadable);
            let candidate = Candidate { companion, trigger, why, message: Some(evaluation.message), is_farewell };
            self.agree(&candidate.companion, trigger, reason, answered);
            self.change_stage(&candidate.companion, closing.min(Stage::Closing), Cause::State, upto);
            // Another companion may have joined and got the floor in the meantime.
            if !self.state.turns.is_held(&candidate.companion) {
                self.give_floor(&candidate);
            }
            return;
        }
        let reason = match withdraws {
            true => Reason::Closed,
            false if answered.used_up.is_some() => Reason::Budget,
            false => reason,
        };
        self.decline(&companion, trigger, reason, upto, answered);
        self.change_stage(&companion, closing, Cause::State, upto);
    }
}
