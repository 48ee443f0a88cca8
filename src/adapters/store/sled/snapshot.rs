//! Reading everything as it was at one moment, while the store goes on being written to.
//!
//! Before the committer changes a key that the reading has not passed yet, it lays the old value aside; the reading takes that one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::readable::Readable;
use crate::adapters::store::audit::Hole;
use crate::ports::store::Value;
use crate::ports::store::key::Key;

/// Old values of what changed since a reading began.
#[derive(Default)]
pub(super) struct Overlay {
    state: Mutex<Laid>,
}

#[derive(Default)]
struct Laid {
    /// The last key that the reading has passed.
    passed: Option<Vec<u8>>,
    ended: bool,
    aside: BTreeMap<Vec<u8>, Option<sled::IVec>>,
}

impl Overlay {
    /// To be called before a key changes. `value` is asked for what the key holds now, if that matters.
    pub(super) fn keep(&self, key: &Key, value: impl FnOnce() -> sled::Result<Option<sled::IVec>>) -> sled::Result<()> {
        let mut laid = self.laid();
        let key = key.as_bytes();
        if laid.ended || laid.passed.as_deref().is_some_and(|passed| key <= passed) || laid.aside.contains_key(key) {
            return Ok(());
        }
        laid.aside.insert(key.to_vec(), value()?);
        Ok(())
    }

    fn laid(&self) -> MutexGuard<'_, Laid> {
        // Each change below is one insertion or removal: there is no half of it to see.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every key with its value, ascending, as they were when the committer took note of the overlay. What cannot be read is told in its place.
pub(super) struct Snapshot {
    entries: Readable,
    overlay: Arc<Overlay>,
    ready: VecDeque<(Key, Value)>,
}

impl Snapshot {
    /// Reads a database whose committer has taken note of the overlay.
    pub(super) fn new(db: &sled::Db, overlay: Arc<Overlay>) -> Self {
        Self { entries: Readable::of(db), overlay, ready: VecDeque::new() }
    }

    /// Moves what is due up to this entry (all the rest, when there is none) to `ready`.
    fn advance(&mut self, entry: Option<(sled::IVec, sled::IVec)>) {
        let mut laid = self.overlay.laid();
        let due = match &entry {
            None => std::mem::take(&mut laid.aside),
            Some((key, _)) => {
                let mut later = laid.aside.split_off(key.as_ref());
                let same = later.remove_entry(key.as_ref());
                let mut due = std::mem::replace(&mut laid.aside, later);
                due.extend(same);
                due
            }
        };
        let changed = entry.as_ref().is_some_and(|(key, _)| due.contains_key(key.as_ref()));
        self.ready.extend(due.iter().filter_map(|(key, old)| old.as_ref().map(|old| (Key::from_bytes(key), old.to_vec()))));
        match entry {
            None => laid.ended = true,
            Some((key, value)) => {
                if !changed {
                    self.ready.push_back((Key::from_bytes(&key), value.to_vec()));
                }
                laid.passed = Some(key.to_vec());
            }
        }
    }
}

impl Iterator for Snapshot {
    type Item = Result<(Key, Value), Hole>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.ready.pop_front() {
                return Some(Ok(pair));
            }
            if self.overlay.laid().ended {
                return None;
            }
            match self.entries.next() {
                Some(Err(hole)) => return Some(Err(hole)),
                Some(Ok(entry)) => self.advance(Some(entry)),
                None => self.advance(None),
            }
        }
    }
}
