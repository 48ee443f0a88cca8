//! A consistent snapshot of all records while the store continues to be written to.
//!
//! Before the committer changes a key that the snapshot has not read yet, it saves the old value in an overlay. The snapshot uses
//! the old value.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::unreadable;
use crate::ports::store::key::Key;
use crate::ports::store::{StoreError, Value};

/// The old values of keys that changed since a snapshot began.
#[derive(Default)]
pub(super) struct Overlay {
    state: Mutex<OverlayState>,
}

#[derive(Default)]
struct OverlayState {
    /// The last key that the snapshot has read.
    passed: Option<Vec<u8>>,
    ended: bool,
    saved: BTreeMap<Vec<u8>, Option<sled::IVec>>,
}

impl Overlay {
    /// Saves a key's old value, if the snapshot still needs it. This must be called before the key changes. `value` reads the current value.
    pub(super) fn save(&self, key: &Key, value: impl FnOnce() -> sled::Result<Option<sled::IVec>>) -> sled::Result<()> {
        let mut state = self.state.lock();
        let key = key.as_bytes();
        if state.ended || state.passed.as_deref().is_some_and(|passed| key <= passed) || state.saved.contains_key(key) {
            return Ok(());
        }
        state.saved.insert(key.to_vec(), value()?);
        Ok(())
    }
}

/// Every record, ascending, as of the moment when the committer registered the overlay, up to the first unreadable one.
pub(super) struct Snapshot {
    entries: sled::Iter,
    overlay: Arc<Overlay>,
    ready: VecDeque<(Key, Value)>,
}

impl Snapshot {
    /// A snapshot of a database whose committer has registered the overlay.
    pub(super) fn new(db: &sled::Db, overlay: Arc<Overlay>) -> Self {
        Self { entries: db.iter(), overlay, ready: VecDeque::new() }
    }

    /// Moves the records up to this entry to `ready`. `None`: moves all remaining ones.
    fn advance(&mut self, entry: Option<(sled::IVec, sled::IVec)>) {
        let mut state = self.overlay.state.lock();
        let due = match &entry {
            None => std::mem::take(&mut state.saved),
            Some((key, _)) => {
                let mut later = state.saved.split_off(key.as_ref());
                let same = later.remove_entry(key.as_ref());
                let mut due = std::mem::replace(&mut state.saved, later);
                due.extend(same);
                due
            }
        };
        let changed = entry.as_ref().is_some_and(|(key, _)| due.contains_key(key.as_ref()));
        self.ready.extend(due.iter().filter_map(|(key, old)| old.as_ref().map(|old| (Key::from_bytes(key), old.to_vec()))));
        match entry {
            None => state.ended = true,
            Some((key, value)) => {
                if !changed {
                    self.ready.push_back((Key::from_bytes(&key), value.to_vec()));
                }
                state.passed = Some(key.to_vec());
            }
        }
    }
}

impl Iterator for Snapshot {
    type Item = Result<(Key, Value), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.ready.pop_front() {
                return Some(Ok(pair));
            }
            if self.overlay.state.lock().ended {
                return None;
            }
            match self.entries.next() {
                Some(Err(error)) => return Some(Err(unreadable(&error))),
                Some(Ok(entry)) => self.advance(Some(entry)),
                None => self.advance(None),
            }
        }
    }
}
