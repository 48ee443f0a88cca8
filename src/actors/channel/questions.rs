//! The questions and judgements in flight: their calls and timeouts.

mod asking;
mod judging;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::channel_context::ChannelContext;
use crate::actors::messages::models::{CallId, Outcome};
use crate::domain::conversation::Conversation;
use crate::domain::id::Ticket;
use crate::domain::policy::turn_taking::Voting;
use crate::ports::language_model::{Answer, ModelRole, NoAnswer};

/// How much longer than the pool's own deadline a channel waits for an answer.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// The call for a question. Empty until the pool has accepted the question.
type Call = Arc<OnceLock<CallId>>;

#[derive(Default)]
pub(super) struct Questions {
    asked: BTreeMap<Ticket, Asked>,
}

struct Asked {
    /// When the pool gives up the question.
    deadline: Instant,
    /// There are several calls if the channel considered the question lost, if an answer was unreadable, or if an answer for several companions
    /// lacked its part. The first readable answer counts.
    calls: Vec<Call>,
    /// The first answer, if it was unreadable. Then the question is asked once more.
    unreadable: Option<Box<Answer>>,
}

/// What an answer means for the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The question waits for this answer.
    Awaited,
    /// The pool was restarted before it called the model, or the channel did not run when the prompt was to be built. This is not a failure of the
    /// model, so the question is asked again without a back-off.
    Lost,
    /// The answer is no longer needed. Its usage still counts.
    Unclaimed,
}

impl Questions {
    /// Asks those of these questions or judgements that are still open. If the settings enable it, questions that can share a call and were not asked
    /// before are asked together. Returns whether a timeout starts now.
    pub(super) fn ask(&mut self, tickets: &[Ticket], conversation: &Conversation, channel: &ChannelContext) -> bool {
        let deadline = channel.context.pool.deadline(ModelRole::Side);
        let groups = match channel.context.settings.turn_taking.voting {
            Voting::Each => Vec::new(),
            Voting::Together => {
                let new: Vec<Ticket> = tickets.iter().copied().filter(|ticket| !self.asked.contains_key(ticket)).collect();
                asking::groups(&new, conversation, channel)
            }
        };
        for group in &groups {
            if let Some(call) = asking::ask(group, deadline, false, conversation, channel) {
                let asked = |ticket: &Ticket| (*ticket, Asked { deadline, calls: vec![call.clone()], unreadable: None });
                self.asked.extend(group.iter().map(asked));
            }
        }
        let alone = tickets.iter().filter(|ticket| !groups.iter().flatten().any(|grouped| grouped == *ticket));
        let is_new = alone.map(|ticket| self.ask_alone(*ticket, deadline, conversation, channel));
        is_new.fold(!groups.is_empty(), |any, is_new| any | is_new)
    }

    fn ask_alone(&mut self, ticket: Ticket, deadline: Instant, conversation: &Conversation, channel: &ChannelContext) -> bool {
        let asked = self.asked.get(&ticket);
        let deadline = asked.map_or(deadline, |asked| asked.deadline);
        let (is_new, is_repeat) = (asked.is_none(), asked.is_some_and(|asked| asked.unreadable.is_some()));
        // With `answer_or_pass`, the timeout is that of a statement. A repeated question is asked in the usual way.
        let or_pass = if is_new { asking::ask_or_pass(ticket, conversation, channel) } else { None };
        let deadline = if or_pass.is_some() { channel.context.pool.deadline(ModelRole::Main) } else { deadline };
        let call = or_pass
            .or_else(|| asking::ask(&[ticket], deadline, is_repeat, conversation, channel))
            .or_else(|| judging::ask(ticket, deadline, conversation, channel));
        let Some(call) = call else { return false };
        let new = || Asked { deadline, calls: Vec::new(), unreadable: None };
        self.asked.entry(ticket).or_insert_with(new).calls.push(call);
        is_new
    }

    /// The questions and judgements that were asked and not answered.
    pub(super) fn open(&self) -> Vec<Ticket> {
        self.asked.keys().copied().collect()
    }

    /// Cancels a question or judgement whose answer is no longer needed. A call that other questions share continues.
    pub(super) fn cancel(&mut self, ticket: Ticket, channel: &ChannelContext) {
        let Some(Asked { mut calls, .. }) = self.asked.remove(&ticket) else { return };
        let others = || self.asked.values().flat_map(|asked| &asked.calls);
        calls.retain(|call| !others().any(|other| Arc::ptr_eq(call, other)));
        calls.iter().filter_map(|call| call.get().copied()).for_each(|call| channel.context.pool.cancel(call));
    }

    /// The meaning of an answer to a question or judgement, or of the error.
    pub(super) fn arrival(ticket: Ticket, outcome: &Outcome, conversation: &Conversation) -> Arrival {
        // Only this channel cancels, and then it does not need the answer.
        if matches!(outcome.result, Err(NoAnswer::Cancelled)) || !is_awaited(ticket, conversation) {
            Arrival::Unclaimed
        } else if outcome.is_lost() {
            Arrival::Lost
        } else {
            Arrival::Awaited
        }
    }

    /// Stores an unreadable answer to this question. Returns whether to ask the question once more.
    pub(super) fn repeats(&mut self, ticket: Ticket, answer: &Answer) -> bool {
        let asked = self.asked.get_mut(&ticket).filter(|asked| asked.unreadable.is_none());
        asked.map(|asked| asked.unreadable = Some(Box::new(answer.clone()))).is_some()
    }

    /// The unreadable first answer to a question that was asked once more. It is used if the repetition failed.
    pub(super) fn first_answer(&self, ticket: Ticket) -> Option<Answer> {
        self.asked.get(&ticket)?.unreadable.as_deref().cloned()
    }

    /// Ends a question whose answer counts. If there are other calls for the question, they are cancelled.
    pub(super) fn end(&mut self, ticket: Ticket, channel: &ChannelContext) {
        if self.asked.get(&ticket).is_some_and(|asked| asked.calls.len() > 1) {
            self.cancel(ticket, channel);
        }
        self.asked.remove(&ticket);
    }

    /// When the next question times out.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.asked.values().map(|asked| asked.deadline + GRACE).min()
    }

    /// A question that has timed out. None if there is none.
    pub(super) fn overdue(&self, now: Instant) -> Option<Ticket> {
        self.asked.iter().find(|(_, asked)| asked.deadline + GRACE <= now).map(|(ticket, _)| *ticket)
    }
}

/// Whether the conversation still waits for the answer to this question.
pub(super) fn is_open(ticket: Ticket, conversation: &Conversation) -> bool {
    conversation.open_questions().any(|(_, evaluation)| evaluation.ticket == ticket)
}

pub(super) fn is_judgement_open(ticket: Ticket, conversation: &Conversation) -> bool {
    conversation.turns().open_judgement().is_some_and(|(open, _)| open == ticket)
}

/// Whether this question or judgement is still open.
pub(super) fn is_awaited(ticket: Ticket, conversation: &Conversation) -> bool {
    is_open(ticket, conversation) || is_judgement_open(ticket, conversation)
}
