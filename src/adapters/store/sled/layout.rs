//! Where things lie in a data folder.

use std::path::{Path, PathBuf};

/// sled's folder.
pub(super) fn sled_folder(data: &Path) -> PathBuf {
    data.join("store")
}

/// Where a copy is made before it takes the place of sled's folder.
pub(super) fn new_folder(data: &Path) -> PathBuf {
    data.join("store.new")
}

/// Where sled's folder waits while a copy takes its place.
pub(super) fn old_folder(data: &Path) -> PathBuf {
    data.join("store.old")
}

/// The file in which sled keeps everything but very large values.
pub(super) fn db(sled_folder: &Path) -> PathBuf {
    sled_folder.join("db")
}

/// The folder in which sled keeps very large values.
pub(super) fn blobs(sled_folder: &Path) -> PathBuf {
    sled_folder.join("blobs")
}
