//! A small in-memory store. A test can delay its commits or make them fail.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::domain::id::{Seq, Ward};
use crate::ports::store::key::Key;
use crate::ports::store::{Batch, Refusal, Store, StoreError, Term, Value, Write};

pub struct TestStore {
    inner: Mutex<Inner>,
    is_held: watch::Sender<bool>,
    /// Waiting commits proceed in the order of their arrival.
    order: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Inner {
    values: BTreeMap<Key, Value>,
    terms: HashMap<Ward, Term>,
    groups: Vec<usize>,
    fault: Option<StoreError>,
    unreadable: BTreeSet<Ward>,
}

impl Default for TestStore {
    fn default() -> Self {
        Self::new()
    }
}

impl TestStore {
    pub fn new() -> Self {
        Self { inner: Mutex::default(), is_held: watch::Sender::new(false), order: tokio::sync::Mutex::default() }
    }

    /// Makes commits wait from now on.
    pub fn hold(&self) {
        self.is_held.send_replace(true);
    }

    /// Lets waiting commits proceed.
    pub fn release(&self) {
        self.is_held.send_replace(false);
    }

    /// Makes the next commit store everything and return this error.
    pub fn fail_next(&self, error: StoreError) {
        self.inner.lock().fault = Some(error);
    }

    /// Makes scans of these wards fail, and of no others.
    pub fn cannot_read(&self, wards: impl IntoIterator<Item = Ward>) {
        self.inner.lock().unreadable = wards.into_iter().collect();
    }

    /// The sizes of all groups that were committed.
    pub fn groups(&self) -> Vec<usize> {
        self.inner.lock().groups.clone()
    }

    pub fn count(&self, prefix: Key) -> usize {
        self.inner.lock().values.range(prefix.clone()..prefix.end()).count()
    }

    pub fn put(&self, key: Key, value: Value) {
        self.inner.lock().values.insert(key, value);
    }

    pub fn remove(&self, key: &Key) {
        self.inner.lock().values.remove(key);
    }
}

#[async_trait]
impl Store for TestStore {
    async fn acquire_ward(&self, ward: Ward) -> Result<Term, StoreError> {
        let mut inner = self.inner.lock();
        let term = inner.terms.entry(ward).or_default();
        term.0 += 1;
        Ok(*term)
    }

    async fn commit(&self, group: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let _order = self.order.lock().await;
        self.is_held.subscribe().wait_for(|is_held| !is_held).await.unwrap();
        let mut inner = self.inner.lock();
        inner.groups.push(group.len());
        let results = group.into_iter().map(|batch| inner.store(batch)).collect();
        inner.fault.take().map_or(Ok(results), Err)
    }

    async fn get(&self, key: Key) -> Result<Option<Value>, StoreError> {
        Ok(self.inner.lock().values.get(&key).cloned())
    }

    async fn scan(&self, from: Key, to: Key, newest_first: bool, limit: usize) -> Result<Vec<(Key, Value)>, StoreError> {
        if from >= to {
            return Ok(Vec::new());
        }
        let inner = self.inner.lock();
        if inner.unreadable.contains(&Ward(from.as_bytes()[0])) {
            return Err(StoreError::Damaged("as the test wants it".into()));
        }
        let found = inner.values.range(from..to).map(|(key, value)| (key.clone(), value.clone()));
        Ok(if newest_first { found.rev().take(limit).collect() } else { found.take(limit).collect() })
    }
}

impl Inner {
    fn store(&mut self, batch: Batch) -> Result<(), Refusal> {
        let current = self.terms.get(&batch.ward).copied().unwrap_or_default();
        if batch.term != current {
            return Err(Refusal::OldTerm { ward: batch.ward, named: batch.term, current });
        }
        if let Some(append) = &batch.append {
            let head = self.values.get(&Key::head(batch.ward, append.channel));
            let last = Seq(head.map_or(0, |bytes| u64::from_be_bytes(bytes.as_slice().try_into().unwrap())));
            if last != append.after {
                return Err(Refusal::Gap { channel: append.channel, named: append.after, last });
            }
        }
        if let Some(key) = batch.fresh.iter().find(|key| self.values.contains_key(*key)) {
            return Err(Refusal::Exists { key: key.clone(), value: self.values[key].clone() });
        }
        if let Some(append) = batch.append {
            let mut last = append.after;
            for record in append.records {
                last = last.next();
                self.values.insert(Key::event(batch.ward, append.channel, last), record);
                self.values.insert(Key::head(batch.ward, append.channel), last.0.to_be_bytes().to_vec());
            }
        }
        for write in batch.writes {
            match write {
                Write::Put(key, value) => self.values.insert(key, value),
                Write::Remove(key) => self.values.remove(&key),
            };
        }
        Ok(())
    }
}
