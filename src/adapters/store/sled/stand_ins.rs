//! Stand-ins for the files of large values that cannot be read, so that sled opens a store of which the rest is to be kept.
//!
//! Without what it noted sled goes through its whole log. It takes the log to be over at a value that is not whole, and panics about a page of
//! which all values are missing. So for as long as it opens there is a file for each, with a right sum and nothing in it. After that its page is
//! one that cannot be read, like any other that is damaged.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{layout, log};

/// The files that stand in. They are taken away when this is dropped, before any value is read.
pub(super) struct StandIns(Vec<PathBuf>);

impl StandIns {
    /// Puts one in the place of each value that is missing or not whole.
    pub(super) fn put(sled_folder: &Path) -> io::Result<Self> {
        let folder = layout::blobs(sled_folder);
        let mut stand_ins = Self(Vec::new());
        for (value, purpose) in log::broken_values(sled_folder)? {
            fs::create_dir_all(&folder)?;
            let path = folder.join(value.to_string());
            stand_ins.0.push(path.clone());
            fs::write(path, stand_in(purpose))?;
        }
        Ok(stand_ins)
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        for path in &self.0 {
            // sled has taken some away itself, and one that stays is cleared away at the next opening.
            let _ = fs::remove_file(path);
        }
    }
}

/// Takes away those of a process that was killed while it opened the store.
pub(super) fn clear(sled_folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(layout::blobs(sled_folder)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.metadata()?.len() == stand_in(0).len() as u64 {
            let bytes = fs::read(entry.path())?;
            if bytes.last().is_some_and(|purpose| bytes == stand_in(*purpose)) {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// A value without anything in it, as sled writes them: the sum of the rest, and what it is for.
fn stand_in(purpose: u8) -> [u8; 5] {
    let [a, b, c, d] = crc32fast::hash(&[purpose]).to_le_bytes();
    [a, b, c, d, purpose]
}

#[cfg(test)]
mod tests;
