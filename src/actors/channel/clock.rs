//! The clock of a channel: its time, its one alarm, and the work that is due when the alarm rings.
//!
//! The time starts at the end of the journal, and advances independently of the machine's clock. There is only one alarm, because most of the
//! deadlines are never reached: most lulls are postponed, and nearly all questions are answered in time.

use std::time::Duration;

use tokio::time::Instant;

use super::channel_context::ChannelContext;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::runtime::owned_task::OwnedTask;
use crate::domain::moment::Moment;

/// A channel at rest goes to sleep after this time without an inbound event.
const SLEEP_AFTER: Duration = Duration::from_secs(300);
/// The longest time that an alarm is set for. An alarm that rings too early is set again.
const MAX_ALARM: Duration = Duration::from_secs(24 * 60 * 60);
/// The same for reminders. The machine's clock, by which they are due, may be set while the channel waits.
const MAX_REMINDER_ALARM: Duration = Duration::from_secs(60);

pub(super) struct Clock {
    /// The channel's time, and the instant at which it was set. It never goes back and never stops. It is set to the machine's clock if that is
    /// ahead.
    from: Moment,
    since: Instant,
    /// When the alarm rings, and its timer.
    alarm: Option<(Instant, OwnedTask)>,
    /// When the channel next checks whether it can sleep. `None` while it is not restored, and once it sleeps.
    sleep_at: Option<Moment>,
    last_received: Instant,
}

/// What the channel waits for, besides the check whether it can sleep.
#[derive(Clone, Copy, Default)]
pub(super) struct Awaited {
    /// The next deadline of the conversation.
    pub(super) deadline: Option<Moment>,
    /// Whether the channel waits at most for a silence. Then it can sleep.
    pub(super) is_at_rest: bool,
    /// When the oldest question times out.
    pub(super) question_timeout: Option<Instant>,
    /// When a reminder is due, by the machine's clock.
    pub(super) reminder: Option<Moment>,
}

/// The work that is due when the alarm rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A deadline of the conversation.
    Deadline,
    /// The check whether the channel can sleep.
    SleepCheck,
}

impl Clock {
    /// A clock that shows this moment now.
    pub(super) fn new(from: Moment) -> Self {
        let now = Instant::now();
        Self { from, since: now, alarm: None, sleep_at: None, last_received: now }
    }

    /// Sets the clock to this moment.
    pub(super) fn set(&mut self, to: Moment) {
        (self.from, self.since) = (to, Instant::now());
    }

    /// The time now; `machine` is what the machine's clock shows.
    pub(super) fn now(&mut self, machine: Moment) -> Moment {
        let here = self.from + self.since.elapsed();
        if machine > here {
            self.set(machine);
            return machine;
        }
        here
    }

    /// Records the arrival of an inbound event.
    pub(super) fn note_received(&mut self) {
        self.last_received = Instant::now();
    }

    /// Whether no inbound event has arrived for so long that the channel can sleep.
    pub(super) fn is_idle(&self) -> bool {
        self.last_received.elapsed() >= SLEEP_AFTER
    }

    /// Sets the next check whether the channel can sleep.
    pub(super) fn schedule_sleep_check(&mut self, machine: Moment) {
        self.sleep_at = Some(self.now(machine) + SLEEP_AFTER);
    }

    /// Ends the checks, because the channel goes to sleep.
    pub(super) fn end_sleep_checks(&mut self) {
        self.sleep_at = None;
    }

    /// Sets the alarm for the earliest deadline. An alarm that rings earlier stays, and is set again when it rings. Each message postpones a lull,
    /// and a new timer for each message would be needlessly expensive.
    pub(super) fn arm(&mut self, awaited: Awaited, channel: &ChannelContext) {
        let now = Instant::now();
        let Some(rings_at) = self.next(awaited, now, channel.machine_time()) else { return };
        if self.alarm.as_ref().is_some_and(|(armed_for, _)| *armed_for <= rings_at) {
            return;
        }
        let timer = channel.actor.send_after(rings_at.saturating_duration_since(now), || ChannelMessage::Woken);
        self.alarm = Some((rings_at, timer.into()));
    }

    /// When the alarm must ring next.
    fn next(&mut self, awaited: Awaited, now: Instant, machine: Moment) -> Option<Instant> {
        let Awaited { deadline, is_at_rest, question_timeout, reminder } = awaited;
        let sleep_at = self.sleep_at.filter(|_| deadline.is_none() || is_at_rest);
        // Computed as a span, because the machine's clock may have been set since.
        let due = deadline.into_iter().chain(sleep_at).min().map(|at| now + at.since(self.now(machine)).min(MAX_ALARM));
        let reminder = reminder.map(|at| now + at.since(machine).min(MAX_REMINDER_ALARM));
        due.into_iter().chain(question_timeout).chain(reminder).min()
    }

    /// Removes the alarm after it rang.
    pub(super) fn rang(&mut self) {
        self.alarm = None;
    }

    /// The work that is due now, given the next deadline of the conversation. `None`: the alarm rang too early, or for a question.
    pub(super) fn due(&mut self, deadline: Option<Moment>, machine: Moment) -> Option<Due> {
        let now = self.now(machine);
        if deadline.is_some_and(|at| at <= now) {
            Some(Due::Deadline)
        } else if self.sleep_at.is_some_and(|at| at <= now) {
            Some(Due::SleepCheck)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const NOON: Moment = Moment::from_micros(43_200_000_000);

    #[tokio::test(start_paused = true)]
    async fn time_advances_when_the_machines_clock_is_set_back() {
        let mut clock = Clock::new(NOON);

        tokio::time::advance(MINUTE).await;

        assert_eq!(clock.now(NOON - 10 * MINUTE), NOON + MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_clock_that_is_ahead_is_followed() {
        let mut clock = Clock::new(NOON);

        assert_eq!(clock.now(NOON + 10 * MINUTE), NOON + 10 * MINUTE);
        assert_eq!(clock.now(NOON), NOON + 10 * MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn the_alarm_rings_for_what_comes_first() {
        let mut clock = Clock::new(NOON);
        let now = Instant::now();
        let mut rings_in = |deadline: Option<u32>, is_at_rest, question: Option<u32>| {
            let deadline = deadline.map(|minutes| NOON + minutes * MINUTE);
            let question_timeout = question.map(|minutes| now + minutes * MINUTE);
            let awaited = Awaited { deadline, is_at_rest, question_timeout, reminder: None };
            clock.next(awaited, now, NOON).map(|at| (at - now).as_secs() / 60)
        };

        assert_eq!(rings_in(None, true, None), None, "a channel that is not restored does not check whether it can sleep");
        assert_eq!(rings_in(Some(7), false, Some(2)), Some(2));
        assert_eq!(rings_in(Some(7), false, Some(9)), Some(7));
        assert_eq!(rings_in(Some(9_999), false, None), Some(24 * 60));
    }

    #[tokio::test(start_paused = true)]
    async fn while_something_is_in_progress_no_sleep_is_checked() {
        let mut clock = Clock::new(NOON);
        clock.schedule_sleep_check(NOON);
        let now = Instant::now();
        let mut rings_in = |deadline: Option<Moment>, is_at_rest| {
            clock.next(Awaited { deadline, is_at_rest, question_timeout: None, reminder: None }, now, NOON).map(|at| at - now)
        };

        assert_eq!(rings_in(None, false), Some(SLEEP_AFTER));
        assert_eq!(rings_in(Some(NOON + 60 * MINUTE), true), Some(SLEEP_AFTER));
        assert_eq!(rings_in(Some(NOON + 60 * MINUTE), false), Some(60 * MINUTE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reminder_is_due_by_the_machines_clock() {
        let mut clock = Clock::new(NOON);
        let now = Instant::now();
        let mut rings_in = |machine: Moment, reminder: Moment| {
            let awaited = Awaited { reminder: Some(reminder), ..Awaited::default() };
            clock.next(awaited, now, machine).map(|at| (at - now).as_secs())
        };

        assert_eq!(rings_in(NOON, NOON + 30 * Duration::from_secs(1)), Some(30));
        assert_eq!(rings_in(NOON - MINUTE, NOON - 30 * Duration::from_secs(1)), Some(30), "the machine's clock was set back");
        assert_eq!(rings_in(NOON + 10 * MINUTE, NOON), Some(0));
        assert_eq!(rings_in(NOON, NOON + 999 * MINUTE), Some(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_due_before_a_sleep_check() {
        let mut clock = Clock::new(NOON);
        clock.schedule_sleep_check(NOON);
        let deadline = Some(NOON + SLEEP_AFTER);

        assert_eq!(clock.due(deadline, NOON), None);
        tokio::time::advance(SLEEP_AFTER).await;
        assert_eq!(clock.due(deadline, NOON), Some(Due::Deadline));
        assert_eq!(clock.due(None, NOON), Some(Due::SleepCheck));
        assert!(clock.is_idle());
        clock.note_received();
        assert!(!clock.is_idle());
    }
}
