//! Compares this machine's clock with Discord's, so that the age of messages is right even if the local clock is wrong.
//!
//! Every response from Discord contains its time (`Date`). Between two responses, the measured difference stays valid as long as the local
//! clock advances at the same rate as the monotonic timer. If the clock was set meanwhile, the difference is unknown until the next response.

use std::sync::Arc;
use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::snowflake::Snowflake;
use crate::domain::moment::Moment;
use crate::ports::clock::Clock;

/// Clocks that differ by less than this agree. `Date` has whole seconds, and responses take time to arrive.
const AGREES: Duration = Duration::from_secs(5);
/// Clocks that differed agree again only below this limit. Otherwise, a difference near [`AGREES`] would be logged with each response.
const AGREES_AGAIN: Duration = Duration::from_secs(3);
/// The `Date` of a response that took longer than this is too imprecise.
const LONGEST_EXCHANGE: Duration = Duration::from_secs(5);
/// The resolution of `Date`: it omits fractions of a second.
const UNIT: Duration = Duration::from_secs(1);
/// If the local clock and the timer advanced by amounts that differ by more than this, the clock was set or the machine slept.
const JUMPED: Duration = Duration::from_secs(2);

/// How long to wait for a response before Discord's time is requested again.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(30);

pub struct Clocks {
    clock: Arc<dyn Clock>,
    last: Mutex<Option<Measured>>,
    asked: Mutex<Option<Instant>>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    difference: Difference,
    at: Moment,
    timer: Instant,
}

/// How far this machine's clock is ahead of Discord's, in microseconds. Negative if it is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference(i64);

impl Clocks {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, last: Mutex::default(), asked: Mutex::default() }
    }

    /// Updates the difference from the `Date` of a response that arrives now. `sent` and `timer` are the times of its request. Logs when a
    /// difference begins or ends.
    pub fn answered(&self, date: &str, sent: Moment, timer: Instant) {
        let Some(made) = moment(date).filter(|_| timer.elapsed() <= LONGEST_EXCHANGE) else { return };
        let took = timer.elapsed();
        let (before, difference) = {
            let mut last = self.last.lock();
            let before = last.map_or(Difference::NONE, |before| before.difference);
            let agrees = if before == Difference::NONE { AGREES } else { AGREES_AGAIN };
            let difference = Difference::of(made, sent, took, agrees);
            *last = Some(Measured { difference, at: self.clock.now(), timer: Instant::now() });
            (before, difference)
        };
        match (before, difference) {
            (Difference::NONE, Difference::NONE) => {}
            (_, Difference::NONE) => tracing::info!(platform = "discord", "this machine's clock agrees with Discord's again"),
            (Difference::NONE, _) => {
                tracing::warn!(
                    platform = "discord",
                    "{}; the age of messages is measured by Discord's clock. {CLICK}",
                    difference.description()
                )
            }
            _ => {}
        }
    }

    /// The last measured difference. [`Difference::NONE`] if none was measured yet, or the clock was set since: then the difference is
    /// unknown.
    pub fn difference(&self) -> Difference {
        let last = *self.last.lock();
        last.filter(|last| !self.was_set(last)).map_or(Difference::NONE, |last| last.difference)
    }

    /// Whether to request Discord's time now, because this machine's clock was set since the last response. Returns true at most once in 30
    /// seconds.
    pub fn must_ask(&self) -> bool {
        if self.last.lock().is_none_or(|last| !self.was_set(&last)) {
            return false;
        }
        let mut asked = self.asked.lock();
        let is_due = asked.is_none_or(|at| at.elapsed() >= ASKED_AGAIN_AFTER);
        if is_due {
            *asked = Some(Instant::now());
        }
        is_due
    }

    fn was_set(&self, last: &Measured) -> bool {
        let (by_clock, by_timer) = (self.clock.now().since(last.at), last.timer.elapsed());
        let went_back = self.clock.now() + JUMPED < last.at;
        went_back || by_clock.abs_diff(by_timer) > JUMPED
    }

    /// The time of day by this machine's clock.
    pub fn here(&self) -> Moment {
        self.clock.now()
    }

    /// The time of day by Discord's clock.
    pub fn now(&self) -> Moment {
        Difference(-self.difference().0).here(self.clock.now())
    }

    /// When a message was sent, by this machine's clock.
    pub fn said_at(&self, id: Snowflake) -> Moment {
        self.difference().here(id.time())
    }
}

pub const CLICK: &str = "Synchronise the machine's clock by NTP (systemd-timesyncd, chrony), or set it.";

impl Difference {
    /// No difference: the clocks agree within the limits.
    pub const NONE: Self = Self(0);

    /// Compares the time in a response with the local time in the middle of the exchange. Clocks agree if they differ by less than `agrees`.
    fn of(made: Moment, sent: Moment, took: Duration, agrees: Duration) -> Self {
        let micros = |moment: Moment| i64::try_from(moment.as_micros()).unwrap_or(i64::MAX);
        let ahead = micros(sent + took / 2) - micros(made + UNIT / 2);
        if Duration::from_micros(ahead.unsigned_abs()) < agrees { Self::NONE } else { Self(ahead) }
    }

    pub fn description(self) -> String {
        let by = match Duration::from_micros(self.0.unsigned_abs()).as_secs_f64() {
            secs @ ..120.0 => format!("{secs:.0} s"),
            secs => format!("{:.0} min", secs / 60.0),
        };
        match self.0 {
            0 => "this machine's clock agrees with Discord's".to_owned(),
            1.. => format!("this machine's clock is {by} ahead of Discord's"),
            _ => format!("this machine's clock is {by} behind Discord's"),
        }
    }

    /// Converts a moment from Discord's clock to this machine's.
    const fn here(self, on_discord: Moment) -> Moment {
        Moment::from_micros(on_discord.as_micros().saturating_add_signed(self.0))
    }
}

fn moment(date: &str) -> Option<Moment> {
    let at = DateTimeParser::new().parse_timestamp(date).ok()?;
    u64::try_from(at.as_microsecond()).ok().map(Moment::from_micros)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const DATE: &str = "Fri, 15 Jan 2027 08:00:00 GMT";
    const MADE: Moment = Moment::from_micros(1_800_000_000_000_000);
    const HOUR: Duration = Duration::from_secs(3_600);

    /// A clock that shows the moment that was set.
    #[derive(Default)]
    struct SettableClock(AtomicU64);

    impl SettableClock {
        fn set(&self, moment: Moment) {
            self.0.store(moment.as_micros(), Ordering::Relaxed);
        }
    }

    impl Clock for SettableClock {
        fn now(&self) -> Moment {
            Moment::from_micros(self.0.load(Ordering::Relaxed))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_age_of_a_message_follows_discords_clock() {
        let half = UNIT / 2;
        for (here, difference) in [
            (MADE + half, Difference::NONE),
            (MADE + Duration::from_secs(3), Difference::NONE),
            (MADE + half + HOUR, ahead(HOUR)),
            (MADE + half - HOUR, Difference(-ahead(HOUR).0)),
        ] {
            let (local, clocks) = clocks(here);

            clocks.answered(DATE, here, Instant::now());

            assert_eq!(clocks.difference(), difference);
            let said_a_minute_ago = Snowflake::at(MADE + half - Duration::from_secs(60));
            let age = local.now().since(clocks.said_at(said_a_minute_ago));
            assert!(age.abs_diff(Duration::from_secs(60)) < AGREES, "{age:?}");
            assert!(clocks.now().since(MADE) < AGREES && MADE.since(clocks.now()) < AGREES);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_difference_ends_only_when_the_clocks_clearly_agree() {
        let (local, clocks) = clocks(MADE);
        let is_none = |ahead: f64| {
            local.set(MADE + UNIT / 2 + Duration::from_secs_f64(ahead));
            clocks.answered(DATE, local.now(), Instant::now());
            clocks.difference() == Difference::NONE
        };

        assert_eq!([4.9, 5.1, 4.9, 3.1, 2.9, 4.9].map(is_none), [true, false, false, false, true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_difference_is_unknown_after_the_clock_was_set() {
        let (local, clocks) = clocks(MADE + HOUR);
        clocks.answered(DATE, local.now(), Instant::now());
        let before = clocks.difference();

        // Both clocks advance by an hour.
        tokio::time::advance(HOUR).await;
        local.set(MADE + HOUR * 2);
        let still = clocks.difference();
        for moment in [MADE + HOUR, MADE, MADE + HOUR * 3] {
            local.set(moment);

            assert_eq!(clocks.difference(), Difference::NONE, "{moment:?}");
        }

        assert_eq!((before, still), (ahead(HOUR - UNIT / 2), before));
        // Discord is asked again, and not with every message.
        assert_eq!([clocks.must_ask(), clocks.must_ask()], [true, false]);
        tokio::time::advance(ASKED_AGAIN_AFTER).await;
        assert!(clocks.must_ask());
    }

    #[tokio::test(start_paused = true)]
    async fn an_invalid_or_late_date_changes_nothing() {
        let (local, clocks) = clocks(MADE + HOUR);

        for date in ["", "now", "Fri, 15 Jan 2027", "Thu, 01 Jan 1060 00:00:00 GMT", "\u{0}"] {
            clocks.answered(date, local.now(), Instant::now());
        }
        let timer = Instant::now();
        tokio::time::advance(LONGEST_EXCHANGE + Duration::from_secs(1)).await;
        clocks.answered(DATE, local.now(), timer);

        assert_eq!(clocks.difference(), Difference::NONE);
    }

    #[test]
    fn a_difference_is_written_for_people() {
        let texts = [Difference(5_400_000_000), Difference(-7_000_000)].map(Difference::description);

        assert_eq!(texts, ["this machine's clock is 90 min ahead of Discord's", "this machine's clock is 7 s behind Discord's"]);
    }

    fn ahead(by: Duration) -> Difference {
        Difference(by.as_micros() as i64)
    }

    fn clocks(here: Moment) -> (Arc<SettableClock>, Clocks) {
        let local = Arc::<SettableClock>::default();
        local.set(here);
        (local.clone(), Clocks::new(local))
    }
}
