//! The usage of a channel's calls to models. It is recorded with the event that results from the call, or alone if there is none.

use std::collections::HashMap;
use std::sync::Arc;

use super::channel_context::ChannelContext;
use super::guild_budgets::GuildBudgets;
use crate::actors::messages::models::Outcome;
use crate::domain::budget::UsedUp;
use crate::domain::conversation::Conversation;
use crate::domain::event::{Decided, Event, Made};
use crate::domain::id::{CompanionId, ModelName, Ticket};
use crate::domain::model_role::ModelRole;
use crate::domain::price::UnitPrice;
use crate::domain::service::Service;
use crate::domain::tools::CallOutcome;
use crate::domain::trigger::Trigger;
use crate::journal::record::Used;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::language_model::Request;
use crate::telemetry::model_calls;
use crate::telemetry::plain::Plain;

pub(super) struct Spending {
    budgets: Arc<GuildBudgets>,
    /// Usage that is not recorded yet. The next batch records it.
    unrecorded: Vec<Used>,
    /// The usage of replies that are written and not posted. It is recorded together with the statement.
    of_replies: HashMap<Ticket, Vec<Used>>,
}

impl Spending {
    pub(super) fn new(budgets: Arc<GuildBudgets>) -> Self {
        Self { budgets, unrecorded: Vec::new(), of_replies: HashMap::new() }
    }

    /// Adds the usage of a question: all its calls, and the known tokens. The next batch records it.
    pub(super) fn note_question(&mut self, asked: &Request, outcome: &Outcome, channel: &ChannelContext) {
        let companion = asked.companion.as_ref().map(|companion| companion.id.clone());
        self.unrecorded.extend(used(companion, asked.role, &asked.model, outcome, channel));
    }

    /// Adds the usage of a summary.
    pub(super) fn note_summary(&mut self, outcome: &Outcome, channel: &ChannelContext) {
        self.unrecorded.extend(used(None, ModelRole::Side, &ModelRole::Side.into(), outcome, channel));
    }

    /// Adds the usage of a written reply.
    pub(super) fn note_reply(
        &mut self,
        ticket: Ticket,
        companion: CompanionId,
        asked: &Request,
        outcome: &Outcome,
        channel: &ChannelContext,
    ) {
        if let Some(used) = used(Some(companion), asked.role, &asked.model, outcome, channel) {
            self.of_replies.entry(ticket).or_default().push(used);
        }
    }

    /// Takes the usage of a reply, to be recorded together with the statement.
    pub(super) fn take_of_reply(&mut self, ticket: Ticket) -> Vec<Used> {
        self.of_replies.remove(&ticket).unwrap_or_default()
    }

    /// Moves the usage of replies that will not be posted to the next batch.
    pub(super) fn release_unposted(&mut self, is_in_flight: impl Fn(Ticket) -> bool) {
        let unposted = self.of_replies.extract_if(|ticket, _| !is_in_flight(*ticket));
        self.unrecorded.extend(unposted.flat_map(|(_, used)| used));
    }

    /// Whether there is usage that no batch has recorded.
    pub(super) fn has_unrecorded(&self) -> bool {
        !self.unrecorded.is_empty()
    }

    /// Takes the usage that a batch with these events records: the usage of the events, and the usage that no batch has recorded.
    /// `price_of` is what a call of a tool costs.
    pub(super) fn take_for(
        &mut self,
        made: &[Made],
        conversation: &Conversation,
        price_of: impl Fn(&str) -> Option<UnitPrice>,
    ) -> Vec<Used> {
        made.iter().filter_map(|made| used_by(&made.event, conversation, &price_of)).chain(self.unrecorded.drain(..)).collect()
    }

    /// Counts the tokens of an answer that the conversation does not receive. The conversation counts the tokens of its own answers.
    pub(super) fn count_tokens(&self, outcome: &Outcome, channel: &ChannelContext) {
        let tokens = outcome.facts.usage.total();
        if tokens > 0 {
            let per_day = channel.context.in_force().models.guild_tokens_per_day;
            self.budgets.ledger().count_tokens(tokens, channel.machine_time(), per_day);
        }
    }

    /// Logs that a budget of the guild is used up. It is logged once, however many companions it silences, until the budget was sufficient for a
    /// while.
    pub(super) fn log_used_up(&self, event: &Event, channel: &ChannelContext) {
        let Event::Decided(Decided { used_up: Some(used_up), .. }) = event else { return };
        let UsedUp { budget, free_at } = *used_up;
        if !budget.is_of_guild() || !self.budgets.must_log(budget, channel.machine_time()) {
            return;
        }
        let free_at = free_at.map_or_else(|| "never".to_owned(), rfc3339);
        let (guild, budget) = (Plain(channel.key.guild.as_str()), budget.as_str());
        tracing::warn!(%guild, budget, free_at, "a guild has used up its budget: its companions stay silent until it is free again");
    }
}

/// The usage record of a question, a summary or a reply. Also records the cost metric. `None` if the question never left the queue.
fn used(
    companion: Option<CompanionId>,
    role: ModelRole,
    model: &ModelName,
    outcome: &Outcome,
    channel: &ChannelContext,
) -> Option<Used> {
    let facts = &outcome.facts;
    if facts.attempts == 0 {
        return None;
    }
    let price = match facts.service {
        Service::LanguageModel => channel.context.pool.settings().price(role, model),
        // Speech is priced by its duration or length, in `calls/services.rs`.
        Service::SpeechRecognition | Service::SpeechSynthesis => None,
    };
    if let Some(price) = &price {
        model_calls::record_cost(&channel.context.recorder, &facts.identity, role, &facts.usage, price);
    }
    Some(Used::Call {
        service: facts.service,
        companion,
        model: facts.identity.model.clone(),
        provider: facts.identity.provider.clone(),
        role: role.as_str().into(),
        usage: facts.usage,
        calls: facts.attempts,
        // If there were several attempts, only the last one returned the answer.
        failed_calls: facts.attempts - u32::from(outcome.result.is_ok()),
        price,
    })
}

/// The usage of an event. None if it is neither a question nor the end of a call of an outside tool.
fn used_by(event: &Event, conversation: &Conversation, price_of: impl Fn(&str) -> Option<UnitPrice>) -> Option<Used> {
    if let Event::ToolAnswered(answered) = event {
        let is_external = conversation.call(answered.call).is_some_and(|call| call.called.is_external);
        let (companion, tool) = (answered.companion.clone(), answered.tool.clone());
        let price = price_of(&tool);
        let is_made = is_external && answered.answer.outcome != CallOutcome::NotMade;
        return is_made.then_some(Used::ToolCall { companion, tool, price });
    }
    let Event::Evaluated(evaluated) = event else { return None };
    Some(match evaluated.trigger {
        Trigger::DirectAddress => {
            let author = conversation.window().get(evaluated.message);
            let person = author.map_or("", |entry| &*entry.message.from.id).into();
            Used::Address { person, message: evaluated.message }
        }
        _ => Used::Evaluation { companion: evaluated.companion.clone() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_a_reply_is_recorded_with_its_statement_or_once_it_is_dropped() {
        let mut spending = Spending::new(Arc::default());
        let used = |companion: &str| Used::Statement { companion: companion.into() };
        for (ticket, companion) in [(1, "aria"), (2, "ben"), (3, "cleo")] {
            spending.of_replies.insert(Ticket(ticket), vec![used(companion)]);
        }

        assert_eq!(spending.take_of_reply(Ticket(1)), [used("aria")]);
        spending.release_unposted(|ticket| ticket == Ticket(3));

        assert_eq!(spending.take_for(&[], &Conversation::default(), |_| None), [used("ben")]);
        assert!(!spending.has_unrecorded(), "it is recorded once");
        assert_eq!(spending.take_of_reply(Ticket(3)), [used("cleo")]);
    }
}
