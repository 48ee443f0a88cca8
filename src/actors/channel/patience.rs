//! How long a channel waits for what it asked: with one timer, whatever it asks. Nearly all of it is answered long before.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::duties::GRACE;
use super::{ChannelMessage, State};
use crate::domain::id::Ticket;

/// What is waited for, the oldest first, and until when.
#[derive(Default)]
pub(super) struct Patience {
    waits: VecDeque<(Instant, Ticket)>,
    /// A timer runs, for the oldest or one before it.
    is_set: bool,
}

impl State {
    /// Waits for this question from now on: for a little longer than the pool does.
    pub(super) fn wait_for(&mut self, ticket: Ticket) {
        let span = self.kit.settings.models.side.timeout() + GRACE;
        let mut waits = std::mem::take(&mut self.patience.waits);
        if waits.len() == waits.capacity() {
            // Most were answered long ago.
            waits.retain(|(_, ticket)| self.is_waited_for(*ticket));
        }
        waits.push_back((Instant::now() + span, ticket));
        self.patience.waits = waits;
        self.watch_the_oldest();
    }

    /// The timer has rung: what was waited for too long is given up.
    pub(super) fn questions_overdue(&mut self) {
        self.patience.is_set = false;
        let now = Instant::now();
        while let Some((_, ticket)) = self.patience.waits.front().copied().filter(|(until, _)| *until <= now) {
            self.patience.waits.pop_front();
            self.question_overdue(ticket);
        }
        while let Some((_, ticket)) = self.patience.waits.front()
            && !self.is_waited_for(*ticket)
        {
            self.patience.waits.pop_front();
        }
        self.watch_the_oldest();
    }

    fn watch_the_oldest(&mut self) {
        if let Some((until, _)) = self.patience.waits.front().filter(|_| !self.patience.is_set) {
            self.myself.send_after(until.saturating_duration_since(Instant::now()), || ChannelMessage::QuestionsOverdue);
            self.patience.is_set = true;
        }
    }
}
