//! The state of a turn in progress: the turn, its calls in flight, its round, and the messages that may have triggered it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::wait_time::WaitTime;
use crate::actors::runtime::context::ActorContext;
use crate::domain::event::{Decided, Event, Recorded};
use crate::domain::id::{Seq, TurnId};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::telemetry::messages::{Append, Playback, Utterance};
use crate::telemetry::trace::TurnTrace;

/// How many messages that have not triggered a turn are remembered.
const MAX_REMEMBERED: usize = 64;
/// The spare capacity that remains when memory is released.
const SPARE_CAPACITY: usize = 4;

/// The data of a turn that its spans show.
#[derive(Clone)]
pub(in crate::actors::channel) struct Turn {
    pub(super) id: TurnId,
    pub(super) trace: TurnTrace,
    /// The strongest of its triggers.
    pub(super) trigger: Trigger,
    pub(super) message: Seq,
    /// When the first triggering message arrived. If another turn's trace shows that message: when the turn was triggered.
    pub(super) began: Moment,
    /// When it was triggered. For a lull: when the lull ended.
    pub(super) triggered: Moment,
    /// The wait time since `triggered`. Clones of the turn share it.
    pub(super) wait_time: Arc<WaitTime>,
    pub(super) follows: Option<TurnTrace>,
}

/// A question or a reply in flight.
#[derive(Clone)]
pub(in crate::actors::channel) struct PendingCall {
    pub(super) turn: Turn,
    pub(super) trigger: Trigger,
    pub(super) since: Moment,
    /// For a reply: when its text arrived.
    pub(super) written: Option<Moment>,
    /// For a spoken reply: when its playback ended.
    pub(super) spoken: Option<Moment>,
    /// For a reply on a platform: when the platform posted it.
    pub(super) sent: Option<Moment>,
    /// Whether a model was called for this question or reply.
    pub(super) is_called: bool,
    pub(super) counts: (u64, u64, Option<u64>),
    /// For a reply that has begun to play aloud.
    pub(super) playback: Option<Box<Playback>>,
}

/// A turn in progress.
pub(super) struct OpenTurn {
    pub(super) turn: Turn,
    pub(super) round: Option<Round>,
    /// The decisions to speak whose companions have neither won nor lost the floor. They are emitted once that is known.
    pub(super) votes: Vec<Vote>,
    /// The outcome of the turn if it ends now.
    pub(super) outcome: &'static str,
    pub(super) error: Option<Arc<str>>,
}

/// A decision to speak in a round, with its call, and when it was made.
pub(super) type Vote = (Decided, PendingCall, Moment);

pub(super) struct Round {
    pub(super) since: Moment,
    pub(super) answers: u32,
    pub(super) errors: Vec<Arc<str>>,
}

/// The hand-over of these messages. None: they were not spoken in a call.
pub(super) fn utterance<'a>(batch: impl IntoIterator<Item = &'a Recorded>) -> Option<Utterance> {
    let speech = batch.into_iter().filter_map(|recorded| match &recorded.event {
        Event::Said { message, .. } => message.speech.as_deref(),
        _ => None,
    });
    speech.fold(None, |before: Option<Utterance>, speech| {
        let before = before.unwrap_or(Utterance { started: speech.started, cause: speech.handed_over, segments: 0, messages: 0 });
        Some(Utterance {
            started: before.started.min(speech.started),
            segments: before.segments + speech.segments.len(),
            messages: before.messages + 1,
            ..before
        })
    })
}

/// The newest messages that have not triggered a turn, oldest first.
#[derive(Default)]
pub(super) struct Appends(VecDeque<Append>);

impl Turn {
    /// A turn that starts now. Without an id it gets a new one, which no event contains.
    pub(super) fn new(id: Option<TurnId>, now: Moment, context: &ActorContext) -> Self {
        let id = id.unwrap_or_else(|| TurnId(context.rng.id()));
        let (trace, wait_time) = (TurnTrace::of_turn(id), Arc::default());
        Self { id, trace, trigger: Trigger::Lull, message: Seq::NONE, began: now, triggered: now, wait_time, follows: None }
    }

    /// The start of the time that people wait for the outcome. After a lull or a silence it is the end of the lull or silence, otherwise the arrival
    /// of the message.
    pub(super) fn awaited_since(&self) -> Moment {
        if matches!(self.trigger, Trigger::Lull | Trigger::Silence) { self.triggered } else { self.began }
    }

    /// The time since the trigger that the server itself used, without wait time.
    pub(super) fn overhead(&self, now: Moment) -> Duration {
        self.wait_time.without_wait_time(now.since(self.triggered))
    }

    /// Records that this message triggered the turn.
    pub(super) fn triggered_by(&mut self, append: Option<Append>) {
        self.began = append.map_or(self.began, |append| append.taken.min(self.began));
    }
}

impl PendingCall {
    pub(super) fn new(turn: Turn, trigger: Trigger, since: Moment) -> Self {
        Self {
            turn,
            trigger,
            since,
            written: None,
            spoken: None,
            sent: None,
            is_called: false,
            counts: (0, 0, None),
            playback: None,
        }
    }

    /// Counts the time since the text was complete as wait time for synthesis and listeners.
    pub(super) fn end_waiting_for_listeners(&self, now: Moment) {
        if let Some(written) = self.written {
            self.turn.wait_time.waited(written, now);
        }
    }

    /// Updates how much of a sentence was played. The newest update counts.
    pub(super) fn plays(&mut self, sentence: u32, played: (u64, bool), now: Moment) {
        let playback = || Box::new(Playback { began: now, until: now, sentences: BTreeMap::new() });
        let playback = self.playback.get_or_insert_with(playback);
        playback.until = now;
        playback.sentences.insert(sentence, played);
    }
}

impl OpenTurn {
    pub(super) fn new(turn: Turn) -> Self {
        Self { turn, round: None, votes: Vec::new(), outcome: "cancelled", error: None }
    }

    /// Records that a question was asked or a reply is owed. Without a result the turn is cancelled.
    pub(super) fn start_call(&mut self) {
        (self.outcome, self.error) = ("cancelled", None);
    }

    /// Sets the outcome of the turn, unless the conversation continues it.
    pub(super) fn end_with(&mut self, outcome: &'static str, error: Option<Arc<str>>) {
        (self.outcome, self.error) = (outcome, error);
    }
}

impl Round {
    pub(super) fn new(since: Moment) -> Self {
        Self { since, answers: 0, errors: Vec::new() }
    }
}

impl Appends {
    pub(super) fn remember(&mut self, append: Append) {
        if self.0.len() == MAX_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(append);
    }

    /// Drops the messages below this number, which can no longer trigger a turn.
    pub(super) fn drop_below(&mut self, below: Seq) {
        while self.0.front().is_some_and(|append| append.seq < below) {
            self.0.pop_front();
        }
        if self.0.capacity() > 2 * (self.0.len() + SPARE_CAPACITY) {
            self.0.shrink_to(self.0.len() + SPARE_CAPACITY);
        }
    }

    /// Removes and returns the message with this number, which triggered a turn. It is recorded only once.
    pub(super) fn remove(&mut self, seq: Seq) -> Option<Append> {
        let at = self.0.iter().position(|append| append.seq == seq)?;
        self.0.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_can_no_longer_trigger_a_turn_is_dropped() {
        let mut appends = Appends::default();
        for seq in 1..=60 {
            let (taken, committed) = (Moment::ZERO, Moment::ZERO);
            appends.remember(Append { seq: Seq(seq), taken, committed, utterance: None });
        }

        appends.drop_below(Seq(58));

        assert!(appends.remove(Seq(57)).is_none());
        assert!(appends.remove(Seq(58)).is_some());
        assert!(appends.0.capacity() <= 2 * SPARE_CAPACITY, "room for {}", appends.0.capacity());
    }
}
