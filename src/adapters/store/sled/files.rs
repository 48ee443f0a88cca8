//! How sled's folder is put in place or swapped.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::durable::Durable;
use super::{layout, log, stand_ins};
use crate::adapters::store::OpenError;
use crate::adapters::store::manifest::sync_folder;

/// How long sled may take to end its work on a folder that is closed.
const FINISH_PATIENCE: Duration = Duration::from_secs(60);

/// The lock of a data folder, until the last clone of it is dropped.
#[derive(Clone, Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held, not read")] Arc<LockFile>);

#[derive(Debug)]
struct LockFile(File);

impl Drop for LockFile {
    fn drop(&mut self) {
        // Closing alone would not do, see [`wait_for_lock`]. What cannot be unlocked is closed in a moment.
        let _ = self.0.unlock();
    }
}

/// Creates a data folder that only its owner can look into, unless it is there, and locks it. Whoever opens the store more than once holds
/// the lock meanwhile ([`OpenOptions::held`](super::OpenOptions::held)), so that no other process gets in between.
///
/// # Errors
/// [`OpenError::InUse`] while another process holds it; what the file system reports.
pub fn lock(data: &Path) -> Result<FolderLock, OpenError> {
    DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(|error| OpenError::of(data, error))?;
    let path = data.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(|error| OpenError::of(data, error))?;
    match file.try_lock() {
        Ok(()) => Ok(FolderLock(Arc::new(LockFile(file)))),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { folder: data.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(OpenError::of(data, error)),
    }
}

/// Whether somebody holds the lock of a data folder at this moment.
pub fn is_in_use(data: &Path) -> bool {
    // Shared, so that two who only look do not take each other for a server.
    File::open(data.join("lock")).is_ok_and(|file| match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
        Ok(()) => {
            drop(LockFile(file));
            false
        }
    })
}

/// Makes sure that sled will be able to write, before it tries.
pub(super) fn check_writable(data: &Path) -> Result<(), OpenError> {
    let folder = layout::sled_folder(data);
    for folder in [data, &folder] {
        let probe = folder.join("probe");
        match File::create(&probe).and_then(|_| fs::remove_file(&probe)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            outcome => outcome.map_err(|error| OpenError::of(folder, error))?,
        }
    }
    let db = layout::db(&folder);
    match File::options().write(true).open(&db) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(OpenError::of(&db, error)),
        _ => Ok(()),
    }
}

/// The length of the database file; `None` if it is missing.
pub(super) fn db_bytes(data: &Path) -> Result<Option<u64>, OpenError> {
    let path = layout::db(&layout::sled_folder(data));
    match fs::metadata(&path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::of(&path, error)),
    }
}

/// Waits until sled has done with a folder that is closed, makes it durable, and tells the length of its database file.
///
/// sled's own threads hold the file, and with it sled's lock, until the last of its work is done. Where something failed that may be never.
///
/// # Errors
/// [`ErrorKind::TimedOut`], if it is not done in time; what the file system reports.
pub(super) fn finished(sled_folder: &Path) -> io::Result<u64> {
    finished_within(sled_folder, FINISH_PATIENCE)
}

fn finished_within(sled_folder: &Path, patience: Duration) -> io::Result<u64> {
    let (ended, end) = mpsc::channel();
    let db = layout::db(sled_folder);
    let waiting = move || {
        // Whoever waits may have had enough.
        let _ = ended.send(wait_for_lock(&db));
    };
    thread::Builder::new().name("writer-finish".into()).spawn(waiting)?;
    end.recv_timeout(patience).unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))?;
    let mut durable = Durable::new(sled_folder);
    durable.sync_folder()?;
    Ok(durable.sync()?.unwrap_or_default())
}

/// Waits until nobody holds the lock of sled's database file.
pub(super) fn wait_for_lock(db: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(db)?;
    file.lock()?;
    // Closing alone would not do: a child process that another thread is starting may hold a copy of the file for a moment.
    file.unlock()
}

/// Whether somebody began to restore a backup into a folder without a store, and did not come to the end.
pub(super) fn is_half_restored(data: &Path) -> bool {
    layout::new_folder(data).is_dir() && !layout::sled_folder(data).exists() && !layout::old_folder(data).exists()
}

/// Takes away what sled was writing when it was killed: its own state, which it would take for a damaged one.
fn remove_unfinished(sled_folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(sled_folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("snap.") && name.ends_with(".generating")) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Takes sled's settings away if they cannot be read. They hold nothing but what sled is told at every opening, and are not written in one
/// step.
fn remove_broken_settings(sled_folder: &Path) -> io::Result<()> {
    if sled_folder.exists() && log::broken_notes(sled_folder)?.iter().any(|name| name == "conf") {
        tracing::warn!(folder = ?sled_folder, "`conf`, sled's settings, cannot be read and is made anew");
        fs::remove_file(sled_folder.join("conf"))?;
    }
    Ok(())
}

/// Takes away what sled noted of its state: without it sled reads its whole log.
pub(super) fn remove_notes(data: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(layout::sled_folder(data)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with("snap.")) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Finishes or undoes what a crash interrupted: a swap, or sled in noting its state, or in opening what is left of a store.
pub(super) fn settle(data: &Path) -> Result<(), OpenError> {
    let (current, old, new) = (layout::sled_folder(data), layout::old_folder(data), layout::new_folder(data));
    let about = |path: &Path, outcome: io::Result<()>| outcome.map_err(|error| OpenError::of(path, error));
    about(&current, remove_unfinished(&current))?;
    about(&current, remove_broken_settings(&current))?;
    about(&current, stand_ins::clear(&current))?;
    if old.is_dir() && !current.exists() {
        about(&old, fs::rename(&old, &current))?;
        about(data, sync_folder(data))?;
    }
    about(&old, remove_if_there(&old))?;
    about(&new, remove_if_there(&new))
}

/// Puts the finished copy in the place of sled's folder. A crash between its steps is settled by [`settle`].
pub(super) fn swap(data: &Path) -> io::Result<()> {
    let (current, old) = (layout::sled_folder(data), layout::old_folder(data));
    if current.exists() {
        fs::rename(&current, &old)?;
    }
    fs::rename(layout::new_folder(data), &current)?;
    sync_folder(data)?;
    remove_if_there(&old)
}

/// Bytes of all files under a folder.
pub(super) fn bytes_under(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        bytes += match if kind.is_dir() { bytes_under(&entry.path()) } else { entry.metadata().map(|metadata| metadata.len()) } {
            // sled takes files away while it works.
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            outcome => outcome?,
        };
    }
    Ok(bytes)
}

fn remove_if_there(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_the_last_of_sleds_work_does_not_wait_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let held = File::create(layout::db(folder.path())).unwrap();
        held.lock().unwrap();

        let waited = finished_within(folder.path(), Duration::from_millis(20));
        held.unlock().unwrap();

        assert_eq!(waited.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(finished(folder.path()).unwrap(), 0);
    }
}
