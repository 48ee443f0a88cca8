//! What a channel's questions to models cost. It goes on record with what came of them; or by itself, where nothing did.

use std::sync::PoisonError;

use super::State;
use crate::actors::side_models::Outcome;
use crate::domain::budget::Use;
use crate::domain::id::CompanionId;
use crate::domain::model_role::ModelRole;
use crate::journal::record::Used;
use crate::ports::language_model::Request;

impl State {
    /// Notes what a question took: every call that was made for it, and the tokens that are known. It goes on record with the next batch.
    pub(super) fn spend(&mut self, asked: &Request, outcome: &Outcome) {
        let companion = asked.companion.as_ref().map(|persona| persona.id.clone());
        self.spent.extend(self.used(companion, asked.role, outcome));
    }

    /// What a question took that led to nothing: nobody waits for its answer any more.
    pub(super) fn spent_in_vain(&mut self, asked: &Request, outcome: &Outcome) {
        self.spend(asked, outcome);
        self.count_tokens(outcome);
        self.record_spent();
    }

    /// What a question comes to on record; nothing, if it never left the queue.
    pub(super) fn used(&self, companion: Option<CompanionId>, role: ModelRole, outcome: &Outcome) -> Option<Used> {
        let facts = &outcome.facts;
        (facts.attempts > 0).then(|| Used::Call {
            companion,
            model: facts.identity.model.clone(),
            provider: facts.identity.provider.clone(),
            role: role.as_str().into(),
            input_tokens: facts.usage.input_tokens,
            output_tokens: facts.usage.output_tokens,
            calls: facts.attempts,
            // Of several tries only the last one gave the answer.
            failed_calls: facts.attempts - u32::from(outcome.result.is_ok()),
            price: self.kit.settings.models.prices().of(role).cloned(),
        })
    }

    /// Counts the tokens of an answer that does not go through the conversation, which counts those of its own.
    pub(super) fn count_tokens(&self, outcome: &Outcome) {
        let tokens = outcome.facts.usage.total();
        if tokens > 0 {
            let mut ledger = self.books.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.count(Use::Tokens(tokens), self.kit.clock.now());
        }
    }
}
