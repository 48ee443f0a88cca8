//! Repairs a store after an accepted loss: missing events count as deleted.

use super::facts::Facts;
use super::readable::records;
use crate::adapters::store::audit::{Audit, Hole, Problem, Report};
use crate::domain::id::Seq;
use crate::ports::store::Value;
use crate::ports::store::key::{Key, Kind};
use crate::ports::store::maintenance::Reconstruct;

/// Progress is reported after this many records: few enough for a disk that takes a hundredth of a second for each.
const REPORT_EVERY: u64 = 256;

/// The unreadable ranges that a first pass found: their number, and the first one.
pub(super) type Holes = Option<(usize, Hole)>;

/// Passes all readable records to `reconstruct`. `report_progress` is called regularly.
pub(super) fn observe(db: &sled::Db, reconstruct: &mut dyn Reconstruct, report_progress: impl FnMut()) -> Holes {
    let mut holes: Holes = None;
    let mut progress = Progress::new(report_progress);
    for record in records(db) {
        progress.step();
        match record {
            Ok((key, value)) => reconstruct.observe(&key, &value),
            Err(hole) => holes = Some(holes.map_or_else(|| (1, hole), |(count, first)| (count + 1, first))),
        }
    }
    holes
}

/// Rebuilds lost records from the others, and repairs the remaining problems. All records must have been [observed](observe), and all must be
/// readable. The caller writes the facts.
pub(super) fn repair(
    db: &sled::Db,
    reconstruct: &dyn Reconstruct,
    facts: &mut Facts,
    report_progress: impl FnMut(),
) -> Result<(), sled::Error> {
    let mut progress = Progress::new(report_progress);
    for (key, value) in reconstruct.missing_records() {
        progress.step();
        rebuild(db, reconstruct, &key, value)?;
    }
    for (key, value) in reconstruct.outdated_counters() {
        progress.step();
        tracing::warn!("the record {key} was lost, is outdated or cannot be read; it is rebuilt");
        db.insert(key.as_bytes(), value)?;
    }
    // Index records are in no journal, so they can be rebuilt while the journals are audited.
    let mut audit = Audit::keeping_all();
    for entry in db.iter() {
        progress.step();
        let (key, value) = entry?;
        let key = Key::from_bytes(&key);
        audit.read(&key, &value);
        reconstruct
            .derived_records(&key, &value)
            .into_iter()
            .try_for_each(|(key, value)| rebuild(db, reconstruct, &key, value))?;
    }
    let report = audit.finish();
    for problem in &report.problems {
        tracing::warn!("{problem}");
    }
    let left = repair_problems(db, &report, facts)?;
    if !report.is_sound() {
        tracing::warn!(problems = report.problem_count, left, "lost events count as deleted");
    }
    Ok(())
}

/// Rebuilds a record, unless a correct one is stored.
fn rebuild(db: &sled::Db, reconstruct: &dyn Reconstruct, key: &Key, value: Value) -> Result<(), sled::Error> {
    let stored = db.get(key.as_bytes())?;
    if stored.is_none_or(|stored| reconstruct.should_replace(key, &value, &stored)) {
        tracing::warn!("the record {key} was lost, is outdated or cannot be read; it is rebuilt");
        db.insert(key.as_bytes(), value)?;
    }
    Ok(())
}

/// Reports regularly that work continues.
struct Progress<F: FnMut()> {
    steps: u64,
    report_progress: F,
}

impl<F: FnMut()> Progress<F> {
    fn new(report_progress: F) -> Self {
        Self { steps: 0, report_progress }
    }

    fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(REPORT_EVERY) {
            (self.report_progress)();
        }
    }
}

/// Repairs the problems of an audit, and returns how many could not be repaired.
///
/// A journal gets a low-water mark above its gaps, so that its numbers continue. A head that is too low is set to the last event.
fn repair_problems(db: &sled::Db, report: &Report, facts: &mut Facts) -> Result<u64, sled::Error> {
    let mut batch = sled::Batch::default();
    let mut left = report.problem_count - report.problems.len() as u64;
    for problem in &report.problems {
        match problem {
            Problem::Missing { ward, channel, to, .. } => {
                // The gaps of one channel are in ascending order, so the highest mark is written last.
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
