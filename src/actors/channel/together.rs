//! Handles the answer of one call to several companions (docs/design/turn-taking.md T-23).

use super::State;
use super::post_commit::PostCommitAction;
use super::questions::{Arrival, Questions};
use crate::actors::messages::models::Outcome;
use crate::domain::answer::Verdict;
use crate::domain::conversation::Input;
use crate::domain::id::Ticket;
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::domain::vote;
use crate::domain::vote::together::Voter;
use crate::ports::language_model::Request;

impl State {
    /// Handles the answer of a call to several companions. Each companion gets its own part, as if it had been asked alone. A companion whose part is
    /// missing or unreadable is asked alone.
    pub(super) fn answered_together(&mut self, tickets: &[Ticket], asked: &Request, outcome: &Outcome) {
        let arrivals = tickets.iter().map(|ticket| (*ticket, Questions::arrival(*ticket, outcome, &self.conversation)));
        let (awaited, others): (Vec<_>, Vec<_>) = arrivals.partition(|(_, arrival)| *arrival == Arrival::Awaited);
        for (ticket, _) in others.into_iter().filter(|(_, arrival)| *arrival == Arrival::Lost) {
            self.lost(ticket);
        }
        if awaited.is_empty() {
            return self.record_unclaimed_usage(asked, outcome);
        }
        let awaited: Vec<Ticket> = awaited.into_iter().map(|(ticket, _)| ticket).collect();
        self.note_call(&awaited, asked, outcome);
        self.spending.count_tokens(outcome, &self.channel);
        let context = self.channel.context.clone();
        let words = context.settings.prompt.verdict_words();
        let parts = outcome.result.as_ref().map(|answer| vote::together::parts(&answer.text(), &voters(asked), words));
        for ticket in awaited {
            let companion = self.conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket);
            let Some((companion, _)) = companion else { continue };
            let part = parts.as_ref().map(|parts| parts.get(companion).map(|part| (part, vote::read(part, words))));
            let input = match part {
                Ok(Some((part, vote))) if vote.verdict != Verdict::Unreadable => {
                    let call = self.traces.call(ticket, asked, part, &outcome.facts);
                    Input::Answered { ticket, vote, call: Some(Box::new(call)) }
                }
                // The model may be able to answer the shorter question to one companion.
                Ok(_) => {
                    self.run(PostCommitAction::Ask { tickets: vec![ticket] });
                    continue;
                }
                Err(error) if error.is_about_prompt() => {
                    self.run(PostCommitAction::Ask { tickets: vec![ticket] });
                    continue;
                }
                Err(error) => Input::Unanswered { ticket, error: error.code().into() },
            };
            self.questions.end(ticket, &self.channel);
            self.step(input);
        }
        self.record_remaining_usage();
    }
}

/// The companions that a request asks together.
fn voters(asked: &Request) -> Vec<Voter> {
    match asked.extensions.get() {
        Some(QuestionContext { purpose: Purpose::Votes { of }, .. }) => of.iter().map(|(voter, _)| voter.clone()).collect(),
        _ => Vec::new(),
    }
}
