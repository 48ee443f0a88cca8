//! Decides whether the machine's clock can be trusted for deleting old events. A machine whose clock is wrong at one start must
//! not lose its journals.
//!
//! The time of the last check is stored. After a jump of the clock, nothing expires until the clock has been steady for a day. A
//! server that was off for a long time therefore waits for a day, too.

use std::time::Duration;

use crate::domain::moment::Moment;
use crate::journal::record::ClockRecord;

/// A clock that differs by more than this from the last check has jumped. It must then be steady for as long.
pub(super) const HOLDS_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether the clock can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The clock has been steady for a day: it is trusted.
    Held,
    /// The clock has been steady for less than a day.
    Waits,
    /// The first check ever.
    New,
    /// The clock has just jumped from this time.
    Leapt { from: Moment },
}

/// Compares the clock with the last check. Returns the record to store.
pub(super) fn look(before: Option<ClockRecord>, now: Moment) -> (ClockRecord, Trust) {
    let anew = ClockRecord { seen: now, since: now };
    let Some(ClockRecord { seen, since }) = before else { return (anew, Trust::New) };
    if now.since(seen).max(seen.since(now)) > HOLDS_FOR {
        return (anew, Trust::Leapt { from: seen });
    }
    let record = ClockRecord { seen: now, since: since.min(now) };
    (record, if now.since(record.since) >= HOLDS_FOR { Trust::Held } else { Trust::Waits })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;
    const DAYS: u64 = 24 * HOUR;

    /// What is thought of the clock at each of these seconds.
    fn looks(seconds: impl IntoIterator<Item = u64>) -> Vec<Trust> {
        let mut record = None;
        let looks = seconds.into_iter().map(|secs| {
            let (seen, trust) = look(record, at(secs));
            record = Some(seen);
            trust
        });
        looks.collect()
    }

    #[test]
    fn a_clock_is_trusted_once_it_has_held_for_a_day() {
        let trusted = looks((0..=25).map(|hour| 100 * DAYS + hour * HOUR));

        assert_eq!(trusted[0], Trust::New);
        assert!(trusted[1..24].iter().all(|trust| *trust == Trust::Waits));
        assert_eq!(trusted[24..], [Trust::Held; 2]);
    }

    #[test]
    fn a_leap_in_either_direction_has_to_hold_for_a_day_again() {
        let day = |day: u64| day * DAYS;

        let trusted = looks([day(100), day(101), day(161), day(161) + HOUR, day(101) + 2 * HOUR, day(102), day(102) + 2 * HOUR]);

        assert_eq!(trusted[..2], [Trust::New, Trust::Held]);
        assert_eq!(trusted[2..4], [Trust::Leapt { from: at(day(101)) }, Trust::Waits]);
        assert_eq!(trusted[4..], [Trust::Leapt { from: at(day(161) + HOUR) }, Trust::Waits, Trust::Held]);
    }

    #[test]
    fn a_clock_that_is_corrected_a_little_goes_on() {
        let later = 101 * DAYS + 6 * HOUR;

        let trusted = looks([100 * DAYS, 101 * DAYS, later, later - 30, later + HOUR]);

        assert_eq!(trusted[1..], [Trust::Held; 4]);
    }

    fn at(secs: u64) -> Moment {
        Moment::from_micros(secs * 1_000_000)
    }
}
