//! Whether and when one companion considers speaking in one channel: its counters, its timer and what waits.
//!
//! A gate changes only by what is on record (see `conversation`), so that a fold of the record gives it again.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::closing::Stage;
use super::id::{Seq, Ticket, TurnId};
use super::moment::Moment;
use super::trigger::Trigger;

/// The shortest interval between two interjection checks, in messages (docs/design/gate.md G-7).
const SHORTEST_INTERVAL: u64 = 3;
/// By how much each declined check shortens the next interval, in messages (docs/design/gate.md G-7).
const STEP_DOWN: u64 = 3;
/// By how much an interval may be longer or shorter, in messages, so that companions do not act in step (docs/design/gate.md G-7).
pub const MOST_JITTER: i8 = 2;
/// The shortest and the longest pause before a question without an answer is asked again.
const SHORTEST_BACK_OFF: Duration = Duration::from_secs(1);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(600);

/// How patient a companion is, as its settings say for one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterjectionPolicy {
    /// Messages until the first interjection check (3 to 15, docs/design/gate.md G-7).
    pub starting_interval: u64,
    /// Quiet on a text channel before a lull.
    pub text_lull_timeout: Duration,
    /// Quiet on a voice channel before a lull.
    pub voice_lull_timeout: Duration,
}

impl InterjectionPolicy {
    /// Messages from one interjection check to the next, after so many declined ones: `max(3, starting − 3·checks)`, plus the jitter, and 3 at
    /// the least again (docs/design/gate.md G-7).
    pub fn interval(&self, check_count: u64, jitter: i8) -> u64 {
        self.starting_interval
            .saturating_sub(STEP_DOWN.saturating_mul(check_count))
            .max(SHORTEST_INTERVAL)
            .saturating_add_signed(jitter.into())
            .max(SHORTEST_INTERVAL)
    }

    /// How long it is waited before a question without an answer is asked again, after the pause before.
    pub fn back_off(&self, last: Option<Duration>) -> Duration {
        match last {
            None => self.text_lull_timeout.max(SHORTEST_BACK_OFF),
            Some(last) => last.saturating_mul(2),
        }
        .min(LONGEST_BACK_OFF)
    }
}

/// What a trigger still has to pass when the way becomes free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Nothing but that its message is unsettled.
    Unsettled,
    /// The counter must still have reached its threshold.
    Counter,
    /// Nothing may have been said since its message.
    Quiet,
}

/// A trigger that has fired and waits for the way to become free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// What fired.
    pub trigger: Trigger,
    /// For which message.
    pub message: Seq,
    /// What it still has to pass.
    pub check: Check,
    /// A human's address that was not tried yet: it does not wait for the end of a back-off.
    pub urgent: bool,
}

impl Waiting {
    /// The stronger of two, of equals the newer; unchecked if either is.
    fn merged_with(self, newer: Self) -> Self {
        let kept = if newer.trigger >= self.trigger { newer } else { self };
        let unchecked = self.check == Check::Unsettled || newer.check == Check::Unsettled;
        Self { check: if unchecked { Check::Unsettled } else { kept.check }, urgent: self.urgent || newer.urgent, ..kept }
    }
}

/// A question that was asked and is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Its number.
    pub ticket: Ticket,
    /// Why it was asked.
    pub trigger: Trigger,
    /// The message that triggered it.
    pub message: Seq,
    /// The newest message that it is about.
    pub upto: Seq,
    /// Messages since the companion spoke last, when it was asked.
    pub message_count: u64,
    /// Something that its prompt may have shown was taken back since: what is answered counts, and not in which words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spoilt: bool,
    /// The turn that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// A YES that has not led to the floor yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Why the companion was asked.
    pub trigger: Trigger,
    /// The message that triggered it.
    pub message: Seq,
    /// The newest message that it was about.
    pub upto: Seq,
    /// What it gave as its reason to speak.
    pub why: Option<Arc<str>>,
    /// The turn that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// The pause after a question without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackOff {
    /// How long the last pause was; the next is twice as long, until an answer arrives.
    pub pause: Duration,
    /// When it ends; none once the question was asked again.
    pub until: Option<Moment>,
}

/// The gate of one companion in one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The newest settled event.
    pub cursor: Seq,
    /// Messages since the companion spoke last.
    pub message_counter: u64,
    /// Declined interjection checks since then.
    pub check_count: u64,
    /// The message count at which an interjection check is due; none before the first message.
    pub next_interjection_at: Option<u64>,
    /// When quiet becomes a lull.
    pub lull_at: Option<Moment>,
    /// The question in flight.
    pub evaluation: Option<Evaluation>,
    /// The wish to speak, until the floor is given.
    pub wish: Option<Wish>,
    /// The strongest trigger that waits.
    pub waiting: Option<Waiting>,
    /// The pause after questions without an answer.
    pub back_off: Option<BackOff>,
    /// The newest message that a question without an answer was about.
    pub tried: Seq,
    /// Silenced by an operator.
    pub paused: bool,
    /// How far it is on its way out of the conversation.
    #[serde(default)]
    pub stage: Stage,
    /// Human messages that it heard since it closed.
    #[serde(default)]
    pub heard_closed: u32,
    /// A program outside plays it.
    #[serde(default)]
    pub external: bool,
}

impl Gate {
    /// The gate of a companion that joins: it begins at the channel's newest event.
    pub fn new(cursor: Seq) -> Self {
        Self {
            cursor,
            message_counter: 0,
            check_count: 0,
            next_interjection_at: None,
            lull_at: None,
            evaluation: None,
            wish: None,
            waiting: None,
            back_off: None,
            tried: Seq::NONE,
            paused: false,
            stage: Stage::None,
            heard_closed: 0,
            external: false,
        }
    }

    /// Whether a message has come to its counter and no interval was drawn yet.
    pub fn lacks_interval(&self) -> bool {
        self.message_counter > 0 && self.next_interjection_at.is_none()
    }

    /// Whether a question is in flight, or its YES waits for the floor.
    pub fn is_engaged(&self) -> bool {
        self.evaluation.is_some() || self.wish.is_some()
    }

    /// Whether it settles what it hears at once: it was silenced, or has ended the conversation.
    pub fn is_silent(&self) -> bool {
        self.paused || self.is_closed()
    }

    /// Whether it has ended the conversation.
    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Terminal
    }

    /// Whether an interjection check is due.
    pub fn is_interjection_due(&self) -> bool {
        self.next_interjection_at.is_some_and(|next| self.message_counter >= next)
    }

    /// When the retry is due, while a back-off runs.
    pub fn retry_at(&self) -> Option<Moment> {
        self.back_off.and_then(|back_off| back_off.until)
    }

    /// Whether a back-off runs: it does until its end is on record.
    pub fn is_backing_off(&self) -> bool {
        self.retry_at().is_some()
    }

    /// Whether a back-off runs that a human's address cuts short.
    pub(super) fn is_back_off_cut_short(&self) -> bool {
        self.is_backing_off() && self.waiting.is_some_and(|waiting| waiting.urgent)
    }

    /// A trigger fires; it merges with what waits.
    pub(super) fn fire(&mut self, fired: Waiting) {
        self.waiting = Some(self.waiting.map_or(fired, |waiting| waiting.merged_with(fired)));
    }

    /// Everything up to this event is settled.
    pub(super) fn settle(&mut self, upto: Seq) {
        self.cursor = self.cursor.max(upto);
        self.waiting = self.waiting.filter(|waiting| waiting.message > self.cursor);
    }

    /// Drops what waits if it does not pass its check any more; `newest` is the newest unsettled message. Where all were taken back there is
    /// nothing to be asked about.
    pub(super) fn recheck(&mut self, newest: Option<Seq>) {
        let passes = |waiting: &Waiting| {
            newest.is_some()
                && waiting.message > self.cursor
                && match waiting.check {
                    Check::Unsettled => true,
                    Check::Counter => self.is_interjection_due(),
                    Check::Quiet => newest.is_none_or(|newest| newest <= waiting.message),
                }
        };
        self.waiting = self.waiting.filter(passes);
    }

    /// An interjection was declined: the next interval begins.
    pub(super) fn decline_interjection(&mut self, next_interjection_at: u64) {
        self.check_count += 1;
        self.next_interjection_at = Some(next_interjection_at);
    }

    /// Where the next interjection check lies after one was declined, with the interval that begins now.
    pub(super) fn after_declining(&self, interval: u64) -> u64 {
        let next = self.next_interjection_at.unwrap_or_default().saturating_add(interval);
        // A burst of messages must not cause a check for each of them.
        if next > self.message_counter { next } else { self.message_counter.saturating_add(interval) }
    }

    /// The companion speaks, or was addressed and declined: all begins anew, with this many messages counted already.
    pub(super) fn reset(&mut self, message_counter: u64, next_interjection_at: u64) {
        self.message_counter = message_counter;
        self.check_count = 0;
        self.next_interjection_at = Some(next_interjection_at);
    }

    /// The companion wanted to speak and did not get the floor: its trigger is kept for the next round.
    pub(super) fn outvoted(&mut self, next_interjection_at: Option<u64>) {
        if let Some(next) = next_interjection_at {
            self.next_interjection_at = Some(next);
        }
        let Some(wish) = self.wish.take().filter(|wish| wish.message > self.cursor) else { return };
        let (trigger, message) = (wish.trigger, wish.message);
        let kept = Waiting { trigger, message, check: Check::Unsettled, urgent: false };
        let newer = self.waiting.take();
        self.waiting = Some(newer.map_or(kept, |newer| kept.merged_with(newer)));
    }

    /// Where the next interjection check lies after the floor was lost, if that changes it: an interval ahead, where it was not ahead already.
    pub(super) fn after_losing(&self, interval: u64) -> Option<u64> {
        let is_ahead = self.next_interjection_at.is_none_or(|next| next > self.message_counter);
        (!is_ahead).then(|| self.message_counter.saturating_add(interval))
    }

    /// The pause is over; the next one, if there is no answer until then, is longer.
    pub(super) fn end_back_off(&mut self) {
        if let Some(back_off) = &mut self.back_off {
            back_off.until = None;
        }
    }

    /// A question got no answer: it is asked again after a pause, together with what fired meanwhile, unless its message has settled or is not
    /// there any more.
    pub(super) fn retry(&mut self, unanswered: Evaluation, is_there: bool, pause: Duration, now: Moment) {
        if is_there && unanswered.message > self.cursor {
            let retry =
                Waiting { trigger: unanswered.trigger, message: unanswered.message, check: Check::Unsettled, urgent: false };
            let newer = self.waiting.take();
            self.waiting = Some(newer.map_or(retry, |newer| retry.merged_with(newer)));
        }
        self.tried = self.tried.max(unanswered.upto);
        self.back_off = Some(BackOff { pause, until: Some(now + pause) });
    }
}

#[cfg(test)]
mod tests;
