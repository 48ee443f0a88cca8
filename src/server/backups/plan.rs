//! Decides which backups to make and which to delete. It is pure.

use std::time::Duration;

use crate::domain::moment::Moment;

/// The age at which a backup that contains erased words is replaced. It leaves time to make the new one within a day of the erasure.
const STALE_AFTER: Duration = Duration::from_secs(22 * 60 * 60);

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Whether a backup must be made now.
    pub(super) makes: bool,
    /// The backups to delete, after the new one was made or could not be made.
    pub(super) removes: Vec<Moment>,
}

/// Plans backups every so often, of which so many are kept. `found` is when the existing ones were made, in order; `erased` is when words were last
/// erased.
pub(super) fn plan(now: Moment, every: Duration, kept: usize, found: &[Moment], erased: Option<Moment>) -> Plan {
    let is_stale = |made: &Moment| erased.is_some_and(|erased| *made < erased) && now.since(*made) >= STALE_AFTER;
    let is_due = |newest: &Moment| now.since(*newest) >= every || is_stale(newest);
    let surplus = found.len().saturating_sub(kept);
    let is_surplus = |index: usize| index < surplus;
    let removes = found.iter().enumerate().filter(|(index, made)| is_surplus(*index) || is_stale(made));
    Plan { makes: found.last().is_none_or(is_due), removes: removes.map(|(_, made)| *made).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn hours(hours: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(hours * 60 * 60)
    }

    fn daily(now: Moment, found: &[u64], erased: Option<u64>) -> (bool, Vec<Moment>) {
        let found: Vec<_> = found.iter().map(|made| hours(*made)).collect();
        let Plan { makes, removes } = plan(now, DAY, 3, &found, erased.map(hours));
        (makes, removes)
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
    fn a_clock_that_was_set_back_deletes_nothing_early() {
        assert_eq!(daily(hours(10), &[77], Some(9)), (false, vec![]));
    }
}
