//! The gate: decides whether and when one companion considers speaking in one channel, with its counters, its timer and its waiting trigger.
//!
//! A gate changes only by journaled events (see `conversation`), so a fold of the journal restores it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::closing::Stage;
use super::id::{Seq, Ticket, TurnId};
use super::moment::Moment;
use super::relevance::Relevance;
use super::trigger::Trigger;
use super::turn::one_or_many;
use super::vote::is_usual;
use crate::policy::interjection::Interjection;
use crate::policy::quiet_hours::QuietHours;

/// The shortest interval between two interjection checks, in messages (docs/design/gate.md G-7).
const SHORTEST_INTERVAL: u64 = 3;
/// The number of messages by which each declined check shortens the next interval (docs/design/gate.md G-7).
const STEP_DOWN: u64 = 3;
/// The maximum deviation of an interval, in messages, so that companions do not act in step (docs/design/gate.md G-7).
pub const MOST_JITTER: i8 = 2;
/// The minimum and maximum pause before an unanswered question is asked again.
const SHORTEST_BACK_OFF: Duration = Duration::from_secs(1);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(600);

/// The settings of a companion for interjections in one channel, and for the end of its conversation there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterjectionPolicy {
    /// How eager it is to interject, and to continue when it is interrupted.
    pub level: Interjection,
    /// The number of messages until the first interjection check (3 to 15, docs/design/gate.md G-7).
    pub starting_interval: u64,
    /// The silence in a text channel that counts as a lull.
    pub text_lull_timeout: Duration,
    /// The silence in a voice channel that counts as a lull.
    pub voice_lull_timeout: Duration,
    /// The times at which it speaks only when spoken to: its own, and those of its room.
    pub quiet_hours: [QuietHours; 2],
    /// The silence after which it may start a conversation. `None` if it never does.
    pub starts_after: Option<Duration>,
    /// The maximum number of its statements in a conversation. `None` if it has no limit of its own (docs/design/closing.md
    /// C-19).
    pub max_turns: Option<u32>,
    /// Whether its statements are judged for repetition, and repetition forces stages on it (docs/design/closing.md C-20).
    pub repetition: bool,
}

impl InterjectionPolicy {
    /// The number of messages from one interjection check to the next, after `check_count` declined ones: `max(3, starting − 3·checks)`, plus the
    /// jitter, and again at least 3 (docs/design/gate.md G-7).
    pub fn interval(&self, check_count: u64, jitter: i8) -> u64 {
        self.starting_interval
            .saturating_sub(STEP_DOWN.saturating_mul(check_count))
            .max(SHORTEST_INTERVAL)
            .saturating_add_signed(jitter.into())
            .max(SHORTEST_INTERVAL)
    }

    /// The pause before an unanswered question is asked again. The first pause is the text lull timeout, and each later one is
    /// twice the `last`. A pause is between one second and ten minutes.
    pub fn back_off(&self, last: Option<Duration>) -> Duration {
        match last {
            None => self.text_lull_timeout.max(SHORTEST_BACK_OFF),
            Some(last) => last.saturating_mul(2),
        }
        .min(LONGEST_BACK_OFF)
    }
}

/// The check that a waiting trigger must pass before its question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Its message must be unsettled.
    Unsettled,
    /// The message counter must still have reached its threshold.
    Counter,
    /// No message may have followed its message.
    Quiet,
}

/// A trigger that has fired and waits until a question may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub trigger: Trigger,
    /// The number of the message that fired it.
    pub message: Seq,
    /// The check that it must still pass.
    pub check: Check,
    /// Whether it is a human's address that has led to no question so far. Such a trigger does not wait for the end of a
    /// back-off.
    pub urgent: bool,
}

impl Waiting {
    /// Merges two triggers: the stronger one, of equals the newer one. If either needs no check, neither does the result.
    fn merged_with(self, newer: Self) -> Self {
        let stronger = if newer.trigger >= self.trigger { newer } else { self };
        let unchecked = self.check == Check::Unsettled || newer.check == Check::Unsettled;
        Self { check: if unchecked { Check::Unsettled } else { stronger.check }, urgent: self.urgent || newer.urgent, ..stronger }
    }
}

/// A question in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluation {
    pub ticket: Ticket,
    pub trigger: Trigger,
    /// The number of the message that triggered it.
    pub message: Seq,
    /// The newest message that it is about.
    pub upto: Seq,
    /// The number of messages since the companion's last statement, at the time of the question.
    pub message_count: u64,
    /// The deadline of the answer. `None` if the round or the call has a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Moment>,
    /// Whether a message that its prompt may show was deleted since. The answer counts, but its words are not stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spoilt: bool,
    /// The turn of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// A YES that has not led to the floor yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    pub trigger: Trigger,
    /// The number of the message that triggered it.
    pub message: Seq,
    /// The newest message that it was about.
    pub upto: Seq,
    /// The companion's reason to speak.
    pub why: Option<Arc<str>>,
    /// The turn of the wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// The pause after an unanswered question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackOff {
    /// The length of the last pause. The next is twice as long, until an answer arrives.
    pub pause: Duration,
    /// The end of the pause. `None` after it.
    pub until: Option<Moment>,
}

/// The gate of one companion in one channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The number of the newest settled event.
    pub cursor: Seq,
    /// The number of messages since the companion's last statement.
    pub message_counter: u64,
    /// The number of declined interjection checks since then.
    pub check_count: u64,
    /// The message count at which an interjection check is due. None before the first message.
    pub next_interjection_at: Option<u64>,
    /// The time at which the lull timer fires. `None` if it is not armed.
    pub lull_at: Option<Moment>,
    /// The time at which the companion considers starting a conversation if the silence lasts until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_at: Option<Moment>,
    /// Whether it may still start a conversation before the next human message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_start: bool,
    /// The question in flight, if there is one.
    pub evaluation: Option<Evaluation>,
    /// The wish to speak, until the companion gets the floor or loses it.
    pub wish: Option<Wish>,
    /// The strongest waiting trigger, if there is one.
    pub waiting: Option<Waiting>,
    /// The back-off after unanswered questions.
    pub back_off: Option<BackOff>,
    /// The newest message that an unanswered question was about.
    pub tried: Seq,
    /// Unsettled messages that do not count as addresses: stop phrases that stopped the companion, and the messages that they
    /// cancelled. Older versions kept only the newest phrase.
    #[serde(default, alias = "stopped_by", deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<Seq>,
    /// Whether an operator paused the companion.
    pub paused: bool,
    #[serde(default)]
    pub stage: Stage,
    /// The minimum stage: a State cannot go below it (docs/design/closing.md C-16). `none` if no stage is forced.
    #[serde(default, skip_serializing_if = "Stage::is_none")]
    pub minimum_stage: Stage,
    /// The number of its statements since its conversation began or was reopened.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: u32,
    /// The number of human messages since it closed.
    #[serde(default)]
    pub heard_closed: u32,
    /// Whether the companion is an external one.
    #[serde(default)]
    pub external: bool,
    /// Its memory of the conversation for the pre-gate. `None` without a pre-gate, and while it has recorded no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relevance: Option<Box<Relevance>>,
    /// The mood of its newest answer, −0.2 to 0.2 (docs/design/voice.md A-32).
    #[serde(default, skip_serializing_if = "is_usual")]
    pub mood: f64,
}

impl Gate {
    /// The gate of a companion that joins. It begins at the channel's newest event.
    pub fn new(cursor: Seq) -> Self {
        Self { cursor, ..Self::default() }
    }

    /// Whether messages were counted and no interval was drawn yet.
    pub fn lacks_interval(&self) -> bool {
        self.message_counter > 0 && self.next_interjection_at.is_none()
    }

    /// Whether a question is in flight, or its YES waits for the floor.
    pub fn is_engaged(&self) -> bool {
        self.evaluation.is_some() || self.wish.is_some()
    }

    /// The newest message that a question in flight, or a YES that waits for the floor, is about.
    pub fn considered(&self) -> Option<Seq> {
        let asked = self.evaluation.as_ref().map(|evaluation| evaluation.upto);
        asked.or(self.wish.as_ref().map(|wish| wish.upto))
    }

    /// Whether it settles messages at once, because it is paused or has ended the conversation.
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

    /// The end of the current back-off.
    pub fn retry_at(&self) -> Option<Moment> {
        self.back_off.and_then(|back_off| back_off.until)
    }

    /// Whether an event waits to be acknowledged.
    pub fn owes_acknowledgement(&self) -> bool {
        self.waiting.is_some_and(|waiting| waiting.trigger.acknowledges_events())
    }

    /// Whether a back-off is active. It is active until its end is recorded.
    pub fn is_backing_off(&self) -> bool {
        self.retry_at().is_some()
    }

    /// Whether a back-off is active and a human's address ends it early.
    pub(super) fn is_back_off_cut_short(&self) -> bool {
        self.is_backing_off() && self.waiting.is_some_and(|waiting| waiting.urgent)
    }

    /// Fires a trigger. It merges with the waiting one.
    pub(super) fn fire(&mut self, fired: Waiting) {
        self.waiting = Some(self.waiting.map_or(fired, |waiting| waiting.merged_with(fired)));
    }

    /// Settles everything up to this event.
    pub(super) fn settle(&mut self, upto: Seq) {
        self.cursor = self.cursor.max(upto);
        self.cancelled.retain(|seq| *seq > self.cursor);
        // The trigger for a long silence does not depend on an unsettled message.
        self.waiting = self.waiting.filter(|waiting| !waiting.trigger.needs_a_message() || waiting.message > self.cursor);
    }

    /// Drops the waiting trigger if it no longer passes its check. `newest` is the newest unsettled message. `None` means that
    /// all were deleted, so that no question is needed.
    pub(super) fn recheck(&mut self, newest: Option<Seq>) {
        let passes = |waiting: &Waiting| {
            !waiting.trigger.needs_a_message()
                || newest.is_some()
                    && waiting.message > self.cursor
                    && match waiting.check {
                        Check::Unsettled => true,
                        Check::Counter => self.is_interjection_due(),
                        Check::Quiet => newest.is_none_or(|newest| newest <= waiting.message),
                    }
        };
        self.waiting = self.waiting.filter(passes);
    }

    /// Counts a declined interjection check and begins the next interval.
    pub(super) fn decline_interjection(&mut self, next_interjection_at: u64) {
        self.check_count += 1;
        self.next_interjection_at = Some(next_interjection_at);
    }

    /// The message count of the next interjection check after a declined one, with the interval that begins now.
    pub(super) fn after_declining(&self, interval: u64) -> u64 {
        let next = self.next_interjection_at.unwrap_or_default().saturating_add(interval);
        // A burst of messages must not cause a check for each of them.
        if next > self.message_counter { next } else { self.message_counter.saturating_add(interval) }
    }

    /// Resets the counters, because the companion speaks, or was addressed and declined. `message_counter` messages already
    /// count.
    pub(super) fn reset(&mut self, message_counter: u64, next_interjection_at: u64) {
        self.message_counter = message_counter;
        self.check_count = 0;
        self.next_interjection_at = Some(next_interjection_at);
    }

    /// Handles the loss of a round: the companion wanted to speak and did not get the floor. Its trigger waits for the next
    /// round.
    pub(super) fn outvoted(&mut self, next_interjection_at: Option<u64>) {
        if let Some(next) = next_interjection_at {
            self.next_interjection_at = Some(next);
        }
        // A silence is considered only once.
        let keeps = |wish: &Wish| wish.message > self.cursor && wish.trigger.needs_a_message();
        let Some(wish) = self.wish.take().filter(keeps) else { return };
        let (trigger, message) = (wish.trigger, wish.message);
        let outvoted = Waiting { trigger, message, check: Check::Unsettled, urgent: false };
        let newer = self.waiting.take();
        self.waiting = Some(newer.map_or(outvoted, |newer| outvoted.merged_with(newer)));
    }

    /// The message count of the next interjection check after the floor was lost: one interval from now. `None` if the check is
    /// still ahead and does not change.
    pub(super) fn after_losing(&self, interval: u64) -> Option<u64> {
        let is_ahead = self.next_interjection_at.is_none_or(|next| next > self.message_counter);
        (!is_ahead).then(|| self.message_counter.saturating_add(interval))
    }

    /// Ends the pause. The next pause is longer unless an answer arrives before.
    pub(super) fn end_back_off(&mut self) {
        if let Some(back_off) = &mut self.back_off {
            back_off.until = None;
        }
    }

    /// Handles an unanswered question. The question waits for a pause. It is then asked again, together with triggers that fired
    /// meanwhile, unless its message has settled or was deleted.
    pub(super) fn retry(&mut self, unanswered: Evaluation, is_message_present: bool, pause: Duration, now: Moment) {
        if is_message_present && unanswered.message > self.cursor && unanswered.trigger.needs_a_message() {
            let retry =
                Waiting { trigger: unanswered.trigger, message: unanswered.message, check: Check::Unsettled, urgent: false };
            let newer = self.waiting.take();
            self.waiting = Some(newer.map_or(retry, |newer| retry.merged_with(newer)));
        }
        self.tried = self.tried.max(unanswered.upto);
        self.back_off = Some(BackOff { pause, until: Some(now + pause) });
    }
}

/// Whether a snapshot omits this number.
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests;
