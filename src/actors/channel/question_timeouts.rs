//! How long a channel waits for what it asked. Its alarm rings for that too: nearly all of it is answered long before.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::State;
use super::post_commit::GRACE;
use crate::domain::id::Ticket;

/// What is waited for, the oldest first, and until when.
#[derive(Default)]
pub(super) struct QuestionTimeouts(VecDeque<(Instant, Ticket)>);

impl QuestionTimeouts {
    /// When the oldest is given up, if it is not answered until then.
    pub(super) fn until(&self) -> Option<Instant> {
        self.0.front().map(|(until, _)| *until)
    }
}

impl State {
    /// Waits for this question from now on: for a little longer than the pool does.
    pub(super) fn wait_for(&mut self, ticket: Ticket) {
        let span = self.context.settings.models.side.timeout() + GRACE;
        let mut waits = std::mem::take(&mut self.question_timeouts.0);
        if waits.len() == waits.capacity() {
            // Most were answered long ago.
            waits.retain(|(_, ticket)| self.is_waited_for(*ticket));
        }
        waits.push_back((Instant::now() + span, ticket));
        self.question_timeouts.0 = waits;
        self.arm();
    }

    /// What was waited for too long is given up.
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
