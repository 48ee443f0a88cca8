//! What a channel's questions to models cost. It goes on record with what came of them; or by itself, where nothing did.

use std::sync::PoisonError;
use std::time::Duration;

use super::traces::tell_late_call;
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

/// A budget for which nobody had to be silent for so long was enough: when it is used up again, that is news.
const ENOUGH_FOR: Duration = Duration::from_secs(3_600);

impl State {
    /// Notes what a question took: every call that was made for it, and the tokens that are known. It goes on record with the next batch.
    pub(super) fn spend(&mut self, asked: &Request, outcome: &Outcome) {
        let companion = asked.companion.as_ref().map(|companion| companion.id.clone());
        self.spent.extend(self.used(companion, asked.role, &asked.model, outcome));
    }

    /// What a question took that led to nothing: nobody waits for its answer any more.
    pub(super) fn record_unclaimed_usage(&mut self, asked: &Request, outcome: &Outcome) {
        tell_late_call(asked, outcome, &self.channel_key, &self.context);
        self.spend(asked, outcome);
        self.count_tokens(outcome);
        self.record_spent();
    }

    /// What a question comes to on record, and in what is measured; nothing, if it never left the queue.
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
            Service::LanguageModel => self.context.settings.models.price(role, model),
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
            // Of several tries only the last one gave the answer.
            failed_calls: facts.attempts - u32::from(outcome.result.is_ok()),
            price,
        })
    }

    /// Tells the operator that a budget of the guild is used up: once, however many stay silent for it, until it has been enough for a while.
    pub(super) fn tell_used_up(&self, event: &Event) {
        let Event::Decided(Decided { used_up: Some(used_up), .. }) = event else { return };
        let UsedUp { budget, free_at } = *used_up;
        if !budget.is_of_guild() {
            return;
        }
        if !self.budgets.is_news(budget, self.context.clock.now()) {
            return;
        }
        let free_at = free_at.map_or_else(|| "never".to_owned(), rfc3339);
        let (guild, budget) = (Plain(self.channel_key.guild.as_str()), budget.as_str());
        tracing::warn!(%guild, budget, free_at, "a guild has used up its budget: its companions stay silent until it is free again");
    }

    /// Counts the tokens of an answer that does not go through the conversation, which counts those of its own.
    pub(super) fn count_tokens(&self, outcome: &Outcome) {
        let tokens = outcome.facts.usage.total();
        if tokens > 0 {
            let mut ledger = self.budgets.ledger();
            ledger.count_tokens(tokens, self.context.clock.now(), self.context.settings.models.guild_tokens_per_day);
        }
    }
}

impl GuildBudgets {
    /// Somebody has to be silent for want of this budget: whether that is news, because it has been enough for a while.
    fn is_news(&self, budget: Budget, now: Moment) -> bool {
        let before = self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(budget, now);
        before.is_none_or(|before| now.since(before) >= ENOUGH_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_used_up_is_news_once_until_it_was_enough_for_a_while() {
        let budgets = GuildBudgets::default();
        let news = |budget, minute: u64| budgets.is_news(budget, Moment::from_micros(minute * 60_000_000));

        let told = [0, 1, 50, 100, 159, 219, 280].map(|minute| news(Budget::GuildTokens, minute));

        assert_eq!(told, [true, false, false, false, false, true, true]);
        assert!(news(Budget::GuildStatements, 281), "each by itself");
    }
}
