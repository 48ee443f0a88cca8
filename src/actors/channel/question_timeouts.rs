//! The timeouts of a channel's questions. They share the channel's one alarm, because nearly all questions are answered long before.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::State;
use super::post_commit::GRACE;
use crate::domain::id::Ticket;

/// The questions and judgements in flight with their timeouts, the oldest first.
#[derive(Default)]
pub(super) struct QuestionTimeouts(VecDeque<(Instant, Ticket)>);

impl QuestionTimeouts {
    /// When the oldest question is given up.
    pub(super) fn until(&self) -> Option<Instant> {
        self.0.front().map(|(until, _)| *until)
    }
}

impl State {
    /// Starts the timeout of this question. It is a little longer than the pool's own.
    pub(super) fn wait_for(&mut self, ticket: Ticket) {
        let span = self.context.settings.models.side.timeout() + GRACE;
        let mut entries = std::mem::take(&mut self.question_timeouts.0);
        if entries.len() == entries.capacity() {
            // Most of the questions were answered long ago.
            entries.retain(|(_, ticket)| self.is_waited_for(*ticket));
        }
        entries.push_back((Instant::now() + span, ticket));
        self.question_timeouts.0 = entries;
        self.arm();
    }

    /// Gives up the questions that are overdue.
    pub(super) fn give_up_overdue(&mut self) {
        let now = Instant::now();
        while let Some((_, ticket)) = self.question_timeouts.0.front().copied().filter(|(until, _)| *until <= now) {
            self.question_timeouts.0.pop_front();
            self.question_overdue(ticket);
        }
        while let Some((_, ticket)) = self.question_timeouts.0.front()
            && !self.is_waited_for(*ticket)
        {
            self.question_timeouts.0.pop_front();
        }
    }
}
