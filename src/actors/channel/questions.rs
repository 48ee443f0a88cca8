//! The life of a question after it was asked: it is lost and asked again, overdue, or answered.

use super::post_commit::PostCommitAction;
use super::{MAX_ASK_ATTEMPTS, State};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::models::Outcome;
use crate::actors::models::pause_before_asking_again;
use crate::domain::conversation::Input;
use crate::domain::id::Ticket;
use crate::domain::vote::{self, Vote};
use crate::ports::language_model::Request;

impl State {
    /// The companion died with the question, or has not started yet. The question is asked again, up to the limit.
    pub(super) fn question_lost(&mut self, ticket: Ticket) {
        if !self.is_waited_for(ticket) {
            return;
        }
        let attempts = self.attempts.entry(ticket).or_default();
        *attempts += 1;
        if *attempts < MAX_ASK_ATTEMPTS {
            self.myself.send_after(pause_before_asking_again(*attempts), move || ChannelMessage::AskAgain { ticket });
        } else {
            self.give_up(ticket, "unreachable");
        }
    }

    /// Asking the question panicked. It counts as unanswered, so it is asked again after growing back-offs until its messages are too old.
    pub(super) fn question_unasked(&mut self, ticket: Ticket) {
        if self.is_open(ticket) {
            self.give_up(ticket, "unreachable");
        }
    }

    pub(super) fn ask_again(&mut self, ticket: Ticket) {
        self.run(PostCommitAction::Ask { ticket });
        self.run(PostCommitAction::Judge { ticket });
    }

    /// Cancels a question whose answer may be lost, and asks it again. The first answer counts.
    pub(super) fn cancel_and_ask_again(&mut self, ticket: Ticket) {
        if !self.asked_companions.contains_key(&ticket) {
            return;
        }
        self.cancel_question(ticket);
        *self.attempts.entry(ticket).or_default() += 1;
        self.run(PostCommitAction::Ask { ticket });
    }

    pub(super) fn question_overdue(&mut self, ticket: Ticket) {
        if self.is_waited_for(ticket) {
            self.give_up(ticket, "timeout");
        }
    }

    /// Whether this question or judgement is still open.
    pub(super) fn is_waited_for(&self, ticket: Ticket) -> bool {
        self.is_open(ticket) || self.is_judgement_open(ticket)
    }

    fn give_up(&mut self, ticket: Ticket, error: &str) {
        self.attempts.remove(&ticket);
        self.cancel_question(ticket);
        if self.is_judgement_open(ticket) {
            self.traces.record_judgement_error(error);
            self.step(Input::Judged { ticket, score: 0.0, call: None });
        } else {
            self.step(Input::Unanswered { ticket, error: error.into() });
        }
    }

    /// `vote` is the parsed answer, if the turn-taking manager has parsed it.
    pub(super) fn answered(&mut self, ticket: Ticket, asked: &Request, outcome: Outcome, vote: Option<Box<Vote>>) {
        if outcome.is_lost() && self.is_open(ticket) {
            // The pool was restarted. That is no failure of the model, so there is no back-off.
            self.question_lost(ticket);
            return;
        }
        if self.attempts.remove(&ticket).is_some_and(|attempts| attempts > 0) {
            // The first answer counts.
            self.cancel_question(ticket);
        }
        self.asked_companions.remove(&ticket);
        if !self.is_open(ticket) {
            self.record_unclaimed_usage(asked, &outcome);
            return;
        }
        self.note_usage(asked, &outcome);
        self.traces.called(ticket, asked, &outcome, &self.channel_key, &self.context);
        match &outcome.result {
            Ok(given) => {
                let call = self.traces.call(ticket, asked, &given.text(), &outcome.facts);
                let vote =
                    vote.map_or_else(|| vote::read(&given.text(), self.context.settings.prompt.verdict_words()), |vote| *vote);
                self.step(Input::Answered { ticket, vote, call: Some(Box::new(call)) });
            }
            Err(error) => self.step(Input::Unanswered { ticket, error: error.code().into() }),
        }
    }

    /// The first answer could not be read. Its call belongs to the question, but only the second answer decides.
    pub(super) fn question_repeated(&mut self, ticket: Ticket, asked: &Request, outcome: &Outcome) {
        if !self.is_open(ticket) {
            self.record_unclaimed_usage(asked, outcome);
            return;
        }
        self.traces.called(ticket, asked, outcome, &self.channel_key, &self.context);
        self.note_usage(asked, outcome);
        self.count_tokens(outcome);
        self.record_remaining_usage();
    }

    /// Whether the conversation still waits for the answer to this question.
    pub(super) fn is_open(&self, ticket: Ticket) -> bool {
        self.conversation.open_questions().any(|(_, evaluation)| evaluation.ticket == ticket)
    }
}
