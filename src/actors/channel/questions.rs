//! What becomes of questions: with the pool, lost and handed over again, overdue, answered, or wanted no more.

use super::post_commit::PostCommitAction;
use super::{ASK_AGAIN_AT_MOST, State};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::CompanionMessage;
use crate::actors::messages::models::Outcome;
use crate::actors::models::asked_again_after;
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::domain::conversation::Input;
use crate::domain::id::Ticket;
use crate::domain::vote::{self, Vote};
use crate::ports::language_model::Request;

impl State {
    /// The companion died with the question in its hands, or is not there yet.
    pub(super) fn question_lost(&mut self, ticket: Ticket) {
        if !self.is_waited_for(ticket) {
            return;
        }
        let tries = self.tries.entry(ticket).or_default();
        *tries += 1;
        if *tries < ASK_AGAIN_AT_MOST {
            self.myself.send_after(asked_again_after(*tries), move || ChannelMessage::AskAgain { ticket });
        } else {
            self.give_up(ticket, "unreachable");
        }
    }

    /// Something in what it is about panics. It is asked again like one that got no answer, later and later, until it is too old.
    pub(super) fn question_unasked(&mut self, ticket: Ticket) {
        if self.is_open(ticket) {
            self.give_up(ticket, "unreachable");
        }
    }

    pub(super) fn ask_again(&mut self, ticket: Ticket) {
        self.run(PostCommitAction::Ask { ticket });
        self.run(PostCommitAction::Judge { ticket });
    }

    /// The answer may be lost, or may still come: only one is waited for.
    pub(super) fn ask_anew(&mut self, ticket: Ticket) {
        if !self.asked.contains_key(&ticket) {
            return;
        }
        self.call_off(ticket);
        *self.tries.entry(ticket).or_default() += 1;
        self.run(PostCommitAction::Ask { ticket });
    }

    pub(super) fn question_overdue(&mut self, ticket: Ticket) {
        if self.is_waited_for(ticket) {
            self.give_up(ticket, "timeout");
        }
    }

    /// Whether this question, or this judgement, is still to be answered.
    pub(super) fn is_waited_for(&self, ticket: Ticket) -> bool {
        self.is_open(ticket) || self.is_to_be_judged(ticket)
    }

    /// Whoever has this question, or this judgement, needs not answer any more.
    fn call_off(&mut self, ticket: Ticket) {
        if let Some(call) = self.calls.remove(&ticket) {
            self.context.pool.cancel(call);
        }
        let Some(companion) = self.asked.remove(&ticket) else { return };
        if let Some(actor) = self.context.directory.find(&CompanionKey(self.channel_key.guild.clone(), companion)) {
            // One that is gone has cancelled it.
            let _ = actor.cast(CompanionMessage::Cancel { channel: self.channel_key.channel.clone(), ticket });
        }
    }

    fn give_up(&mut self, ticket: Ticket, error: &str) {
        self.tries.remove(&ticket);
        self.call_off(ticket);
        if self.is_to_be_judged(ticket) {
            self.traces.misjudged(error);
            self.step(Input::Judged { ticket, score: 0.0, call: None });
        } else {
            self.step(Input::Unanswered { ticket, error: error.into() });
        }
    }

    /// `vote` is what the answer says, where it was read already.
    pub(super) fn answered(&mut self, ticket: Ticket, asked: &Request, outcome: Outcome, vote: Option<Box<Vote>>) {
        if outcome.is_lost() && self.is_open(ticket) {
            // The pool went away with it, which is no failure of the model to back off from.
            self.question_lost(ticket);
            return;
        }
        if self.tries.remove(&ticket).is_some_and(|tries| tries > 0) {
            // The first answer counts.
            self.call_off(ticket);
        }
        self.asked.remove(&ticket);
        if !self.is_open(ticket) {
            self.record_unclaimed_usage(asked, &outcome);
            return;
        }
        self.spend(asked, &outcome);
        self.traces.called(ticket, asked, &outcome, &self.channel_key, &self.context);
        match &outcome.result {
            Ok(given) => {
                let call = self.traces.call(ticket, asked, &given.text(), &outcome.facts);
                let vote = vote.map_or_else(|| vote::read(&given.text(), self.context.settings.prompt.verdict_words()), |vote| *vote);
                self.step(Input::Answered { ticket, vote, call: Some(Box::new(call)) });
            }
            Err(error) => self.step(Input::Unanswered { ticket, error: error.code().into() }),
        }
    }

    /// Whether somebody still waits for the answer to this question.
    pub(super) fn is_open(&self, ticket: Ticket) -> bool {
        self.conversation.open_questions().any(|(_, evaluation)| evaluation.ticket == ticket)
    }

    pub(super) fn cancel(&mut self, ticket: Ticket) {
        self.tries.remove(&ticket);
        self.call_off(ticket);
        self.replies.retain(|_, (reply, actor)| {
            let is_cancelled = *reply == ticket;
            if is_cancelled {
                actor.kill();
            }
            !is_cancelled
        });
        self.stop_delivery(ticket);
    }
}
