//! Copying what a store holds while it goes on working, how much room it takes, and whether what it holds can be read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::Value;
use super::key::{ChannelNo, Key};

/// Whether a new backup may be called this: whoever clears away old ones knows them by their ending, `.backup`.
pub fn is_a_backups_name(name: &Path) -> bool {
    // What ends in a slash is a folder's, though it is passed over elsewhere.
    name.extension().is_some_and(|ending| ending == "backup") && !name.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Keeps a store in order.
#[async_trait]
pub trait Keeper: Send + Sync + 'static {
    /// Writes everything committed before now into one new file, while the store goes on working; returns how many records it holds.
    ///
    /// # Errors
    /// [`KeepError`]; the target is then not there, or as it was.
    async fn backup(self: Arc<Self>, to: &Path) -> Result<u64, KeepError>;

    /// The same into a file that the store names, among its own, for a process that reads it through and deletes it; returns its whole path, too.
    ///
    /// # Errors
    /// [`KeepError`]; there is no such file then, or it is as it was.
    async fn copy_for(self: Arc<Self>, process: u32) -> Result<(PathBuf, u64), KeepError>;

    /// Bytes that the store takes up on disk; 0 if it takes none.
    ///
    /// # Errors
    /// What the file system reports.
    async fn disk_bytes(self: Arc<Self>) -> Result<u64, KeepError>;
}

/// Knows what records tell of others that are lost.
pub trait Complete {
    /// Takes note of a record. Every record is told, before anything else is asked.
    fn note(&mut self, key: &Key, value: &[u8]);

    /// Records that have to be there, as all that were noted tell.
    fn lacking(&self) -> Vec<(Key, Value)>;

    /// Counters that are not there, or are less than what was noted tells: they have to become this.
    fn behind(&self) -> Vec<(Key, Value)>;

    /// What else has to be there because of this record.
    fn follows(&self, key: &Key, value: &[u8]) -> Vec<(Key, Value)>;

    /// Whether a record that is lacking, or follows from another one, is right where something else is there already.
    fn replaces(&self, key: &Key, value: &[u8], there: &[u8]) -> bool;
}

/// Where records tell of no others.
impl Complete for () {
    fn note(&mut self, _: &Key, _: &[u8]) {}

    fn lacking(&self) -> Vec<(Key, Value)> {
        Vec::new()
    }

    fn behind(&self) -> Vec<(Key, Value)> {
        Vec::new()
    }

    fn follows(&self, _: &Key, _: &[u8]) -> Vec<(Key, Value)> {
        Vec::new()
    }

    fn replaces(&self, _: &Key, _: &[u8], _: &[u8]) -> bool {
        false
    }
}

/// Knows how records read.
pub trait Inspect {
    /// What is wrong with a record, if it does not read as its key promises.
    fn fault(&self, key: &Key, value: &[u8]) -> Option<Fault>;

    /// The channel of its ward that a record tells the name of, and what it is called.
    fn named(&self, key: &Key, value: &[u8]) -> Option<(ChannelNo, String)>;
}

/// A record that is whole, and does not read as what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What the record is: `event 12`.
    pub what: String,
    /// The channel that it belongs to, if it is one's.
    pub channel: Option<ChannelNo>,
    /// What is wrong with it, without a word of what it holds.
    pub detail: String,
}

/// Where it is not known how records read.
impl Inspect for () {
    fn fault(&self, _: &Key, _: &[u8]) -> Option<Fault> {
        None
    }

    fn named(&self, _: &Key, _: &[u8]) -> Option<(ChannelNo, String)> {
        None
    }
}

/// Why a store could not be copied or measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// The target is there already: name another.
    #[error("{0}")]
    Exists(String),
    /// The target cannot be written: name another, or make it writable.
    #[error("{0}")]
    Target(String),
    /// What is stored cannot be read.
    #[error("{0}")]
    Damaged(String),
    /// Something else is in the way.
    #[error("{0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_known_by_its_ending() {
        let is_one = |name: &str| is_a_backups_name(Path::new(name));

        assert!(["/backups/monday.backup", "monday.backup", "/a.b/c.d.backup"].iter().all(|name| is_one(name)));
        let others =
            ["/backups/monday", "/backups/monday.zip", "monday.backup/", "monday.backup.part", "/backups/.backup", "backup", ""];
        assert!(!others.iter().any(|name| is_one(name)));
    }
}
