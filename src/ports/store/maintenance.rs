//! Maintenance of a store: online backups, and checks of its records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::key::{ChannelNo, Key};

/// Whether a new backup may have this name. Scripts that delete old backups recognise them by the extension `.backup`.
pub fn is_backup_name(name: &Path) -> bool {
    // A name that ends in a slash is a directory, though `Path` ignores the slash elsewhere.
    name.extension().is_some_and(|extension| extension == "backup") && !name.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Backups of a store.
#[async_trait]
pub trait StoreMaintenance: Send + Sync + 'static {
    /// Writes all records that are committed before the call into one new file, while the store keeps working. Returns the number of records in the
    /// file.
    ///
    /// # Errors
    /// Returns a [`MaintenanceError`]. The target then does not exist, or is unchanged.
    async fn backup(self: Arc<Self>, to: &Path) -> Result<u64, MaintenanceError>;

    /// Like [`backup`](Self::backup), but writes a file in the store's own directory, with a name that the store chooses, for a process that reads
    /// it. If the future is dropped, no file is left.
    ///
    /// # Errors
    /// Returns a [`MaintenanceError`]. The file then does not exist, or is unchanged.
    async fn copy_for(self: Arc<Self>, process: u32) -> Result<TemporaryCopy, MaintenanceError>;
}

/// A copy of a store that is read once.
pub struct TemporaryCopy {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// The number of records in the file.
    pub records: u64,
    /// Deletes the file when it is dropped.
    pub file: Box<dyn Send + Sync>,
}

/// Checks records by decoding them.
pub trait Inspect {
    /// The fault of a record, if it cannot be decoded as its key requires.
    fn fault(&self, key: &Key, value: &[u8]) -> Option<Fault>;

    /// The number of a channel in its ward and its name, if the record holds a channel's name. Each channel with a journal has two such records.
    fn named(&self, key: &Key, value: &[u8]) -> Option<(ChannelNo, String)>;

    /// Whether this implementation finds names. If not, missing names are no fault.
    fn finds_names(&self) -> bool {
        true
    }
}

/// A record that is complete, but cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of record and its number: `event 12`.
    pub what: String,
    /// The channel that it belongs to, if any.
    pub channel: Option<ChannelNo>,
    /// The error, without any of the record's content.
    pub detail: String,
}

/// Checks nothing.
impl Inspect for () {
    fn fault(&self, _: &Key, _: &[u8]) -> Option<Fault> {
        None
    }

    fn named(&self, _: &Key, _: &[u8]) -> Option<(ChannelNo, String)> {
        None
    }

    fn finds_names(&self) -> bool {
        false
    }
}

/// Why a store could not be copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaintenanceError {
    /// The target exists already. Choose another one.
    #[error("{0}")]
    Exists(String),
    /// The target cannot be written. Choose another one, or make it writable.
    #[error("{0}")]
    Target(String),
    /// Stored data cannot be read.
    #[error("{0}")]
    Damaged(String),
    /// This store makes no copies. The message names the tool that does.
    #[error("{0}")]
    Elsewhere(String),
    /// Another failure.
    #[error("{0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_are_recognised_by_their_extension() {
        let is_backup = |name: &str| is_backup_name(Path::new(name));

        assert!(["/backups/monday.backup", "monday.backup", "/a.b/c.d.backup"].iter().all(|name| is_backup(name)));
        let others =
            ["/backups/monday", "/backups/monday.zip", "monday.backup/", "monday.backup.part", "/backups/.backup", "backup", ""];
        assert!(!others.iter().any(|name| is_backup(name)));
    }
}
