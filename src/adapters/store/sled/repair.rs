//! Makes a store consistent after an accepted loss: missing events count as deleted.

use super::facts::Facts;
use crate::audit::{Problem, Report};
use crate::domain::id::Seq;
use crate::ports::store::key::{Key, Kind};

/// Logs the problems of an audit, and repairs those of journals.
///
/// A journal gets a low-water mark above its gaps, so that its numbers continue. A head that is too low is set to the last event.
pub(super) fn repair(db: &sled::Db, report: &Report, facts: &mut Facts) -> Result<(), sled::Error> {
    let mut batch = sled::Batch::default();
    let mut left = 0;
    for problem in &report.problems {
        tracing::warn!("{problem}");
        match problem {
            Problem::Missing { channel, to, .. } => {
                // The gaps of one channel are in ascending order, so the highest mark is written last.
                let mark = Key::new(channel.ward, Kind::Tombstone).channel(channel.channel);
                batch.insert(mark.as_bytes(), &to.next().0.to_be_bytes());
            }
            Problem::BeyondHead { channel, last: Seq(last), .. } => {
                batch.insert(Key::head(channel.ward, channel.channel).as_bytes(), &last.to_be_bytes());
            }
            Problem::Miscounted { found, .. } => facts.counts.events = *found,
            Problem::Malformed(_) | Problem::Illegible(_) | Problem::Newer { .. } => left += 1,
        }
    }
    db.apply_batch(batch)?;
    tracing::warn!(
        problems = report.problem_count,
        left,
        "the loss is accepted: missing events count as deleted; what was lost besides events cannot be listed: memberships, who said what, ids of \
         messages"
    );
    Ok(())
}
