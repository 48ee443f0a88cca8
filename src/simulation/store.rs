//! A store in memory that is slow, fails, fills up, and loses answers. When the process dies, it keeps any prefix of the last group.
//!
//! A group that is being committed can be read before it is on disk, as in the real store. A process that dies in between loses it again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use parking_lot::Mutex;

use super::book::{Arrival, Book, InFlight};
use super::dice::Dice;
use super::ends::Ends;
use super::plan::{Beat, FloorEvent, StoreFault};
use super::stage::{Ending, Stage, lock};
use crate::adapters::store::memory::MemoryStore;
use crate::domain::event::Recorded;
use crate::domain::id::{Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::{ChannelRecord, decode, decode_event};
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::{Batch, Refusal, Store, StoreError, Term, Value, Write};

/// An event of a journal, and when it was really on disk.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    pub(super) at: Duration,
    pub(super) life: u64,
    pub(super) channel_key: ChannelKey,
    pub(super) recorded: Recorded,
    /// The writer got an answer.
    pub(super) is_answered: bool,
    pub(super) in_flight: InFlight,
}

pub(super) struct SimStore {
    stage: Arc<Stage>,
    pub(super) inner: Arc<MemoryStore>,
    dice: Mutex<Dice>,
    commits: AtomicU64,
    /// The process crashes at one of the next commits: after this number of them, with this share of the group kept.
    crash: Mutex<Option<(u64, f64)>>,
    /// Commits run one after the other, as on a disk.
    order: tokio::sync::Mutex<()>,
    /// The group that can be read and is not on disk yet: for each batch its writes, and the values before them.
    unsynced: Mutex<Vec<Unsynced>>,
    pub(super) committed: Mutex<Vec<Committed>>,
    pub(super) book: Book,
    pub(super) ends: Ends,
    names: Mutex<BTreeMap<(Ward, ChannelNo), ChannelKey>>,
}

struct Unsynced {
    in_flight: InFlight,
    batch: Batch,
    before: Vec<(Key, Option<Value>)>,
}

impl SimStore {
    pub(super) fn new(stage: Arc<Stage>) -> Arc<Self> {
        let dice = Mutex::new(Dice::new(stage.plan.seed, "store"));
        Arc::new(Self {
            stage,
            inner: Arc::new(MemoryStore::new()),
            dice,
            commits: AtomicU64::new(0),
            crash: Mutex::default(),
            order: tokio::sync::Mutex::new(()),
            unsynced: Mutex::default(),
            committed: Mutex::default(),
            book: Book::default(),
            ends: Ends::default(),
            names: Mutex::default(),
        })
    }

    /// The process crashes at one of the next commits, unless faults are over by then.
    pub(super) fn crash_soon(&self, commits: u64, share: f64) {
        *lock(&self.crash) = Some((commits, share));
    }

    fn crashes_now(&self) -> Option<f64> {
        let mut crash = lock(&self.crash);
        let (left, share) = crash.as_mut().filter(|_| !self.stage.is_calm())?;
        *left -= 1;
        let share = Some(*share).filter(|_| *left == 0);
        if share.is_some() {
            *crash = None;
        }
        share
    }

    /// Whether a redaction or the sweep of a room was started and not finished.
    pub(super) fn has_unfinished_work(&self) -> bool {
        self.inner.has(|key| key.is(Kind::Meta) && is_unfinished_work(key))
    }

    /// Restores what a dead process leaves on disk: any prefix of the group in flight.
    pub(super) fn reopen(&self) {
        self.inner.reopen();
        self.book.restart();
        *lock(&self.crash) = None;
        let mut unsynced = std::mem::take(&mut *lock(&self.unsynced));
        let kept = lock(&self.dice).below(unsynced.len() as u64 + 1) as usize;
        if kept < unsynced.len() {
            self.stage.reach("batches lost in a crash");
        }
        for lost in unsynced.drain(kept..).rev() {
            let ward = lost.batch.ward;
            let term = at_once(self.inner.acquire_ward(ward)).expect("a store in memory can be opened");
            let restore = |(key, value): (Key, Option<Value>)| match value {
                Some(value) => Write::Put(key, value),
                None => Write::Remove(key),
            };
            let writes = lost.before.into_iter().map(restore).collect();
            let undone = Batch { ward, term, append: None, fresh: Vec::new(), writes };
            drop(at_once(self.inner.commit(vec![undone])));
        }
        for kept in unsynced {
            self.note(&kept.batch, kept.in_flight, false);
        }
        self.inner.reopen();
    }

    /// Everything that is stored.
    pub(super) fn all(&self) -> Vec<(Key, Value)> {
        let (from, to) = (Key::from_bytes(&[0]), Key::from_bytes(&[0xff; 300]));
        at_once(self.inner.scan(from, to, false, usize::MAX)).expect("a store in memory can be read")
    }

    /// The channel with this number.
    pub(super) fn channel_key_of(&self, ward: Ward, channel: ChannelNo) -> Option<ChannelKey> {
        lock(&self.names).get(&(ward, channel)).cloned()
    }

    fn draw<T>(&self, roll: impl FnOnce(&mut Dice) -> T) -> T {
        roll(&mut lock(&self.dice))
    }

    /// Records what was really stored.
    fn note(&self, batch: &Batch, in_flight: InFlight, is_answered: bool) {
        for write in &batch.writes {
            if let Write::Put(key, value) = write
                && key.is(Kind::ChannelOf)
                && let Ok(record) = decode::<ChannelRecord>(key, value)
                && let Some(no) = key::channel_in(key)
            {
                lock(&self.names).insert((batch.ward, no), ChannelKey::new(&record.guild, &record.channel));
            }
        }
        for write in &batch.writes {
            let channel_key = |key: &Key| self.channel_key_of(batch.ward, key::channel_in(key)?);
            self.book.note(&self.stage, write, channel_key, in_flight, is_answered);
        }
        let Some(append) = &batch.append else { return };
        let Some(channel_key) = self.channel_key_of(batch.ward, append.channel) else { return };
        let mut seq = append.after;
        for record in &append.records {
            seq = seq.next();
            match decode_event(&Key::event(batch.ward, append.channel, seq), record) {
                Ok(recorded) => {
                    let (at, life) = (self.stage.now(), self.stage.life());
                    self.stage.log(shown(&channel_key, &recorded));
                    if let Some(event) = FloorEvent::of(&recorded.event) {
                        self.stage.floor_changes(event, &channel_key.channel);
                    }
                    let channel_key = channel_key.clone();
                    lock(&self.committed).push(Committed { at, life, channel_key, recorded, is_answered, in_flight });
                }
                Err(error) => self.stage.violate(format!("an unreadable event is written: {error}")),
            }
        }
    }

    fn apply(&self, group: &[Batch]) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        at_once(self.inner.commit(group.to_vec()))
    }

    /// Part of a group is stored for good, and the writer gets no answer.
    fn tear(&self, group: &[Batch], share: f64, arrival: Arrival) {
        let kept = ((group.len() + 1) as f64 * share) as usize;
        let kept = &group[..kept.min(group.len())];
        if kept.len() < group.len() {
            self.stage.reach("torn commit");
        }
        if let Ok(results) = self.apply(kept) {
            kept.iter().zip(results).filter(|(_, result)| result.is_ok()).for_each(|(batch, _)| {
                self.note(batch, self.book.in_flight(arrival), false);
            });
        }
    }

    fn before(&self, batch: &Batch) -> Vec<(Key, Option<Value>)> {
        let mut keys: Vec<Key> = Vec::new();
        if let Some(append) = batch.append.as_ref().filter(|append| !append.records.is_empty()) {
            let mut seq = append.after;
            for _ in &append.records {
                seq = seq.next();
                keys.push(Key::event(batch.ward, append.channel, seq));
            }
            keys.push(Key::head(batch.ward, append.channel));
        }
        keys.extend(batch.writes.iter().map(|write| match write {
            Write::Put(key, _) | Write::Remove(key) => key.clone(),
        }));
        keys.into_iter().map(|key| (key.clone(), at_once(self.inner.get(key)).ok().flatten())).collect()
    }

    fn is_within(&self, window: Option<(Duration, Duration)>) -> bool {
        let now = self.stage.now();
        !self.stage.is_calm() && window.is_some_and(|(from, to)| (from..to).contains(&now))
    }
}

#[async_trait]
impl Store for SimStore {
    async fn acquire_ward(&self, ward: Ward) -> Result<Term, StoreError> {
        self.ends.watch_new(&self.stage);
        self.stage.alive().await;
        let _order = self.order.lock().await;
        self.inner.acquire_ward(ward).await
    }

    async fn commit(&self, group: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.ends.watch_new(&self.stage);
        let arrival = self.book.group_arrived(&self.stage, group.len());
        self.stage.alive().await;
        let _order = self.order.lock().await;
        self.stage.alive().await;
        let number = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_within(self.stage.plan.full) {
            self.stage.reach("full disk");
            self.book.group_failed(&self.stage);
            return Err(StoreError::Failed("no space left on device".into()));
        }
        if let Some(share) = self.crashes_now() {
            self.stage.reach("crash during a redaction");
            self.tear(&group, share, arrival);
            self.stage.end(Ending::Crashed(format!("at commit {number}, during a redaction, {share:.2} kept")));
            self.stage.alive().await;
        }
        let fault = self.stage.plan.store_faults.get(&number).filter(|_| !self.stage.is_calm());
        match fault {
            Some(StoreFault::Failed) => {
                self.stage.reach("failed commit");
                self.book.group_failed(&self.stage);
                return Err(StoreError::Failed("a write failed".into()));
            }
            Some(StoreFault::Unknown(share)) => {
                self.stage.reach("commit of unknown outcome");
                self.book.group_failed(&self.stage);
                self.tear(&group, *share, arrival);
                return Err(StoreError::Unknown("the answer was lost".into()));
            }
            Some(StoreFault::Crash(share)) => {
                self.stage.reach("crash at a commit");
                self.tear(&group, *share, arrival);
                self.stage.end(Ending::Crashed(format!("at commit {number}, {} batches, {share:.2} kept", group.len())));
                self.stage.alive().await;
            }
            None => {}
        }
        let mut results = Vec::new();
        for batch in group {
            // One by one, so that the value before each write is known.
            let before = self.before(&batch);
            let result = self.apply(std::slice::from_ref(&batch))?.remove(0);
            if result.is_ok() {
                let in_flight = self.book.in_flight(arrival);
                lock(&self.unsynced).push(Unsynced { in_flight, batch, before });
            }
            results.push(result);
        }
        let most = self.stage.plan.weather.commit_millis;
        let takes = match self.is_within(self.stage.plan.slow) {
            true => {
                self.stage.reach("slow commit");
                self.draw(|dice| dice.millis(200, 3_000))
            }
            false => self.draw(|dice| dice.millis(0, most)),
        };
        self.stage.pass(takes).await;
        for synced in std::mem::take(&mut *lock(&self.unsynced)) {
            self.note(&synced.batch, synced.in_flight, true);
        }
        self.book.group_answered(&self.stage);
        self.stage.beat(Beat::Committed);
        Ok(results)
    }

    async fn get(&self, key: Key) -> Result<Option<Value>, StoreError> {
        self.hesitate().await;
        self.inner.get(key).await
    }

    async fn scan(&self, from: Key, to: Key, newest_first: bool, limit: usize) -> Result<Vec<(Key, Value)>, StoreError> {
        self.hesitate().await;
        self.inner.scan(from, to, newest_first, limit).await
    }
}

impl SimStore {
    async fn hesitate(&self) {
        self.ends.watch_new(&self.stage);
        self.stage.alive().await;
        let share = self.stage.plan.weather.slow_reads;
        if share > 0.0
            && let Some(span) = self.draw(|dice| dice.chance(share).then(|| dice.millis(1, 20)))
        {
            self.stage.pass(span).await;
        }
    }
}

/// Whether the key notes that a redaction or the sweep of a room was started and not finished.
pub(super) fn is_unfinished_work(key: &Key) -> bool {
    let notes = key::index_removals(Ward(key.as_bytes()[0]));
    key.as_bytes().starts_with(notes.as_bytes()) || key::sweep_in(key).is_some()
}

/// An event in one line.
fn shown(channel_key: &ChannelKey, recorded: &Recorded) -> String {
    let (seq, handled) = (recorded.seq, recorded.handled);
    let event: String = format!("{:?}", recorded.event).chars().take(400).collect();
    format!("{} #{seq} after {handled}: {event}", channel_key.channel)
}

/// A store in memory needs no runtime.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("a store in memory answers at once")
}

/// Whether the journal's numbers have no gap. A journal that was deleted once may begin with any number.
pub(super) fn is_gapless(events: &[Recorded], was_deleted: bool) -> bool {
    let first = events.first().map_or(1, |first| first.seq.0);
    (first == 1 || was_deleted) && events.iter().zip(first..).all(|(recorded, expected)| recorded.seq == Seq(expected))
}
