//! What is known of a turn, of a question or reply in flight, and of a round, until it is told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::wait_time::WaitTime;
use crate::actors::runtime::context::ActorContext;
use crate::domain::event::Decided;
use crate::domain::id::{Seq, TurnId};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::telemetry::trace::TurnTrace;

/// So many messages are remembered that have led to nothing so far.
const REMEMBERED: usize = 64;
/// Room for so many more stays when some are let go.
const ROOM_KEPT: usize = 4;

/// A turn, as far as it is told.
#[derive(Clone)]
pub(in crate::actors::channel) struct Turn {
    pub(super) id: TurnId,
    pub(super) trace: TurnTrace,
    /// The strongest of its triggers.
    pub(super) trigger: Trigger,
    pub(super) message: Seq,
    /// When the first of the messages that triggered it was heard; where that is told elsewhere, when it was triggered.
    pub(super) began: Moment,
    /// When it was triggered, the lull before it over.
    pub(super) triggered: Moment,
    /// What it waited for since. Clones of it count together.
    pub(super) wait_time: Arc<WaitTime>,
    pub(super) follows: Option<TurnTrace>,
}

/// A question or a reply in flight.
#[derive(Clone)]
pub(in crate::actors::channel) struct PendingCall {
    pub(super) turn: Turn,
    pub(super) trigger: Trigger,
    pub(super) since: Moment,
    /// Of a reply: when its words were there.
    pub(super) written: Option<Moment>,
    /// Of a reply: when its platform had them, where that is not the same as putting them on record.
    pub(super) sent: Option<Moment>,
    /// A model was asked for it.
    pub(super) is_called: bool,
    pub(super) counts: (u64, u64, Option<u64>),
}

/// A turn that goes on.
pub(super) struct OpenTurn {
    pub(super) turn: Turn,
    pub(super) round: Option<Round>,
    /// How it ends, if it ends now.
    pub(super) outcome: &'static str,
    pub(super) error: Option<Arc<str>>,
}

/// A round that is open.
pub(super) struct Round {
    pub(super) since: Moment,
    /// Those that want to speak, and when they said so: told when it is known who does.
    pub(super) wishes: Vec<(Decided, PendingCall, Moment)>,
    pub(super) answers: u32,
    pub(super) errors: Vec<Arc<str>>,
}

/// A message that was put on record.
#[derive(Clone, Copy)]
pub(in crate::actors::channel) struct Append {
    pub(super) seq: Seq,
    /// When the writer took it.
    pub(super) taken: Moment,
    /// When it was committed.
    pub(super) committed: Moment,
}

/// The newest messages that have led to nothing so far, oldest first.
#[derive(Default)]
pub(super) struct Appends(VecDeque<Append>);

impl Turn {
    /// One that begins now; without an id, one of which nothing else is on record.
    pub(super) fn new(id: Option<TurnId>, now: Moment, context: &ActorContext) -> Self {
        let id = id.unwrap_or_else(|| TurnId(context.rng.id()));
        let (trace, wait_time) = (TurnTrace::of_turn(id), Arc::default());
        Self { id, trace, trigger: Trigger::Lull, message: Seq::NONE, began: now, triggered: now, wait_time, follows: None }
    }

    /// As it is shown.
    pub(super) fn shown_id(&self, channel_key: &ChannelKey) -> String {
        format!("{}#{}", channel_key.channel, self.message)
    }

    /// When whoever waits for an answer began to: a lull is waited for, everything else comes with its message.
    pub(super) fn awaited_since(&self) -> Moment {
        if self.trigger == Trigger::Lull { self.triggered } else { self.began }
    }

    /// What the server itself added until now, since it was triggered.
    pub(super) fn overhead(&self, now: Moment) -> Duration {
        self.wait_time.left_of(now.since(self.triggered))
    }

    /// It was triggered by this message.
    pub(super) fn led_to_by(&mut self, append: Option<Append>) {
        self.began = append.map_or(self.began, |append| append.taken.min(self.began));
    }
}

impl PendingCall {
    pub(super) fn new(turn: Turn, trigger: Trigger, since: Moment) -> Self {
        Self { turn, trigger, since, written: None, sent: None, is_called: false, counts: (0, 0, None) }
    }
}

impl OpenTurn {
    pub(super) fn new(turn: Turn) -> Self {
        Self { turn, round: None, outcome: "cancelled", error: None }
    }

    /// Something was asked or is owed: unless that comes to an end, it was cancelled.
    pub(super) fn goes_on(&mut self) {
        (self.outcome, self.error) = ("cancelled", None);
    }

    /// It is over, unless the conversation goes on with it.
    pub(super) fn ends(&mut self, outcome: &'static str, error: Option<Arc<str>>) {
        (self.outcome, self.error) = (outcome, error);
    }
}

impl Round {
    pub(super) fn new(since: Moment) -> Self {
        Self { since, wishes: Vec::new(), answers: 0, errors: Vec::new() }
    }
}

impl Appends {
    pub(super) fn remember(&mut self, append: Append) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(append);
    }

    /// Whatever stands below this number leads to nothing.
    pub(super) fn let_go(&mut self, below: Seq) {
        while self.0.front().is_some_and(|append| append.seq < below) {
            self.0.pop_front();
        }
        if self.0.capacity() > 2 * (self.0.len() + ROOM_KEPT) {
            self.0.shrink_to(self.0.len() + ROOM_KEPT);
        }
    }

    /// The message of this number, which led to something: that is told once.
    pub(super) fn take(&mut self, seq: Seq) -> Option<Append> {
        let at = self.0.iter().position(|append| append.seq == seq)?;
        self.0.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_can_lead_to_nothing_any_more_is_let_go() {
        let mut appends = Appends::default();
        for seq in 1..=60 {
            appends.remember(Append { seq: Seq(seq), taken: Moment::ZERO, committed: Moment::ZERO });
        }

        appends.let_go(Seq(58));

        assert!(appends.take(Seq(57)).is_none());
        assert!(appends.take(Seq(58)).is_some());
        assert!(appends.0.capacity() <= 2 * ROOM_KEPT, "room for {}", appends.0.capacity());
    }
}
