//! Makes the writes of sled durable with fsync. sled's own flush is `sync_file_range`, which does not survive a power loss
//! (docs/design/storage.md D-9).

#[cfg(test)]
mod synced;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::layout;
use crate::manifest::sync_folder;

// File times are coarse: two changes within this time can carry the same time, so a folder that changed recently is listed again.
const TIME_RESOLUTION: Duration = Duration::from_millis(100);

/// Tracks which files of a database are on disk.
pub(super) struct Durable {
    folder: PathBuf,
    /// `None` until sled creates the file with the first write.
    db: Option<File>,
    blobs: Blobs,
}

/// The files that sled writes for each value or page over 128 KiB.
#[derive(Default)]
struct Blobs {
    /// The files that are on disk.
    synced: BTreeSet<OsString>,
    /// The modification time of their folder at the last check.
    changed: Option<SystemTime>,
}

impl Durable {
    /// A tracker that assumes that nothing of sled's folder is on disk.
    pub(super) fn new(sled_folder: &Path) -> Self {
        Self { folder: sled_folder.to_path_buf(), db: None, blobs: Blobs::default() }
    }

    /// Waits until everything written so far is on disk. Returns a length of the database file that is certainly on disk. `None`:
    /// there is no such file yet.
    pub(super) fn sync(&mut self) -> io::Result<Option<u64>> {
        if self.db.is_none() {
            self.db = if_exists(File::open(layout::db(&self.folder)))?;
        }
        let Some(db) = &self.db else { return Ok(None) };
        // The length before the sync is on disk after it.
        let metadata = db.metadata()?;
        let written = metadata.modified()?;
        // First the blobs: the database file must never point to a file that is not on disk.
        self.blobs.sync(&layout::blobs(&self.folder), written)?;
        wait_for_data(db, &layout::db(&self.folder))?;
        Ok(Some(metadata.len()))
    }

    /// Syncs the directory entries of sled's folder, and the files that sled writes only at opening.
    pub(super) fn sync_folder(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Some(file) = if_exists(File::open(entry.path()))?
            {
                file.sync_all()?;
            }
        }
        sync_folder(&self.folder)
    }
}

impl Blobs {
    fn sync(&mut self, folder: &Path, written: SystemTime) -> io::Result<()> {
        let Some(metadata) = if_exists(fs::metadata(folder))? else { return Ok(()) };
        let changed = metadata.modified()?;
        let long_ago = written.duration_since(changed).is_ok_and(|age| age > TIME_RESOLUTION);
        if long_ago && self.changed == Some(changed) {
            return Ok(());
        }
        let mut found = BTreeSet::new();
        let mut is_new = false;
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            if !self.synced.contains(&name) {
                // sled deletes files that are no longer referenced.
                let path = folder.join(&name);
                if let Some(blob) = if_exists(File::open(&path))? {
                    wait_for_all(&blob, &path)?;
                    is_new = true;
                }
            }
            found.insert(name);
        }
        if is_new {
            sync_folder(folder)?;
        }
        self.synced = found;
        self.changed = Some(changed);
        Ok(())
    }
}

/// Waits until a file's content is on disk, with the metadata needed to read it.
fn wait_for_data(file: &File, path: &Path) -> io::Result<()> {
    record_sync(path);
    file.sync_data()
}

/// Waits until a file's content and all its metadata are on disk.
fn wait_for_all(file: &File, path: &Path) -> io::Result<()> {
    record_sync(path);
    file.sync_all()
}

/// Records for tests which file is about to be synced. (`tests/it/processes/durable.rs` checks from outside that the system call is made.)
fn record_sync(path: &Path) {
    #[cfg(test)]
    synced::record_sync(path);
    #[cfg(not(test))]
    let _ = path;
}

fn if_exists<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_database_has_nothing_to_sync() {
        let folder = tempfile::tempdir().unwrap();

        assert_eq!(Durable::new(folder.path()).sync().unwrap(), None);
    }

    #[test]
    fn the_length_of_the_database_is_known_after_a_sync() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("db"), [0; 17]).unwrap();

        assert_eq!(Durable::new(folder.path()).sync().unwrap(), Some(17));
    }

    #[test]
    fn every_new_blob_is_synced_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("db"), "").unwrap();
        fs::create_dir(folder.path().join("blobs")).unwrap();
        let mut durable = Durable::new(folder.path());

        for blobs in [vec!["1"], vec!["1", "2", "3"], vec!["3"]] {
            for name in ["1", "2", "3"] {
                let path = folder.path().join("blobs").join(name);
                if blobs.contains(&name) { fs::write(path, name).unwrap() } else { drop(fs::remove_file(path)) }
            }

            durable.sync().unwrap();

            assert!(durable.blobs.synced.iter().eq(blobs.iter()), "{:?}", durable.blobs.synced);
        }
    }
}
