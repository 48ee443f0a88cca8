//! Files beside the store that only the server's user may read.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::Problem;

/// Owner: read and write.
const MODE: u32 = 0o600;

/// Reads a JSON file. `None`: it does not exist.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a JSON file of the page. What is wrong with the folder itself is reported with the store.
pub(super) fn read_of_page<T: DeserializeOwned>(path: &Path, remedy: &str) -> Result<Option<T>, Problem> {
    let is_lost = || path.parent().is_some_and(|data| fs::read_dir(data).is_err());
    match read(path) {
        Err(_) if is_lost() => Ok(None),
        read => read.map_err(|error| Problem::new(path.display().to_string(), format!("cannot be read: {error}; {remedy}"))),
    }
}

/// Writes a file. The file is replaced atomically, and survives a power failure.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = OsString::from(path);
    new.push(".new");
    let new = PathBuf::from(new);
    // A file left by a killed server may have other permissions.
    remove_file(&new)?;
    let mut file = File::options().write(true).create_new(true).mode(MODE).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync(path);
    Ok(())
}

/// Removes a file if it exists.
///
/// # Errors
/// Returns an error if the file cannot be removed.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_file(path)?;
    sync(path);
    Ok(())
}

/// Syncs the folder of a renamed or removed file, so that the change survives a power failure. If the folder cannot be synced,
/// the change is in effect nevertheless.
fn sync(path: &Path) {
    let Some(folder) = path.parent() else { return };
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::warn!(%error, "the data folder cannot be synced");
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
