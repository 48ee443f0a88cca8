//! The store on disk: one sled tree in `<data>/store`, written by one thread, with the manifest beside it.

mod closing;
mod commit_log;
mod committer;
mod copy;
mod durable;
pub(super) mod facts;
mod files;
mod layout;
mod open;
mod repair;
mod snapshot;
mod upgrade;

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};

use super::OpenError;
use super::audit::{Audit, Report};
use super::backup::{Copied, CopyError};
use super::target;
use crate::domain::id::Ward;
use crate::ports::store::key::Key;
use crate::ports::store::maintenance::{Inspect, MaintenanceError, StoreMaintenance, TemporaryCopy};
use crate::ports::store::{Batch, Refusal, Store, StoreError, Term, Value};
use crate::telemetry::instruments::Instruments;
use closing::attempt;
use committer::{Committer, Request};
use snapshot::Snapshot;

pub use copy::{compact, restore};
pub use files::{FolderLock, discard, is_in_use, lock};
pub use upgrade::{Upgraded, upgrade};

/// How to open a store on disk.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Continue with the existing data if it is less than the manifest says. The store is then read completely while it is
    /// opened, and the loss is logged. Events that are missing from journals count as deleted. A store that cannot be read
    /// completely is rejected nevertheless.
    pub accept_loss: bool,
    /// The time limit for opening without progress, because damage can make sled search without end. 60 s is plenty: a million events after a
    /// crash take 0.2 s. If a loss is accepted, one second for every 4 MiB of the file is added.
    pub deadline: Duration,
    /// The size of sled's page cache in bytes.
    pub cache_bytes: u64,
    /// The id for a new store, from [`Rng::id`](crate::ports::rng::Rng::id).
    pub new_id: u128,
    pub instruments: Instruments,
    /// The lock of the data folder, if this process holds it already.
    pub held: Option<FolderLock>,
}

impl OpenOptions {
    /// The lock of the data folder: the one in `held`, or a new one.
    pub(super) fn lock(&self, data: &Path) -> Result<FolderLock, OpenError> {
        self.held.clone().map_or_else(|| files::lock(data), Ok)
    }
}

/// The store on disk.
///
/// The term counts openings, and each further time a ward is acquired within one opening. So every earlier owner has an older
/// term. A commit's data can be read a moment before it is on disk, but is acknowledged only after. Reads still work after a
/// failed write.
pub struct SledStore {
    folder: PathBuf,
    db: Option<sled::Db>,
    requests: Option<mpsc::Sender<Request>>,
    committer: Option<JoinHandle<()>>,
    /// The number of copies being written.
    copies: watch::Sender<usize>,
    // Held while the store is open, so that a second server, a restore or a compaction cannot use the folder.
    _lock: files::FolderLock,
}

impl SledStore {
    /// Opens the store in a data folder, or creates one. Blocks.
    ///
    /// Layout: `store/` is sled's, `manifest` and `commits` contain the minimum content of the store, `lock` is locked while the
    /// store is open. A store without a manifest, or that was not closed, is read completely. If it is sound, it gets a new
    /// manifest. Otherwise it is rejected as damaged.
    ///
    /// # Errors
    /// [`OpenError`] lists them, and says which of them leave the store unchanged.
    pub fn open(data: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::open_inspected(data, options, ())
    }

    /// Like [`open`](Self::open). If a loss is accepted, each record is checked with `inspect`.
    ///
    /// # Errors
    /// The same as for [`open`](Self::open).
    pub fn open_inspected(data: &Path, options: &OpenOptions, inspect: impl Inspect + Send + 'static) -> Result<Self, OpenError> {
        let opened = open::open(data, options, inspect)?;
        let (requests, inbox) = mpsc::channel();
        let open::Opened { db, facts, manifest, lock } = opened;
        let (db, committer) = attempt(db, |db| {
            let committer = Committer::new(db.clone(), facts, manifest, data, options.instruments.clone())?;
            let thread = std::thread::Builder::new().name("writer-commit".into());
            thread.spawn(move || committer.run(&inbox)).map_err(|error| OpenError::of(data, error))
        })?;
        Ok(Self {
            folder: data.to_path_buf(),
            db: Some(db),
            requests: Some(requests),
            committer: Some(committer),
            copies: watch::Sender::new(0),
            _lock: lock,
        })
    }

    /// Reads the whole store as of now and checks each record with `inspect`, while the store keeps working. Blocks. `progress`
    /// receives the number of records read every few thousand.
    ///
    /// # Errors
    /// Returns an error if the commit thread has ended, or the store cannot be read to its end. Other problems are in the report.
    pub fn verify(&self, inspect: impl Inspect + Send + 'static, progress: impl FnMut(u64)) -> Result<Report, StoreError> {
        Audit::inspecting(inspect).run(self.snapshot()?, progress)
    }

    /// Writes everything committed before now, in whole batches, into one new file outside the data folder, while the store keeps
    /// working. Blocks. `progress` receives the number of records written every few thousand.
    ///
    /// # Errors
    /// [`CopyError`]. No file is left then. A killed process leaves [a part](super::part::Part).
    pub fn backup(&self, to: &Path, progress: impl FnMut(u64)) -> Result<Copied, CopyError> {
        if target::is_among(&self.folder, to) {
            return Err(CopyError::Among { to: to.to_path_buf(), data: self.folder.clone() });
        }
        self.copy(to, || true, progress)
    }

    /// Like [`backup`](Self::backup), into a file of any name. Stops when `goes_on` returns false.
    ///
    /// # Errors
    /// The same as for [`backup`](Self::backup), and an error if it was stopped.
    pub fn backup_while(&self, to: &Path, goes_on: impl Fn() -> bool) -> Result<Copied, CopyError> {
        self.copy(to, goes_on, |_| {})
    }

    fn copy(&self, to: &Path, goes_on: impl Fn() -> bool, progress: impl FnMut(u64)) -> Result<Copied, CopyError> {
        let _copying = Copying::begin(&self.copies);
        let stopped = || StoreError::Failed("the copy was stopped".into());
        let records = self.snapshot()?.map(|record| if goes_on() { Ok(record?) } else { Err(stopped()) });
        super::backup::write(to, records, progress)
    }

    /// Whether a backup or another copy is being written.
    pub fn is_copying(&self) -> bool {
        *self.copies.borrow() > 0
    }

    /// Waits until no copy is being written.
    pub async fn wait_for_copies(&self) {
        // This fails only when the sender is dropped, which belongs to this store.
        let _ = self.copies.subscribe().wait_for(|copies| *copies == 0).await;
    }

    /// The bytes that the store uses on disk.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    pub fn disk_bytes(&self) -> std::io::Result<u64> {
        disk_bytes(&self.folder)
    }

    fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let db = self.db.as_ref().ok_or_else(gone)?;
        let (begun, ready) = mpsc::channel();
        let overlay = Arc::default();
        self.request(Request::Watch(Arc::clone(&overlay), begun))?;
        ready.recv().map_err(|_| gone())?;
        Ok(Snapshot::new(db, overlay))
    }

    fn request(&self, request: Request) -> Result<(), StoreError> {
        self.requests.as_ref().and_then(|requests| requests.send(request).ok()).ok_or_else(gone)
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&sled::Db) -> Result<T, sled::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let db = self.db.clone().ok_or_else(gone)?;
        match tokio::task::spawn_blocking(move || read(&db)).await {
            Ok(outcome) => outcome.map_err(|error| unreadable(&error)),
            // The runtime is shutting down, together with this caller. The store itself is fine.
            Err(end) if end.is_cancelled() => std::future::pending().await,
            Err(panic) => Err(StoreError::Damaged(format!("a read panicked: {panic}"))),
        }
    }
}

/// Counts a copy while it is being written.
struct Copying<'a>(&'a watch::Sender<usize>);

impl<'a> Copying<'a> {
    fn begin(copies: &'a watch::Sender<usize>) -> Self {
        copies.send_modify(|copies| *copies += 1);
        Self(copies)
    }
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|copies| *copies -= 1);
    }
}

#[async_trait]
impl Store for SledStore {
    async fn acquire_ward(&self, ward: Ward) -> Result<Term, StoreError> {
        let (sender, answer) = oneshot::channel();
        self.request(Request::Take(ward, sender))?;
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    async fn commit(&self, group: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let (sender, answer) = oneshot::channel();
        self.request(Request::Commit(group, sender))?;
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    async fn get(&self, key: Key) -> Result<Option<Value>, StoreError> {
        self.read(move |db| Ok(db.get(key.as_bytes())?.map(|value| value.to_vec()))).await
    }

    async fn scan(&self, from: Key, to: Key, newest_first: bool, limit: usize) -> Result<Vec<(Key, Value)>, StoreError> {
        if from >= to {
            return Ok(Vec::new());
        }
        self.read(move |db| {
            let found = db.range(from.as_bytes()..to.as_bytes());
            let pair = |entry: Result<(sled::IVec, sled::IVec), sled::Error>| {
                entry.map(|(key, value)| (Key::from_bytes(&key), value.to_vec()))
            };
            if newest_first { found.rev().take(limit).map(pair).collect() } else { found.take(limit).map(pair).collect() }
        })
        .await
    }
}

#[async_trait]
impl StoreMaintenance for SledStore {
    async fn backup(self: Arc<Self>, to: &Path) -> Result<u64, MaintenanceError> {
        let to = to.to_path_buf();
        let copied = tokio::task::spawn_blocking(move || Self::backup(&self, &to, |_| {}));
        let copied = copied.await.map_err(|panic| MaintenanceError::Failed(format!("copying panicked: {panic}")))??;
        Ok(copied.records)
    }

    async fn copy_for(self: Arc<Self>, process: u32) -> Result<TemporaryCopy, MaintenanceError> {
        // Dropped together with this future.
        let wanted = Arc::new(());
        let is_wanted = Arc::downgrade(&wanted);
        let copied = tokio::task::spawn_blocking(move || {
            let path = target::for_process(&self.folder, process);
            let path = std::path::absolute(&path).map_err(|error| CopyError::Unwritten { to: path.clone(), error })?;
            let copied = self.copy(&path, || is_wanted.strong_count() > 0, |_| {})?;
            let file = Box::new(Temporary(path.clone()));
            Ok::<_, CopyError>(TemporaryCopy { path, records: copied.records, file })
        });
        let copied = copied.await.map_err(|panic| MaintenanceError::Failed(format!("copying panicked: {panic}")))?;
        drop(wanted);
        Ok(copied?)
    }
}

/// A file that is deleted when this is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Its reader may have deleted it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Drop for SledStore {
    /// Closes the store: commits pending requests, writes the manifest, and releases the folder.
    fn drop(&mut self) {
        self.db = None;
        self.requests = None;
        if let Some(committer) = self.committer.take() {
            // The thread ends on its own after the last request. Its panics were reported where they happened.
            let _ = committer.join();
        }
    }
}

/// The bytes that the store in this data folder uses on disk, whether it is open or not.
///
/// # Errors
/// Returns the errors of the file system.
pub fn disk_bytes(data: &Path) -> std::io::Result<u64> {
    files::bytes_under(&layout::sled_folder(data))
}

/// The bytes that this process may still write to the disk of this folder.
///
/// # Errors
/// Returns the errors of the file system.
pub fn disk_free(data: &Path) -> std::io::Result<u64> {
    let disk = rustix::fs::statvfs(data)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn gone() -> StoreError {
    StoreError::Failed("the commit thread has ended".into())
}

fn unanswered() -> StoreError {
    StoreError::Unknown("the commit thread ended before it responded".into())
}

/// Every record of a database, ascending, up to the first error.
fn records(db: &sled::Db) -> impl Iterator<Item = Result<(Key, Value), sled::Error>> + use<> {
    db.iter().map(|entry| entry.map(|(key, value)| (Key::from_bytes(&key), value.to_vec())))
}

/// The error for a failed read.
fn unreadable(error: &sled::Error) -> StoreError {
    StoreError::Damaged(format!("{}; restore a backup with `tertulia history restore`", message_of(error)))
}

/// sled's message for an error.
fn message_of(error: &sled::Error) -> String {
    error.to_string().replace(" backtrace ()", "")
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod million_tests;
#[cfg(test)]
mod tests;
