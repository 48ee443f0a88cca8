//! Decides which backups to make and which to delete. The functions are pure.

use std::time::Duration;

use crate::domain::moment::Moment;
use crate::journal::erased::Erasures;

/// The age at which a backup that contains erased texts is replaced. It leaves time to make the new one within a day of the erasure.
const STALE_AFTER: Duration = Duration::from_secs(22 * 60 * 60);
/// How long the last backup from before a large expiry is kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A backup that is dated further ahead of the clock than this was made while the clock was wrong. Its age is unknown.
const AHEAD: Duration = Duration::from_secs(60 * 60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Whether a backup must be made now.
    pub(super) makes: bool,
    /// The backups to delete, after the new one was made or could not be made.
    pub(super) removes: Vec<Moment>,
}

/// Plans backups. `every` is the interval between backups, and `kept` their number. Without `every`, no backups are made, and only those with
/// erased texts are deleted. `found` has the times of the existing backups, in order.
pub(super) fn plan(now: Moment, every: Option<Duration>, kept: usize, found: &[Moment], erased: &Erasures) -> Plan {
    let holds_words_of = |made: Moment, erased: Option<Moment>| {
        erased.is_some_and(|erased| is_ahead(made, now) || made < erased && now.since(made) >= STALE_AFTER)
    };
    let large_expiry = erased.large_expiry.filter(|expiry| now.since(*expiry) < KEPT_FOR);
    let from_before = large_expiry.and_then(|expiry| {
        let is_before = |made: &&Moment| **made <= expiry;
        // If the clock was ahead at the expiry, its time does not show which backups are from before. The oldest backup is.
        if is_ahead(expiry, now) { found.iter().find(is_before) } else { found.iter().rfind(is_before) }
    });
    let from_before = from_before.copied();
    let is_stale = |made: Moment| holds_words_of(made, if from_before == Some(made) { erased.requested } else { erased.last });
    let (ahead, dated): (Vec<_>, Vec<_>) = found.iter().copied().partition(|made| is_ahead(*made, now));
    let is_due = |every| {
        let newest = dated.last().copied();
        newest.is_none_or(|newest| now.since(newest) >= every || is_stale(newest)) || ahead.iter().any(|made| is_stale(*made))
    };
    // Backups that are dated ahead count as the oldest, because otherwise they would stay longer than any other.
    let rotated = ahead.iter().chain(&dated).copied().filter(|made| from_before != Some(*made));
    let surplus = every.map_or(0, |_| rotated.clone().count().saturating_sub(kept));
    let surplus: Vec<_> = rotated.take(surplus).collect();
    let removes = found.iter().copied().filter(|made| surplus.contains(made) || is_stale(*made)).collect();
    Plan { makes: every.is_some_and(is_due), removes }
}

/// Whether a backup is dated ahead of the clock.
pub(super) fn is_ahead(made: Moment, now: Moment) -> bool {
    made > now + AHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn hours(hours: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(hours * 60 * 60)
    }

    /// What is done about backups made at these hours. Words were erased at these hours: for any reason, on request, and many at once.
    fn planned(now: Moment, every: Option<Duration>, found: &[u64], erased: [Option<u64>; 3]) -> (bool, Vec<Moment>) {
        let found: Vec<_> = found.iter().map(|made| hours(*made)).collect();
        let [last, requested, large_expiry] = erased.map(|erased| erased.map(hours));
        let Plan { makes, removes } = plan(now, every, 3, &found, &Erasures { last, requested, large_expiry });
        (makes, removes)
    }

    fn daily(now: Moment, found: &[u64], erased: Option<u64>) -> (bool, Vec<Moment>) {
        planned(now, Some(DAY), found, [erased, erased, None])
    }

    #[test]
    fn a_backup_is_made_when_there_is_none_and_when_the_newest_is_old() {
        assert_eq!(daily(hours(100), &[], None), (true, vec![]));
        assert_eq!(daily(hours(100), &[77], None), (false, vec![]));
        assert_eq!(daily(hours(101), &[77], None), (true, vec![]));
        assert_eq!(daily(hours(900), &[29, 53, 77], None), (true, vec![]));
    }

    #[test]
    fn the_oldest_are_deleted_once_there_are_more_than_are_kept() {
        assert_eq!(daily(hours(101), &[5, 29, 53, 77, 101], None), (false, vec![hours(5), hours(29)]));
    }

    #[test]
    fn backups_that_are_older_than_an_erasure_are_replaced_within_a_day() {
        // An hour after the newest, and words were erased since.
        assert_eq!(daily(hours(102), &[53, 77, 101], Some(102)), (false, vec![hours(53), hours(77)]));
        assert_eq!(daily(hours(122), &[101], Some(102)), (false, vec![]));
        assert_eq!(daily(hours(123), &[101], Some(102)), (true, vec![hours(101)]));
        assert_eq!(daily(hours(123), &[101, 123], Some(102)), (false, vec![hours(101)]));
        assert_eq!(daily(hours(140), &[123], Some(102)), (false, vec![]), "it was made afterwards");
    }

    #[test]
    fn where_none_are_made_earlier_ones_lose_erased_words_all_the_same() {
        let erased = [Some(102), Some(102), None];

        assert_eq!(planned(hours(122), None, &[5, 29, 53, 101], erased), (false, vec![hours(5), hours(29), hours(53)]));
        assert_eq!(planned(hours(123), None, &[101], erased), (false, vec![hours(101)]));
        assert_eq!(planned(hours(900), None, &[5, 29, 53, 77, 101], [None; 3]), (false, vec![]));
    }

    #[test]
    fn a_clock_that_was_set_back_a_little_deletes_nothing_early() {
        assert_eq!(daily(hours(76), &[77], Some(76)), (false, vec![]));
    }

    #[test]
    fn a_backup_that_is_dated_ahead_is_not_the_newest_and_goes_first() {
        assert_eq!(daily(hours(10), &[77], None), (true, vec![]));
        assert_eq!(daily(hours(50), &[5, 40, 900, 901], None), (false, vec![hours(900)]));
    }

    #[test]
    fn a_backup_that_is_dated_ahead_is_replaced_after_an_erasure() {
        assert_eq!(daily(hours(50), &[40, 900], Some(49)), (true, vec![hours(900)]));
        assert_eq!(daily(hours(50), &[40, 50], Some(49)), (false, vec![]));
    }

    #[test]
    fn the_last_backup_from_before_a_large_expiry_is_kept_for_a_week_unless_words_were_deleted_on_request() {
        let expired = [Some(102), None, Some(102)];
        let found = [53, 77, 101, 125, 149, 173, 197];

        assert_eq!(planned(hours(123), Some(DAY), &found[..3], expired), (false, vec![hours(53), hours(77)]));
        assert_eq!(planned(hours(197), Some(DAY), &found[2..], expired), (false, vec![hours(125)]));
        assert_eq!(planned(hours(102 + 7 * 24), Some(DAY), &found[2..4], expired), (true, vec![hours(101)]));
        let requested = [Some(102), Some(102), Some(102)];
        assert_eq!(planned(hours(123), Some(DAY), &found[2..3], requested), (true, vec![hours(101)]));
    }
}
