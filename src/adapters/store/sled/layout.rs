//! The paths in a data folder.

use std::path::{Path, PathBuf};

/// The folder of the sled database.
pub(super) fn sled_folder(data: &Path) -> PathBuf {
    data.join("store")
}

/// The folder of a copy before it replaces sled's folder.
pub(super) fn new_folder(data: &Path) -> PathBuf {
    data.join("store.new")
}

/// The name of sled's folder while a copy replaces it.
pub(super) fn old_folder(data: &Path) -> PathBuf {
    data.join("store.old")
}

/// The file with all of sled's data except very large values.
pub(super) fn db(sled_folder: &Path) -> PathBuf {
    sled_folder.join("db")
}

/// The folder with a file for each very large value.
pub(super) fn blobs(sled_folder: &Path) -> PathBuf {
    sled_folder.join("blobs")
}
