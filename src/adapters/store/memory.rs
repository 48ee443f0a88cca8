//! A store in memory, without a thread. Tests can delay its commits and make them fail.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::batch::{changes, refusal};
use crate::domain::id::Ward;
use crate::ports::store::key::Key;
use crate::ports::store::maintenance::{MaintenanceError, StoreMaintenance, TemporaryCopy};
use crate::ports::store::{Batch, Refusal, Store, StoreError, Term, Value};

/// The in-memory counterpart of the store on disk.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

/// A fault that replaces the normal outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is stored, and the store has failed until it is opened again.
    Failed,
    /// The response is lost. The store keeps working.
    Unknown {
        /// How many of the group's batches are stored nevertheless, counted from the first. A larger number than there are means all.
        batches: usize,
    },
}

type Outcome = Result<Vec<Result<(), Refusal>>, StoreError>;

#[derive(Default)]
struct State {
    values: BTreeMap<Key, Value>,
    held: BTreeMap<Ward, Term>,
    last_term: u64,
    is_held: bool,
    /// Whether waiting commits can be read already.
    is_held_visible: bool,
    waiting: VecDeque<(Work, oneshot::Sender<Outcome>)>,
    faults: VecDeque<Fault>,
    failed: bool,
    /// Keys that cannot be read.
    damaged: BTreeSet<Key>,
    asked: u64,
}

/// Work that waits for [`MemoryStore::commit_next`].
enum Work {
    Commit(Vec<Batch>),
    Answer(Outcome),
}

impl MemoryStore {
    /// An empty store that commits immediately.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store whose commits wait for [`Self::commit_next`].
    pub fn holding() -> Self {
        let store = Self::default();
        store.state.lock().is_held = true;
        store
    }

    /// Commits the group that has waited longest, and answers it. False if none waits.
    pub fn commit_next(&self) -> bool {
        let mut state = self.state.lock();
        let Some((work, answer)) = state.waiting.pop_front() else { return false };
        let outcome = match work {
            Work::Commit(group) => state.commit(group),
            Work::Answer(outcome) => outcome,
        };
        drop(state);
        // The caller may be gone. The group is stored nevertheless, as it is on disk.
        let _ = answer.send(outcome);
        true
    }

    /// Commits all waiting groups. Later commits are immediate.
    pub fn release(&self) {
        let mut state = self.state.lock();
        (state.is_held, state.is_held_visible) = (false, false);
        drop(state);
        while self.commit_next() {}
    }

    /// Makes commits wait for [`Self::commit_next`] from now on.
    pub fn hold(&self) {
        self.state.lock().is_held = true;
    }

    /// Like [`hold`](Self::hold), but waiting commits can already be read, as on a disk that was written and not synced.
    pub fn hold_in_sight(&self) {
        let mut state = self.state.lock();
        (state.is_held, state.is_held_visible) = (true, true);
    }

    /// Makes every read that includes this key fail from now on.
    pub fn damage(&self, key: Key) {
        self.state.lock().damaged.insert(key);
    }

    /// Whether it contains a key that satisfies `is`.
    pub fn has(&self, is: impl FnMut(&Key) -> bool) -> bool {
        self.state.lock().values.keys().any(is)
    }

    /// The number of reads and writes so far.
    pub fn asked(&self) -> u64 {
        self.state.lock().asked
    }

    /// The number of waiting groups.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Adds a fault to the queue; each commit takes one.
    pub fn fail_next(&self, fault: Fault) {
        self.state.lock().faults.push_back(fault);
    }

    /// Simulates a crash and a new start: committed data stays, waiting groups are lost with an unknown outcome, wards are
    /// released, and faults are cleared.
    pub fn reopen(&self) {
        let mut state = self.state.lock();
        state.held.clear();
        state.faults.clear();
        state.failed = false;
        let lost = std::mem::take(&mut state.waiting);
        drop(state);
        for (_, answer) in lost {
            let _ = answer.send(Err(StoreError::Unknown("the store was reopened before it answered".into())));
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn acquire_ward(&self, ward: Ward) -> Result<Term, StoreError> {
        let mut state = self.state.lock();
        if state.failed {
            return Err(failed());
        }
        state.last_term += 1;
        let term = Term(state.last_term);
        state.held.insert(ward, term);
        Ok(term)
    }

    async fn commit(&self, group: Vec<Batch>) -> Outcome {
        let answer = {
            let mut state = self.state.lock();
            state.asked += 1;
            if !state.is_held {
                return state.commit(group);
            }
            let (sender, answer) = oneshot::channel();
            let work = if state.is_held_visible { Work::Answer(state.commit(group)) } else { Work::Commit(group) };
            state.waiting.push_back((work, sender));
            answer
        };
        answer.await.unwrap_or_else(|_| Err(StoreError::Unknown("the store is gone".into())))
    }

    async fn get(&self, key: Key) -> Result<Option<Value>, StoreError> {
        let mut state = self.state.lock();
        state.asked += 1;
        state.check(&key)?;
        Ok(state.values.get(&key).cloned())
    }

    async fn scan(&self, from: Key, to: Key, newest_first: bool, limit: usize) -> Result<Vec<(Key, Value)>, StoreError> {
        if from >= to {
            return Ok(Vec::new());
        }
        let mut state = self.state.lock();
        state.asked += 1;
        let state = &*state;
        let found = state.values.range(from..to).map(|(key, value)| {
            state.check(key)?;
            Ok((key.clone(), value.clone()))
        });
        if newest_first { found.rev().take(limit).collect() } else { found.take(limit).collect() }
    }
}

#[async_trait]
impl StoreMaintenance for MemoryStore {
    async fn backup(self: Arc<Self>, to: &Path) -> Result<u64, MaintenanceError> {
        let records: Vec<_> = self.state.lock().values.iter().map(|(key, value)| Ok((key.clone(), value.clone()))).collect();
        let to = to.to_path_buf();
        let copied = tokio::task::spawn_blocking(move || super::backup::write(&to, records.into_iter(), |_| {}));
        Ok(copied.await.map_err(|panic| MaintenanceError::Failed(format!("copying panicked: {panic}")))??.records)
    }

    async fn copy_for(self: Arc<Self>, _: u32) -> Result<TemporaryCopy, MaintenanceError> {
        Err(MaintenanceError::Failed("a store in memory has no folder".to_owned()))
    }
}

impl State {
    fn check(&self, key: &Key) -> Result<(), StoreError> {
        if self.damaged.contains(key) { Err(StoreError::Damaged(format!("{key} is torn"))) } else { Ok(()) }
    }

    fn commit(&mut self, group: Vec<Batch>) -> Outcome {
        if self.failed {
            return Err(failed());
        }
        match self.faults.pop_front() {
            None => group.into_iter().map(|batch| self.store(batch)).collect(),
            Some(Fault::Failed) => {
                self.failed = true;
                Err(failed())
            }
            Some(Fault::Unknown { batches }) => {
                for batch in group.into_iter().take(batches) {
                    self.store(batch)?.ok();
                }
                Err(StoreError::Unknown("the response was lost".into()))
            }
        }
    }

    fn store(&mut self, batch: Batch) -> Result<Result<(), Refusal>, StoreError> {
        let held = self.held.get(&batch.ward).copied().unwrap_or_default();
        if let Some(refusal) = refusal(&batch, held, |key| Ok(self.values.get(key).cloned()), StoreError::Damaged)? {
            return Ok(Err(refusal));
        }
        for (key, value) in changes(batch) {
            match value {
                Some(value) => self.values.insert(key, value),
                None => self.values.remove(&key),
            };
        }
        Ok(Ok(()))
    }
}

fn failed() -> StoreError {
    StoreError::Failed("a write failed; open the store again".into())
}

#[cfg(test)]
mod tests;
