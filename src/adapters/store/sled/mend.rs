//! Making a store consistent again after a loss that was accepted: what is missing counts as deleted.

use super::copy::readable;
use super::facts::Facts;
use crate::adapters::store::audit::{Audit, Problem, Report};
use crate::domain::id::Seq;
use crate::ports::store::Value;
use crate::ports::store::keeper::Complete;
use crate::ports::store::key::{Key, Kind};

/// Makes anew what the rest of a store tells of what it lost, and mends what is wrong then. Nothing in it may be unreadable. The
/// facts are the caller's to write.
pub(super) fn restored(db: &sled::Db, complete: &mut dyn Complete, facts: &mut Facts) -> Result<(), sled::Error> {
    completed(db, complete)?;
    let report = Audit::keeping_all().run_on(readable(db), |_| {});
    for problem in &report.problems {
        tracing::warn!("{problem}");
    }
    let left = mend(db, &report, facts)?;
    if !report.is_sound() {
        tracing::warn!(problems = report.problem_count, left, "what was lost counts as deleted");
    }
    Ok(())
}

/// Makes anew what is not there and has to be, as the rest tells.
fn completed(db: &sled::Db, complete: &mut dyn Complete) -> Result<(), sled::Error> {
    for entry in db.iter() {
        let (key, value) = entry?;
        complete.note(&Key::from_bytes(&key), &value);
    }
    let add = |(key, value): (Key, Value)| -> Result<(), sled::Error> {
        if !db.contains_key(key.as_bytes())? {
            tracing::warn!("the record {key} was lost; it is made anew");
            db.insert(key.as_bytes(), value)?;
        }
        Ok(())
    };
    complete.lacking().into_iter().try_for_each(add)?;
    for (key, value) in complete.behind() {
        tracing::warn!("the record {key} was lost or is behind the rest; it is made anew");
        db.insert(key.as_bytes(), value)?;
    }
    // What is there already is left alone, so whoever is right comes first.
    for entry in db.iter().rev() {
        let (key, value) = entry?;
        complete.follows(&Key::from_bytes(&key), &value).into_iter().try_for_each(add)?;
    }
    Ok(())
}

/// Mends what a reading found, and returns how much of it could not be mended.
///
/// A journal gets a low-water mark above what it misses, so that its numbers go on; a head that lags behind is moved to the last event.
fn mend(db: &sled::Db, report: &Report, facts: &mut Facts) -> Result<u64, sled::Error> {
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
