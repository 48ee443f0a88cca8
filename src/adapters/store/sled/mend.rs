//! Making a store consistent again after a loss that was accepted: what is missing counts as deleted.

use super::facts::Facts;
use super::readable::records;
use crate::adapters::store::audit::{Audit, Hole, Problem, Report};
use crate::domain::id::Seq;
use crate::ports::store::Value;
use crate::ports::store::key::{Key, Kind};
use crate::ports::store::maintenance::Reconstruct;

/// It is told that the work goes on every so many records: few enough for a disk that takes a hundredth of a second for each.
const TOLD_EVERY: u64 = 256;

/// What a first reading found that cannot be read: how many places, and the first.
pub(super) type Holes = Option<(usize, Hole)>;

/// Takes note of all that can be read. `goes_on` is told now and then that this goes on.
pub(super) fn noted(db: &sled::Db, complete: &mut dyn Reconstruct, goes_on: impl FnMut()) -> Holes {
    let mut holes: Holes = None;
    let mut pace = Pace::new(goes_on);
    for record in records(db) {
        pace.step();
        match record {
            Ok((key, value)) => complete.note(&key, &value),
            Err(hole) => holes = Some(holes.map_or_else(|| (1, hole), |(count, first)| (count + 1, first))),
        }
    }
    holes
}

/// Makes anew what the rest of a store tells of what it lost, and mends what is wrong then. Everything in it was [noted](noted), and nothing
/// may be unreadable. The facts are the caller's to write.
pub(super) fn restored(
    db: &sled::Db,
    complete: &dyn Reconstruct,
    facts: &mut Facts,
    goes_on: impl FnMut(),
) -> Result<(), sled::Error> {
    let mut pace = Pace::new(goes_on);
    for (key, value) in complete.missing_records() {
        pace.step();
        make_anew(db, complete, &key, value)?;
    }
    for (key, value) in complete.outdated_counters() {
        pace.step();
        tracing::warn!("the record {key} was lost, is behind the rest or cannot be read; it is made anew");
        db.insert(key.as_bytes(), value)?;
    }
    // What follows from the records is in no journal, so it can be made while those are looked through.
    let mut audit = Audit::keeping_all();
    for entry in db.iter() {
        pace.step();
        let (key, value) = entry?;
        let key = Key::from_bytes(&key);
        audit.read(&key, &value);
        complete.derived_records(&key, &value).into_iter().try_for_each(|(key, value)| make_anew(db, complete, &key, value))?;
    }
    let report = audit.finish();
    for problem in &report.problems {
        tracing::warn!("{problem}");
    }
    let left = mend(db, &report, facts)?;
    if !report.is_sound() {
        tracing::warn!(problems = report.problem_count, left, "what was lost counts as deleted");
    }
    Ok(())
}

/// Makes a record anew that others tell of, unless it is there and right.
fn make_anew(db: &sled::Db, complete: &dyn Reconstruct, key: &Key, value: Value) -> Result<(), sled::Error> {
    let there = db.get(key.as_bytes())?;
    if there.is_none_or(|there| complete.should_replace(key, &value, &there)) {
        tracing::warn!("the record {key} was lost, is behind the rest or cannot be read; it is made anew");
        db.insert(key.as_bytes(), value)?;
    }
    Ok(())
}

/// Tells that work goes on.
struct Pace<F: FnMut()> {
    steps: u64,
    goes_on: F,
}

impl<F: FnMut()> Pace<F> {
    fn new(goes_on: F) -> Self {
        Self { steps: 0, goes_on }
    }

    fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(TOLD_EVERY) {
            (self.goes_on)();
        }
    }
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
            Problem::Malformed(_) | Problem::Illegible(_) | Problem::Newer { .. } | Problem::Unreadable(_) => left += 1,
        }
    }
    db.apply_batch(batch)?;
    Ok(left)
}
