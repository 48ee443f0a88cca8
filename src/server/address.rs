//! Notes where the server of a data folder listens, so that commands find it: `<data>/server.json`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file's name in the data folder.
const FILE: &str = "server.json";

/// A server that runs on a data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Where it listens: `http://127.0.0.1:7878`.
    pub url: String,
    /// Its process.
    pub pid: u32,
}

/// The note; dropping it takes it away.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

/// Takes away the note that a killed server left; for who holds the data folder.
pub(super) fn clear(data: &Path) -> io::Result<()> {
    match fs::remove_file(data.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Leaves the note. Only its owner may read it.
pub(super) fn leave(data: &Path, address: SocketAddr) -> io::Result<Note> {
    let path = data.join(FILE);
    let running = Running { url: format!("http://{address}"), pid: std::process::id() };
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(serde_json::to_string(&running)?.as_bytes())?;
    Ok(Note(path))
}

/// The server that runs on this folder, if one left a note. It may be gone all the same.
pub fn running(data: &Path) -> Option<Running> {
    serde_json::from_str(&fs::read_to_string(data.join(FILE)).ok()?).ok()
}

impl Drop for Note {
    fn drop(&mut self) {
        // A note that is left behind names a server that does not answer.
        let _ = fs::remove_file(&self.0);
    }
}
