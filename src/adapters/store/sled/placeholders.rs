//! Placeholders for unreadable files of large values, so that sled opens a store whose other records are to be saved.
//!
//! Without its snapshot file, sled reads its whole log. It treats a damaged value as the end of the log, and panics on a page whose values are
//! all missing. So while sled opens the store, each such value has a placeholder file with a valid checksum and no content. Afterwards the
//! value's page cannot be read, like any other damaged page.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{layout, log};

/// The placeholder files. They are deleted when this is dropped, before any value is read.
pub(super) struct Placeholders(Vec<PathBuf>);

impl Placeholders {
    /// Writes a placeholder for each value that is missing or damaged.
    pub(super) fn put(sled_folder: &Path) -> io::Result<Self> {
        let folder = layout::blobs(sled_folder);
        let mut placeholders = Self(Vec::new());
        for (value, purpose) in log::broken_values(sled_folder)? {
            fs::create_dir_all(&folder)?;
            let path = folder.join(value.to_string());
            placeholders.0.push(path.clone());
            fs::write(path, placeholder(purpose))?;
        }
        Ok(placeholders)
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for path in &self.0 {
            // sled deletes some of them itself. One that remains is deleted at the next opening.
            let _ = fs::remove_file(path);
        }
    }
}

/// Deletes the placeholders of a process that was killed while it opened the store.
pub(super) fn clear(sled_folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(layout::blobs(sled_folder)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.metadata()?.len() == placeholder(0).len() as u64 {
            let bytes = fs::read(entry.path())?;
            if bytes.last().is_some_and(|purpose| bytes == placeholder(*purpose)) {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// An empty value in sled's format: the checksum of the rest, and its purpose.
fn placeholder(purpose: u8) -> [u8; 5] {
    let [a, b, c, d] = crc32fast::hash(&[purpose]).to_le_bytes();
    [a, b, c, d, purpose]
}

#[cfg(test)]
mod tests;
