//! Creates, locks, swaps and cleans up the folders of a store.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::durable::Durable;
use super::{commit_log, layout};
use crate::OpenError;
use crate::manifest::{self, Checksums, sync_folder};

/// The time limit for sled's background work on a closed folder.
const FINISH_TIMEOUT: Duration = Duration::from_secs(60);

const READ_BYTES: usize = 1 << 20;

/// The prefix of the names of sled's snapshot files.
pub(super) const SNAPSHOT: &str = "snap.";

/// The lock of a data folder, until the last clone of it is dropped.
#[derive(Clone, Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held, not read")] Arc<LockFile>);

#[derive(Debug)]
struct LockFile(File);

impl Drop for LockFile {
    fn drop(&mut self) {
        // Closing alone is not enough, see [`wait_for_lock`]. A file that cannot be unlocked is closed a moment later.
        let _ = self.0.unlock();
    }
}

/// Creates a data folder that only its owner can read, unless it exists, and locks it. A caller that opens the store more than
/// once keeps the lock between the openings ([`OpenOptions::held`](super::OpenOptions::held)), so that no other process opens the
/// store in between.
///
/// # Errors
/// [`OpenError::InUse`] while another process holds the lock; the errors of the file system.
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

/// Whether another process holds the lock of a data folder at this moment.
pub fn is_in_use(data: &Path) -> bool {
    // The lock is shared, so that two processes that only check do not appear as a server to each other.
    File::open(data.join("lock")).is_ok_and(|file| match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
        Ok(()) => {
            drop(LockFile(file));
            false
        }
    })
}

/// Checks that sled will be able to write.
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

/// The length of the database file. `None`: the file is missing.
pub(super) fn db_bytes(data: &Path) -> Result<Option<u64>, OpenError> {
    let path = layout::db(&layout::sled_folder(data));
    match fs::metadata(&path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::of(&path, error)),
    }
}

/// Waits until sled has finished with a closed folder, syncs it, and returns the length of its database file.
///
/// sled's own threads hold the file, and with it sled's lock, until their work is finished. After a failure, they may never
/// finish.
///
/// # Errors
/// [`ErrorKind::TimedOut`], if sled does not finish in time; the errors of the file system.
pub(super) fn finished(sled_folder: &Path) -> io::Result<u64> {
    finished_within(sled_folder, FINISH_TIMEOUT)
}

fn finished_within(sled_folder: &Path, timeout: Duration) -> io::Result<u64> {
    let (ended, end) = mpsc::channel();
    let db = layout::db(sled_folder);
    let waiting = move || {
        // The receiver may have timed out.
        let _ = ended.send(wait_for_lock(&db));
    };
    thread::Builder::new().name("writer-finish".into()).spawn(waiting)?;
    end.recv_timeout(timeout).unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))?;
    let mut durable = Durable::new(sled_folder);
    durable.sync_folder()?;
    Ok(durable.sync()?.unwrap_or_default())
}

/// Waits until the lock of sled's database file is free.
pub(super) fn wait_for_lock(db: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(db)?;
    file.lock()?;
    // Closing alone is not enough: a child process that another thread is starting may hold a copy of the file for a moment.
    file.unlock()
}

/// Whether restoring a backup into a folder without a store was interrupted.
pub(super) fn is_half_restored(data: &Path) -> bool {
    layout::new_folder(data).is_dir() && !layout::sled_folder(data).exists() && !layout::old_folder(data).exists()
}

/// Deletes sled's snapshot files with this suffix. Without them, sled reads its whole log.
pub(super) fn remove_snapshots(data: &Path, ending: &str) -> io::Result<()> {
    let entries = match fs::read_dir(layout::sled_folder(data)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(SNAPSHOT) && name.ends_with(ending)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Completes or reverts an interrupted swap, and removes an incomplete snapshot of sled.
pub(super) fn recover(data: &Path) -> Result<(), OpenError> {
    let (current, old, new) = (layout::sled_folder(data), layout::old_folder(data), layout::new_folder(data));
    let with_path = |path: &Path, outcome: io::Result<()>| outcome.map_err(|error| OpenError::of(path, error));
    // sled would treat an incomplete snapshot as a damaged one.
    with_path(&current, remove_snapshots(data, ".generating"))?;
    if old.is_dir() && !current.exists() {
        with_path(&old, fs::rename(&old, &current))?;
        with_path(data, sync_folder(data))?;
    }
    with_path(&old, remove_if_exists(&old))?;
    with_path(&new, remove_if_exists(&new))
}

/// Replaces sled's folder by the finished copy. [`recover`] handles a crash between the steps.
pub(super) fn swap(data: &Path) -> io::Result<()> {
    let (current, old) = (layout::sled_folder(data), layout::old_folder(data));
    if current.exists() {
        fs::rename(&current, &old)?;
    }
    fs::rename(layout::new_folder(data), &current)?;
    sync_folder(data)?;
    remove_if_exists(&old)
}

/// The checksums of sled's files after sled has [finished], and the length of its database file.
///
/// # Errors
/// The same as for [`finished`].
pub(super) fn closed(sled_folder: &Path) -> io::Result<(u64, Checksums)> {
    Ok((finished(sled_folder)?, checksums(sled_folder)?))
}

/// The checksum of each file under a folder.
pub(super) fn checksums(folder: &Path) -> io::Result<Checksums> {
    let mut found = Checksums::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            found.extend(checksums(&entry.path())?.into_iter().map(|(path, checksum)| (format!("{name}/{path}"), checksum)));
        } else {
            found.insert(name, checksum(&entry.path())?);
        }
    }
    Ok(found)
}

fn checksum(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; READ_BYTES];
    let mut checksum = crc32fast::Hasher::new();
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(checksum.finalize()),
            Ok(read) => checksum.update(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The total size of all files under a folder.
pub(super) fn bytes_under(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        bytes += match if kind.is_dir() { bytes_under(&entry.path()) } else { entry.metadata().map(|metadata| metadata.len()) } {
            // sled deletes files while it works.
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            outcome => outcome?,
        };
    }
    Ok(bytes)
}

/// Deletes the store of a locked data folder. It is an incomplete copy, which is made again.
///
/// # Errors
/// Returns the errors of the file system.
pub fn discard(data: &Path) -> io::Result<()> {
    for folder in [layout::sled_folder(data), layout::old_folder(data), layout::new_folder(data)] {
        remove_if_exists(&folder)?;
    }
    commit_log::remove(data)?;
    match fs::remove_file(manifest::path(data)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => sync_folder(data),
    }
}

fn remove_if_exists(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_sled_to_finish_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let held = File::create(layout::db(folder.path())).unwrap();
        held.lock().unwrap();

        let waited = finished_within(folder.path(), Duration::from_millis(20));
        held.unlock().unwrap();

        assert_eq!(waited.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(finished(folder.path()).unwrap(), 0);
    }
}
