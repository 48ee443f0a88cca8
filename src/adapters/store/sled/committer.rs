//! The one thread that writes: it checks batches, applies them, and answers when they are on disk.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::durable::Durable;
use super::facts::{Facts, counts_bytes, counts_key, term_key};
use super::files;
use super::layout;
use super::letting_go::{FAILED_PATIENCE, let_go};
use super::log;
use super::snapshot::Overlay;
use crate::adapters::store::OpenError;
use crate::adapters::store::batch::{changes, events, refusal};
use crate::adapters::store::manifest::{self, Counts, Manifest};
use crate::domain::id::Ward;
use crate::ports::store::key::Key;
use crate::ports::store::{Batch, Refusal, StoreError, Term, Value};
use crate::telemetry::instruments::{Instruments, NONE};

// What is ordered while a group is on its way to the disk goes there together afterwards, up to this many orders.
const ORDERS_PER_FLUSH: usize = 256;

// Batches are handed to sled together, which costs it much less than one by one, up to about this many changes.
const CHANGES_PER_SLED_BATCH: usize = 2000;

// The manifest is never more than this behind (docs/design/storage.md D-18).
const MANIFEST_INTERVAL: Duration = Duration::from_secs(1);

// So long sled may take to end its work.
const CLOSE_PATIENCE: Duration = Duration::from_secs(60);

type Outcomes = Vec<Result<(), Refusal>>;

/// What the committer is asked to do.
pub(super) enum Order {
    /// Commit a group.
    Commit(Vec<Batch>, oneshot::Sender<Result<Outcomes, StoreError>>),
    /// Take a ward.
    Take(Ward, oneshot::Sender<Result<Term, StoreError>>),
    /// Lay old values aside from now on, and say so.
    Watch(Arc<Overlay>, Sender<()>),
}

/// An order that is carried out, and answered once it is on disk.
enum Done {
    Commit(Outcomes, oneshot::Sender<Result<Outcomes, StoreError>>),
    Take(Term, oneshot::Sender<Result<Term, StoreError>>),
    Watch(Sender<()>),
}

/// Writes to one database.
pub(super) struct Committer {
    db: sled::Db,
    data: PathBuf,
    files: Durable,
    held: BTreeMap<Ward, Term>,
    /// What a ward's first taking in this opening gets.
    opening: Term,
    last_term: Term,
    counts: Counts,
    /// What is checked and not yet applied.
    staged: BTreeMap<Key, Option<Value>>,
    overlays: Vec<Weak<Overlay>>,
    failed: Option<String>,
    manifest: Manifest,
    /// What the manifest can say by now.
    durable: (Counts, u64),
    /// Something was written since it was looked at how long the file is.
    may_shrink: bool,
    manifest_at: Instant,
    instruments: Instruments,
}

impl Committer {
    /// A committer for a database that was opened and found fit; makes sure of its names on disk.
    pub(super) fn new(
        db: sled::Db,
        facts: Facts,
        manifest: Manifest,
        data: &Path,
        instruments: Instruments,
    ) -> Result<Self, OpenError> {
        let term = Term(facts.term);
        let mut committer = Self {
            db,
            data: data.to_path_buf(),
            files: Durable::new(&layout::sled_folder(data)),
            held: BTreeMap::new(),
            opening: term,
            last_term: term,
            counts: facts.counts,
            staged: BTreeMap::new(),
            overlays: Vec::new(),
            failed: None,
            durable: (manifest.counts, manifest.db_bytes),
            manifest,
            // sled tidies up after opening, too.
            may_shrink: true,
            manifest_at: Instant::now(),
            instruments,
        };
        committer
            .make_durable()
            .and_then(|()| committer.files.sync_folder())
            .and_then(|()| manifest::write(data, &committer.manifest))
            .map_err(|error| OpenError::of(data, error))?;
        Ok(committer)
    }

    /// Carries out orders until nobody can give any more, then writes the manifest.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let is_behind = self.manifest_is_behind();
            let order = if is_behind {
                let left = MANIFEST_INTERVAL.saturating_sub(self.manifest_at.elapsed());
                orders.recv_timeout(left)
            } else if self.may_shrink {
                orders.recv_timeout(MANIFEST_INTERVAL)
            } else {
                orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match order {
                Ok(order) => self.carry_out(std::iter::once(order).chain(orders.try_iter().take(ORDERS_PER_FLUSH - 1)).collect()),
                Err(RecvTimeoutError::Timeout) => {
                    self.may_shrink &= is_behind;
                    self.promise_no_more_than_there_is();
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let shrunk = self.durable.1 < self.manifest.db_bytes;
            if self.manifest_is_behind() && (shrunk || self.manifest_at.elapsed() >= MANIFEST_INTERVAL) {
                self.write_manifest();
            }
        }
        self.close();
    }

    /// sled gives segments back in the background, a whole row of them at times, and perhaps when nothing more is written for long. A file
    /// that is shorter than was promised would be taken for damaged after a crash.
    fn promise_no_more_than_there_is(&mut self) {
        if self.failed.is_none()
            && let Ok(Some(bytes)) = files::db_bytes(&self.data)
        {
            self.durable.1 = self.durable.1.min(bytes);
        }
    }

    fn carry_out(&mut self, orders: Vec<Order>) {
        self.may_shrink = true;
        if let Some(why) = &self.failed {
            let failed = StoreError::Failed(why.clone());
            return orders.into_iter().for_each(|order| order.refuse(&failed));
        }
        let began = Instant::now();
        let mut done = Vec::with_capacity(orders.len());
        // sled panics on some kinds of damage; a panic here is a failed write like any other.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.apply(orders, &mut done)))
            .unwrap_or_else(|panic| Err(StoreError::Unknown(format!("sled panicked: {}", panic_text(&*panic)))));
        match outcome {
            Ok(()) => {
                if done.iter().any(|done| matches!(done, Done::Commit(..))) {
                    self.instruments.commit_duration.record(began.elapsed().as_secs_f64(), NONE);
                }
                done.into_iter().for_each(Done::answer);
            }
            Err(error) => {
                // Whoever is answered so tells of it.
                tracing::debug!(%error, folder = ?self.data, "a write failed; the store takes no more until it is opened again");
                self.failed = Some(error.to_string());
                done.into_iter().for_each(|done| done.fail(&error));
            }
        }
    }

    /// Applies orders in turn and makes them durable together. On an error it cannot be said which of them are stored.
    fn apply(&mut self, orders: Vec<Order>, done: &mut Vec<Done>) -> Result<(), StoreError> {
        let mut orders = orders.into_iter();
        for order in orders.by_ref() {
            match self.apply_one(order) {
                Ok(applied) => done.push(applied),
                Err(error) => {
                    let failed = StoreError::Failed(error.to_string());
                    orders.for_each(|order| order.refuse(&failed));
                    return Err(error);
                }
            }
        }
        self.write()?;
        self.db.flush().map_err(|error| unknown(&error))?;
        self.make_durable().map_err(|error| unknown(&error))
    }

    fn apply_one(&mut self, order: Order) -> Result<Done, StoreError> {
        match order {
            Order::Commit(group, answer) => match self.commit(group) {
                Ok(outcomes) => Ok(Done::Commit(outcomes, answer)),
                Err(error) => {
                    Order::Commit(Vec::new(), answer).refuse(&error);
                    Err(error)
                }
            },
            Order::Take(ward, answer) => Ok(Done::Take(self.take(ward), answer)),
            Order::Watch(overlay, answer) => {
                // What was ordered before belongs to what the overlay's reading shows.
                self.write()?;
                self.overlays.push(Arc::downgrade(&overlay));
                Ok(Done::Watch(answer))
            }
        }
    }

    fn commit(&mut self, group: Vec<Batch>) -> Result<Outcomes, StoreError> {
        let mut outcomes = Vec::with_capacity(group.len());
        let mut counts = Counts { groups: self.counts.groups + 1, ..self.counts };
        for batch in group {
            let held = self.held.get(&batch.ward).copied().unwrap_or_default();
            if let Some(refusal) = refusal(&batch, held, |key| self.value(key), StoreError::Unknown)? {
                outcomes.push(Err(refusal));
                continue;
            }
            counts.events += events(&batch);
            self.counts = counts;
            self.staged.extend(changes(batch));
            outcomes.push(Ok(()));
            if self.staged.len() >= CHANGES_PER_SLED_BATCH {
                self.write()?;
            }
        }
        Ok(outcomes)
    }

    /// Applies what is staged, all of it or nothing.
    fn write(&mut self) -> Result<(), StoreError> {
        if self.staged.is_empty() {
            return Ok(());
        }
        self.staged.insert(counts_key(), Some(counts_bytes(self.counts)));
        self.overlays.retain(|overlay| overlay.strong_count() > 0);
        let mut writes = sled::Batch::default();
        for (key, value) in std::mem::take(&mut self.staged) {
            self.lay_aside(&key)?;
            match value {
                Some(value) => writes.insert(key.as_bytes(), value),
                None => writes.remove(key.as_bytes()),
            }
        }
        self.db.apply_batch(writes).map_err(|error| unknown(&error))
    }

    fn take(&mut self, ward: Ward) -> Term {
        let mut term = self.opening;
        if self.held.contains_key(&ward) {
            term = Term(self.last_term.0 + 1);
            self.last_term = term;
            self.staged.insert(term_key(), Some(term.0.to_be_bytes().to_vec()));
        }
        self.held.insert(ward, term);
        term
    }

    fn lay_aside(&self, key: &Key) -> Result<(), StoreError> {
        for overlay in self.overlays.iter().filter_map(Weak::upgrade) {
            overlay.keep(key, || self.db.get(key.as_bytes())).map_err(|error| unknown(&error))?;
        }
        Ok(())
    }

    /// What a key holds, as the batches before have left it.
    fn value(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        if let Some(staged) = self.staged.get(key) {
            return Ok(staged.clone());
        }
        Ok(self.db.get(key.as_bytes()).map_err(|error| unknown(&error))?.map(|value| value.to_vec()))
    }

    fn make_durable(&mut self) -> std::io::Result<()> {
        if let Some(bytes) = self.files.sync()? {
            self.durable = (self.counts, bytes);
        }
        Ok(())
    }

    fn manifest_is_behind(&self) -> bool {
        self.durable != (self.manifest.counts, self.manifest.db_bytes)
    }

    fn write_manifest(&mut self) {
        let (counts, db_bytes) = self.durable;
        let manifest = Manifest { counts, db_bytes, ..self.manifest.clone() };
        self.manifest_at = Instant::now();
        match manifest::write(&self.data, &manifest) {
            Ok(()) => self.manifest = manifest,
            // An older manifest promises less, which is safe; the next try is a second away.
            Err(error) => tracing::warn!(%error, folder = ?self.data, "the manifest cannot be written"),
        }
    }

    /// Ends sled's work, then writes the last manifest: sled can shorten its file to the very end.
    fn close(self) {
        let Self { db, data, durable: (counts, mut db_bytes), manifest, failed, .. } = self;
        let is_closed = let_go(db, if failed.is_none() { CLOSE_PATIENCE } else { FAILED_PATIENCE });
        let mut closed = None;
        if failed.is_none()
            && is_closed
            && let Ok(bytes) = files::finished(&layout::sled_folder(&data))
        {
            db_bytes = bytes;
            // Without it the next opening is as after a crash.
            closed = log::closed(&layout::sled_folder(&data)).unwrap_or_default();
        }
        let manifest = Manifest { counts, db_bytes, closed, ..manifest };
        if let Err(error) = manifest::write(&data, &manifest) {
            tracing::warn!(%error, folder = ?data, "the manifest cannot be written");
        }
    }
}

impl Order {
    fn refuse(self, error: &StoreError) {
        match self {
            Self::Commit(_, answer) => drop(answer.send(Err(error.clone()))),
            Self::Take(_, answer) => drop(answer.send(Err(error.clone()))),
            // Reading goes on in a store that has failed; nothing changes any more.
            Self::Watch(_, answer) => drop(answer.send(())),
        }
    }
}

impl Done {
    // Whoever asked may have gone; what was asked for is done all the same.
    fn answer(self) {
        match self {
            Self::Commit(outcomes, answer) => drop(answer.send(Ok(outcomes))),
            Self::Take(term, answer) => drop(answer.send(Ok(term))),
            Self::Watch(answer) => drop(answer.send(())),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Self::Commit(_, answer) => drop(answer.send(Err(error.clone()))),
            Self::Take(_, answer) => drop(answer.send(Err(error.clone()))),
            Self::Watch(answer) => drop(answer.send(())),
        }
    }
}

fn unknown(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unknown(error.to_string())
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a word")
}
