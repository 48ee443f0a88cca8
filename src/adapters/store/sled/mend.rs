//! Making a store consistent again after a loss that was accepted: what is missing counts as deleted.

use super::facts::Facts;
use crate::adapters::store::audit::{Problem, Report};
use crate::domain::id::Seq;
use crate::ports::store::key::{Key, Kind};

/// Mends what a reading found, and returns how much of it could not be mended.
///
/// A journal gets a low-water mark above what it misses, so that its numbers go on; a head that lags behind is moved to the last event.
pub(super) fn mend(db: &sled::Db, report: &Report, facts: &mut Facts) -> Result<u64, sled::Error> {
    let mut batch = sled::Batch::default();
    let mut left = report.problem_count - report.problems.len() as u64;
    for problem in &report.problems {
        match problem {
            Problem::Missing { ward, channel, to, .. } => {
                // Ranges of one channel come in ascending order, so the highest mark is the last.
                let mark = Key::new(*ward, Kind::Tombstone).channel(*channel);
                batch.insert(mark.as_bytes(), &to.next().0.to_be_bytes());
            }
            Problem::BeyondHead { ward, channel, last: Seq(last), .. } => {
                batch.insert(Key::head(*ward, *channel).as_bytes(), &last.to_be_bytes());
            }
            Problem::Miscounted { found, .. } => facts.counts.events = *found,
            Problem::Malformed(_) | Problem::Newer { .. } | Problem::Unreadable(_) => left += 1,
        }
    }
    db.apply_batch(batch)?;
    Ok(left)
}
