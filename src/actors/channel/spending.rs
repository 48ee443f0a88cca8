//! The usage of a channel's calls to models. It is recorded with the event that results from the call, or alone if there is none.

use std::sync::PoisonError;
use std::time::Duration;

use super::traces::record_late_call;
use super::{GuildBudgets, State};
use crate::actors::messages::models::Outcome;
use crate::domain::budget::{Budget, UsedUp};
use crate::domain::event::{Decided, Event};
use crate::domain::id::{CompanionId, ModelName};
use crate::domain::model_role::ModelRole;
use crate::domain::moment::Moment;
use crate::domain::service::Service;
use crate::journal::record::Used;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::language_model::Request;
use crate::telemetry::model_calls;
use crate::telemetry::plain::Plain;

/// After this time without a refusal a budget counts as sufficient again. When it is used up the next time, that is logged again.
const ENOUGH_FOR: Duration = Duration::from_secs(3_600);

impl State {
    /// Notes the usage of a question: all calls that were made for it, and the tokens that are known. The next batch records it.
    pub(super) fn note_usage(&mut self, asked: &Request, outcome: &Outcome) {
        let companion = asked.companion.as_ref().map(|companion| companion.id.clone());
        self.unrecorded_usage.extend(self.used(companion, asked.role, &asked.model, outcome));
    }

    /// Records the usage of a question whose answer nobody waits for any longer.
    pub(super) fn record_unclaimed_usage(&mut self, asked: &Request, outcome: &Outcome) {
        record_late_call(asked, outcome, &self.channel_key, &self.context);
        self.note_usage(asked, outcome);
        self.count_tokens(outcome);
        self.record_remaining_usage();
    }

    /// The usage record of a question; it also records the cost metric. `None` if the question never left the queue.
    pub(super) fn used(
        &self,
        companion: Option<CompanionId>,
        role: ModelRole,
        model: &ModelName,
        outcome: &Outcome,
    ) -> Option<Used> {
        let facts = &outcome.facts;
        if facts.attempts == 0 {
            return None;
        }
        let price = match facts.service {
            Service::LanguageModel => self.context.pool.settings().price(role, model),
            // Priced by its length, where it is used (`calls/services.rs`).
            Service::SpeechRecognition | Service::SpeechSynthesis => None,
        };
        if let Some(price) = &price {
            model_calls::record_cost(&self.context.recorder, &facts.identity, role, &facts.usage, price);
        }
        Some(Used::Call {
            service: facts.service,
            companion,
            model: facts.identity.model.clone(),
            provider: facts.identity.provider.clone(),
            role: role.as_str().into(),
            input_tokens: facts.usage.input_tokens,
            output_tokens: facts.usage.output_tokens,
            calls: facts.attempts,
            // Of several attempts only the last one gave the answer.
            failed_calls: facts.attempts - u32::from(outcome.result.is_ok()),
            price,
        })
    }

    /// Logs that a budget of the guild is used up. It is logged once, however many companions it silences, until it was sufficient for a while.
    pub(super) fn log_used_up(&self, event: &Event) {
        let Event::Decided(Decided { used_up: Some(used_up), .. }) = event else { return };
        let UsedUp { budget, free_at } = *used_up;
        if !budget.is_of_guild() {
            return;
        }
        if !self.budgets.must_log(budget, self.context.clock.now()) {
            return;
        }
        let free_at = free_at.map_or_else(|| "never".to_owned(), rfc3339);
        let (guild, budget) = (Plain(self.channel_key.guild.as_str()), budget.as_str());
        tracing::warn!(%guild, budget, free_at, "a guild has used up its budget: its companions stay silent until it is free again");
    }

    /// Counts the tokens of an answer that does not go through the conversation. The conversation counts those of its own answers.
    pub(super) fn count_tokens(&self, outcome: &Outcome) {
        let tokens = outcome.facts.usage.total();
        if tokens > 0 {
            let mut ledger = self.budgets.ledger();
            ledger.count_tokens(tokens, self.context.clock.now(), self.context.settings.models.guild_tokens_per_day);
        }
    }
}

impl GuildBudgets {
    /// Notes that this budget silenced a companion. True if it is to be logged, because the budget was sufficient for a while before.
    fn must_log(&self, budget: Budget, now: Moment) -> bool {
        let before = self.last_refused.lock().unwrap_or_else(PoisonError::into_inner).insert(budget, now);
        before.is_none_or(|before| now.since(before) >= ENOUGH_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_up_budget_is_logged_once_until_it_was_sufficient_for_a_while() {
        let budgets = GuildBudgets::default();
        let must_log = |budget, minute: u64| budgets.must_log(budget, Moment::from_micros(minute * 60_000_000));

        let logged = [0, 1, 50, 100, 159, 219, 280].map(|minute| must_log(Budget::GuildTokens, minute));

        assert_eq!(logged, [true, false, false, false, false, true, true]);
        assert!(must_log(Budget::GuildStatements, 281), "budgets are independent");
    }
}
