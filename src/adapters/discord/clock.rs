//! Compares this machine's clock with Discord's, so that a wrong one makes no message too old or too new.
//!
//! Every answer of Discord's says when it was made (`Date`). Between two answers the difference is kept as long as this machine's clock goes
//! on as steadily as its timers do; if it was set meanwhile, nothing is known until the next answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use tokio::time::Instant;

use super::snowflake::Snowflake;
use crate::domain::moment::Moment;
use crate::ports::clock::Clock;

/// Clocks that differ by less agree: `Date` has whole seconds, and the answer takes its time.
const AGREES: Duration = Duration::from_secs(5);
/// Clocks that differed agree again only below this, so that a difference near the limit does not begin and end with each answer.
const AGREES_AGAIN: Duration = Duration::from_secs(3);
/// An answer that took longer says too little about when it was made.
const LONGEST_EXCHANGE: Duration = Duration::from_secs(5);
/// `Date` leaves out the fraction of its second.
const UNIT: Duration = Duration::from_secs(1);
/// If the time of day and the timers differ by so much more than before, the clock was set, or the machine slept.
const JUMPED: Duration = Duration::from_secs(2);

/// This machine's clock, and how it differs from Discord's.
pub struct Clocks {
    clock: Arc<dyn Clock>,
    last: Mutex<Option<Measured>>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    difference: Difference,
    at: Moment,
    timer: Instant,
}

/// How this machine's clock differs from Discord's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// By nothing that matters.
    None,
    /// It is ahead by so much.
    Ahead(Duration),
    /// It is behind by so much.
    Behind(Duration),
}

impl Clocks {
    /// Nothing is measured yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, last: Mutex::default() }
    }

    /// Takes in the `Date` of an answer to a request that was sent at this moment and on this timer, and is answered now. A difference is
    /// logged when it begins or ends.
    pub fn answered(&self, date: &str, sent: Moment, timer: Instant) {
        let Some(made) = moment(date).filter(|_| timer.elapsed() <= LONGEST_EXCHANGE) else { return };
        let took = timer.elapsed();
        let (before, difference) = {
            let mut last = self.lock();
            let before = last.map_or(Difference::None, |before| before.difference);
            let agrees = if before == Difference::None { AGREES } else { AGREES_AGAIN };
            let difference = compare(made, sent, took, agrees);
            *last = Some(Measured { difference, at: self.clock.now(), timer: Instant::now() });
            (before, difference)
        };
        match (before, difference) {
            (Difference::None, Difference::None) => {}
            (_, Difference::None) => tracing::info!(platform = "discord", "this machine's clock agrees with Discord's again"),
            (Difference::None, _) => {
                tracing::warn!(platform = "discord", "{}; messages are judged by Discord's. {CLICK}", difference.told())
            }
            _ => {}
        }
    }

    /// How the clocks differ, as far as is known.
    pub fn difference(&self) -> Difference {
        self.known().unwrap_or(Difference::None)
    }

    /// Whether a difference was measured, and this machine's clock was set since.
    pub fn was_set(&self) -> bool {
        self.lock().is_some() && self.known().is_none()
    }

    /// The time of day by this machine's clock.
    pub fn here(&self) -> Moment {
        self.clock.now()
    }

    /// The time of day on Discord.
    pub fn now(&self) -> Moment {
        self.difference().on_discord(self.clock.now())
    }

    /// When something was said, by this machine's clock.
    pub fn said_at(&self, id: Snowflake) -> Moment {
        self.difference().here(id.time())
    }

    /// What was measured last, unless the clock was set since.
    fn known(&self) -> Option<Difference> {
        let last = (*self.lock())?;
        let (by_clock, by_timer) = (self.clock.now().since(last.at), last.timer.elapsed());
        let is_back = self.clock.now() + JUMPED < last.at;
        (!is_back && by_clock.abs_diff(by_timer) <= JUMPED).then_some(last.difference)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Measured>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to do about clocks that differ.
pub const CLICK: &str = "Let the machine keep its clock right by NTP (systemd-timesyncd, chrony), or set it.";

impl Difference {
    /// In plain words.
    pub fn told(self) -> String {
        let by = |by: Duration| match by.as_secs_f64() {
            secs @ ..120.0 => format!("{secs:.0} s"),
            secs => format!("{:.0} min", secs / 60.0),
        };
        match self {
            Self::None => "this machine's clock agrees with Discord's".to_owned(),
            Self::Ahead(difference) => format!("this machine's clock is {} ahead of Discord's", by(difference)),
            Self::Behind(difference) => format!("this machine's clock is {} behind Discord's", by(difference)),
        }
    }

    /// A moment of this machine's clock, on Discord's.
    pub fn on_discord(self, here: Moment) -> Moment {
        match self {
            Self::None => here,
            Self::Ahead(by) => here - by,
            Self::Behind(by) => here + by,
        }
    }

    /// A moment of Discord's clock, on this machine's.
    pub fn here(self, on_discord: Moment) -> Moment {
        match self {
            Self::None => on_discord,
            Self::Ahead(by) => on_discord + by,
            Self::Behind(by) => on_discord - by,
        }
    }
}

/// Compares when an answer was made with when it may have been made by this machine's clock. Clocks agree that differ by less than `agrees`.
fn compare(made: Moment, sent: Moment, took: Duration, agrees: Duration) -> Difference {
    let (middle_here, middle_there) = (sent + took / 2, made + UNIT / 2);
    let ahead = middle_here.since(middle_there);
    let behind = middle_there.since(middle_here);
    match (ahead >= agrees, behind >= agrees) {
        (true, _) => Difference::Ahead(ahead),
        (_, true) => Difference::Behind(behind),
        _ => Difference::None,
    }
}

/// The moment that a `Date` names.
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

    /// A clock that stands where it is set.
    #[derive(Default)]
    struct Set(AtomicU64);

    impl Set {
        fn to(&self, moment: Moment) {
            self.0.store(moment.as_micros(), Ordering::Relaxed);
        }
    }

    impl Clock for Set {
        fn now(&self) -> Moment {
            Moment::from_micros(self.0.load(Ordering::Relaxed))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_as_old_as_it_is_on_discord() {
        let half = UNIT / 2;
        for (here, difference) in [
            (MADE + half, Difference::None),
            (MADE + Duration::from_secs(3), Difference::None),
            (MADE + half + HOUR, Difference::Ahead(HOUR)),
            (MADE + half - HOUR, Difference::Behind(HOUR)),
        ] {
            let (set, clocks) = clocks(here);

            clocks.answered(DATE, here, Instant::now());

            assert_eq!(clocks.difference(), difference);
            let said_a_minute_ago = Snowflake::at(MADE + half - Duration::from_secs(60));
            let age = set.now().since(clocks.said_at(said_a_minute_ago));
            assert!(age.abs_diff(Duration::from_secs(60)) < AGREES, "{age:?}");
            assert!(clocks.now().since(MADE) < AGREES && MADE.since(clocks.now()) < AGREES);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_difference_ends_only_where_the_clocks_clearly_agree() {
        let (set, clocks) = clocks(MADE);
        let is_none = |ahead: f64| {
            set.to(MADE + UNIT / 2 + Duration::from_secs_f64(ahead));
            clocks.answered(DATE, set.now(), Instant::now());
            clocks.difference() == Difference::None
        };

        assert_eq!([4.9, 5.1, 4.9, 3.1, 2.9, 4.9].map(is_none), [true, false, false, false, true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_set_since_is_not_known() {
        let (set, clocks) = clocks(MADE + HOUR);
        clocks.answered(DATE, set.now(), Instant::now());
        let ahead = clocks.difference();

        // An hour passes on both.
        tokio::time::advance(HOUR).await;
        set.to(MADE + HOUR * 2);
        let still = (clocks.difference(), clocks.was_set());
        for moment in [MADE + HOUR, MADE, MADE + HOUR * 3] {
            set.to(moment);

            assert_eq!((clocks.difference(), clocks.was_set()), (Difference::None, true), "{moment:?}");
        }

        assert_eq!(still, (ahead, false));
        clocks.answered("Fri, 15 Jan 2027 11:00:00 GMT", set.now(), Instant::now());
        assert_eq!((clocks.difference(), clocks.was_set()), (Difference::None, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_date_that_is_none_or_may_be_old_changes_nothing() {
        let (set, clocks) = clocks(MADE + HOUR);

        for date in ["", "now", "Fri, 15 Jan 2027", "Thu, 01 Jan 1060 00:00:00 GMT", "\u{0}"] {
            clocks.answered(date, set.now(), Instant::now());
        }
        let timer = Instant::now();
        tokio::time::advance(LONGEST_EXCHANGE + Duration::from_secs(1)).await;
        clocks.answered(DATE, set.now(), timer);

        assert_eq!((clocks.difference(), clocks.was_set()), (Difference::None, false));
    }

    #[test]
    fn a_difference_is_told_in_what_a_person_can_read() {
        let told =
            [Difference::Ahead(Duration::from_secs(5_400)), Difference::Behind(Duration::from_secs(7))].map(Difference::told);

        assert_eq!(told, ["this machine's clock is 90 min ahead of Discord's", "this machine's clock is 7 s behind Discord's"]);
    }

    fn clocks(here: Moment) -> (Arc<Set>, Clocks) {
        let set = Arc::<Set>::default();
        set.to(here);
        (set.clone(), Clocks::new(set))
    }
}
