//! Copying what a store holds while it goes on working, and how much room it takes.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

/// Keeps a store in order.
#[async_trait]
pub trait Keeper: Send + Sync + 'static {
    /// Writes everything committed before now into one new file, while the store goes on working; returns how many records it holds.
    ///
    /// # Errors
    /// [`KeepError`]; the target is then not there, or as it was.
    async fn backup(self: Arc<Self>, to: &Path) -> Result<u64, KeepError>;

    /// Bytes that the store takes up on disk; 0 if it takes none.
    ///
    /// # Errors
    /// What the file system reports.
    async fn disk_bytes(self: Arc<Self>) -> Result<u64, KeepError>;
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
    /// The store cannot be read.
    #[error("{0}")]
    Failed(String),
}
