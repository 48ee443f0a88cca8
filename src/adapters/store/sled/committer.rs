//! The only thread that writes: it checks batches, applies them, and answers when they are on disk.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::closing::{FAILED_TIMEOUT, close_within};
use super::commit_log::{Acknowledged, CommitLog, Lasts, lasts_of};
use super::durable::Durable;
use super::facts::{Facts, counts_bytes, counts_key, term_key};
use super::files;
use super::layout;
use super::snapshot::Overlay;
use crate::OpenError;
use crate::batch::{changes, events, refusal};
use crate::domain::id::{Seq, Ward};
use crate::manifest::{self, Counts, Manifest};
use crate::ports::store::key::{Key, Kind};
use crate::ports::store::{Batch, Refusal, StoreError, Term, Value, Write};
use crate::telemetry::instruments::Instruments;

// Requests that arrive during a flush are flushed together afterwards, at most this many at once.
const REQUESTS_PER_FLUSH: usize = 256;

// Batches are applied to sled together, up to about this many changes, because that is much cheaper than one by one.
const CHANGES_PER_SLED_BATCH: usize = 2000;

// The manifest is never more than this behind (docs/design/storage.md D-18).
const MANIFEST_INTERVAL: Duration = Duration::from_secs(1);

// The time limit for closing sled.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);

type Outcomes = Vec<Result<(), Refusal>>;

/// A request to the committer.
pub(super) enum Request {
    Commit(Vec<Batch>, oneshot::Sender<Result<Outcomes, StoreError>>),
    Take(Ward, oneshot::Sender<Result<Term, StoreError>>),
    /// Register an overlay: save old values in it from now on. Answered once that is done.
    Watch(Arc<Overlay>, Sender<()>),
}

/// Answers an applied request: it is on disk, or its outcome is unknown. The caller may be gone. The request is carried out
/// nevertheless.
type Answer = Box<dyn FnOnce(Result<(), StoreError>)>;

/// Writes to one database.
pub(super) struct Committer {
    db: sled::Db,
    data: PathBuf,
    files: Durable,
    log: CommitLog,
    /// The last events of channels since the last group was written to the log.
    appended: Lasts,
    held: BTreeMap<Ward, Term>,
    /// The term of a ward that is first acquired in this opening.
    opening_term: Term,
    last_term: Term,
    counts: Counts,
    /// Changes that are checked and not yet applied.
    staged: BTreeMap<Key, Option<Value>>,
    overlays: Vec<Weak<Overlay>>,
    failed: Option<String>,
    manifest: Manifest,
    /// The counts and the file length that are on disk, so that the manifest may contain them.
    durable: (Counts, u64),
    /// Whether data was written since the file's length was last checked.
    may_shrink: bool,
    manifest_at: Instant,
    instruments: Instruments,
}

impl Committer {
    /// A committer for a database that was opened and checked. It syncs the database and writes the manifest.
    pub(super) fn new(
        db: sled::Db,
        facts: Facts,
        manifest: Manifest,
        data: &Path,
        instruments: Instruments,
    ) -> Result<Self, OpenError> {
        let term = Term(facts.term);
        let lasts = lasts_of(&db).map_err(|error| super::open::explain(data, error))?;
        let acknowledged = Acknowledged { group: facts.counts.groups, lasts };
        let log = CommitLog::begin(data, &facts.store, acknowledged).map_err(|error| OpenError::of(data, error))?;
        let mut committer = Self {
            db,
            data: data.to_path_buf(),
            files: Durable::new(&layout::sled_folder(data)),
            log,
            appended: Lasts::new(),
            held: BTreeMap::new(),
            opening_term: term,
            last_term: term,
            counts: facts.counts,
            staged: BTreeMap::new(),
            overlays: Vec::new(),
            failed: None,
            durable: (manifest.counts, manifest.db_bytes),
            manifest,
            // sled can shorten the file after opening, too.
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

    /// Handles requests until all senders are gone, then writes the manifest.
    pub(super) fn run(mut self, requests: &Receiver<Request>) {
        loop {
            let is_behind = self.manifest_is_behind();
            let request = if is_behind {
                let left = MANIFEST_INTERVAL.saturating_sub(self.manifest_at.elapsed());
                requests.recv_timeout(left)
            } else if self.may_shrink {
                requests.recv_timeout(MANIFEST_INTERVAL)
            } else {
                requests.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match request {
                Ok(request) => {
                    self.handle(std::iter::once(request).chain(requests.try_iter().take(REQUESTS_PER_FLUSH - 1)).collect())
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.may_shrink &= is_behind;
                    self.lower_promised_length();
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

    /// Lowers the length for the manifest if sled has shortened the file. sled truncates segments in the background, sometimes
    /// several at a time, and possibly long after the last write. After a crash, a file that is shorter than in the manifest
    /// would count as damaged.
    fn lower_promised_length(&mut self) {
        if self.failed.is_none()
            && let Ok(Some(bytes)) = files::db_bytes(&self.data)
        {
            self.durable.1 = self.durable.1.min(bytes);
        }
    }

    fn handle(&mut self, requests: Vec<Request>) {
        self.may_shrink = true;
        if let Some(why) = &self.failed {
            let failed = StoreError::Failed(why.clone());
            return requests.into_iter().for_each(|request| request.refuse(&failed));
        }
        let began = Instant::now();
        let has_commits = requests.iter().any(|request| matches!(request, Request::Commit(..)));
        let mut answers = Vec::with_capacity(requests.len());
        // sled panics on some kinds of damage. A panic here counts as a failed write.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.apply(requests, has_commits, &mut answers)))
            .unwrap_or_else(|panic| Err(StoreError::Unknown(format!("sled panicked: {}", panic_text(&*panic)))));
        match outcome {
            Ok(()) => {
                if has_commits {
                    self.instruments.commit_duration.record(began.elapsed().as_secs_f64(), ["sled"]);
                }
                answers.into_iter().for_each(|answer| answer(Ok(())));
            }
            Err(error) => {
                // The caller that gets the error logs it as a failure.
                tracing::debug!(%error, folder = ?self.data, "a write failed; the store accepts no more writes until it is opened again");
                self.failed = Some(error.to_string());
                answers.into_iter().for_each(|answer| answer(Err(error.clone())));
            }
        }
    }

    /// Applies requests in order and syncs them together. On an error it is unknown which of them are stored.
    fn apply(&mut self, requests: Vec<Request>, has_commits: bool, answers: &mut Vec<Answer>) -> Result<(), StoreError> {
        let mut requests = requests.into_iter();
        for request in requests.by_ref() {
            match self.apply_one(request) {
                Ok(answer) => answers.push(answer),
                Err(error) => {
                    let failed = StoreError::Failed(error.to_string());
                    requests.for_each(|request| request.refuse(&failed));
                    return Err(error);
                }
            }
        }
        self.write()?;
        self.db.flush().map_err(|error| unknown(&error))?;
        self.make_durable().map_err(|error| unknown(&error))?;
        let appended = std::mem::take(&mut self.appended);
        if has_commits {
            self.log.append_group(self.counts.groups, appended).map_err(|error| unknown(&error))?;
        }
        Ok(())
    }

    fn apply_one(&mut self, request: Request) -> Result<Answer, StoreError> {
        Ok(match request {
            Request::Commit(group, answer) => match self.commit(group) {
                Ok(outcomes) => Box::new(move |stored| drop(answer.send(stored.map(|()| outcomes)))),
                Err(error) => {
                    drop(answer.send(Err(error.clone())));
                    return Err(error);
                }
            },
            Request::Take(ward, answer) => {
                let term = self.acquire_ward(ward);
                Box::new(move |stored| drop(answer.send(stored.map(|()| term))))
            }
            Request::Watch(overlay, answer) => {
                // The overlay's snapshot includes every earlier request.
                self.write()?;
                self.overlays.push(Arc::downgrade(&overlay));
                Box::new(move |_| _ = answer.send(()))
            }
        })
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
            counts.events += events(&batch) + self.copied_events(&batch)?;
            self.counts = counts;
            if let Some(append) = batch.append.as_ref().filter(|append| !append.records.is_empty()) {
                let last = Seq(append.after.0 + append.records.len() as u64);
                self.appended.insert((batch.ward, append.channel), last);
            }
            self.staged.extend(changes(batch));
            outcomes.push(Ok(()));
            if self.staged.len() >= CHANGES_PER_SLED_BATCH {
                self.write()?;
            }
        }
        Ok(outcomes)
    }

    /// The number of new events that are written without being appended, as in a copy of a store.
    fn copied_events(&self, batch: &Batch) -> Result<u64, StoreError> {
        let mut count = 0;
        for write in &batch.writes {
            if let Write::Put(key, _) = write
                && key.is(Kind::Journal)
            {
                count += u64::from(self.value(key)?.is_none());
            }
        }
        Ok(count)
    }

    /// Applies the staged changes atomically.
    fn write(&mut self) -> Result<(), StoreError> {
        if self.staged.is_empty() {
            return Ok(());
        }
        self.staged.insert(counts_key(), Some(counts_bytes(self.counts)));
        self.overlays.retain(|overlay| overlay.strong_count() > 0);
        let mut writes = sled::Batch::default();
        for (key, value) in std::mem::take(&mut self.staged) {
            self.save_old_value(&key)?;
            match value {
                Some(value) => writes.insert(key.as_bytes(), value),
                None => writes.remove(key.as_bytes()),
            }
        }
        self.db.apply_batch(writes).map_err(|error| unknown(&error))
    }

    fn acquire_ward(&mut self, ward: Ward) -> Term {
        let mut term = self.opening_term;
        if self.held.contains_key(&ward) {
            term = Term(self.last_term.0 + 1);
            self.last_term = term;
            self.staged.insert(term_key(), Some(term.0.to_be_bytes().to_vec()));
        }
        self.held.insert(ward, term);
        term
    }

    fn save_old_value(&self, key: &Key) -> Result<(), StoreError> {
        for overlay in self.overlays.iter().filter_map(Weak::upgrade) {
            overlay.save(key, || self.db.get(key.as_bytes())).map_err(|error| unknown(&error))?;
        }
        Ok(())
    }

    /// The value of a key after all earlier batches.
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
            // An older manifest promises less, which is safe. The next attempt is a second later.
            Err(error) => tracing::warn!(%error, folder = ?self.data, "the manifest cannot be written"),
        }
    }

    /// Closes sled, then writes the last manifest, because sled can shorten its file until it is closed.
    fn close(self) {
        let Self { db, data, durable: (counts, mut db_bytes), manifest, failed, .. } = self;
        let is_closed = close_within(db, if failed.is_none() { CLOSE_TIMEOUT } else { FAILED_TIMEOUT });
        let mut sums = None;
        // Without the checksums, the next opening proceeds as after a crash.
        if failed.is_none()
            && is_closed
            && let Ok((bytes, found)) = files::closed(&layout::sled_folder(&data))
        {
            db_bytes = bytes;
            sums = Some(found);
        }
        let manifest = Manifest { counts, db_bytes, files: sums, ..manifest };
        if let Err(error) = manifest::write(&data, &manifest) {
            tracing::warn!(%error, folder = ?data, "the manifest cannot be written");
        }
    }
}

impl Request {
    fn refuse(self, error: &StoreError) {
        match self {
            Self::Commit(_, answer) => drop(answer.send(Err(error.clone()))),
            Self::Take(_, answer) => drop(answer.send(Err(error.clone()))),
            // Reading still works in a store that has failed, and nothing changes any more.
            Self::Watch(_, answer) => drop(answer.send(())),
        }
    }
}

fn unknown(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unknown(error.to_string())
}

/// The message of a panic.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
