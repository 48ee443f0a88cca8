//! Writes the address of a data folder's server to `<data>/server.json`, so that commands find the server.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::settings::private_file;

/// The name of the file in the data folder.
const FILE: &str = "server.json";

/// A server that runs on a data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The address of the server: `http://127.0.0.1:7878`.
    pub url: String,
    pub pid: u32,
}

/// The address file. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct AddressFile(PathBuf);

/// Removes the address file of a killed server. The caller must hold the lock of the data folder.
pub(super) fn clear(data: &Path) -> io::Result<()> {
    private_file::remove(&data.join(FILE))
}

/// Writes the address file, readable only by its owner.
pub(super) fn write(data: &Path, address: SocketAddr) -> io::Result<AddressFile> {
    let path = data.join(FILE);
    let running = Running { url: format!("http://{address}"), pid: std::process::id() };
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(serde_json::to_string(&running)?.as_bytes())?;
    Ok(AddressFile(path))
}

/// The server of this data folder, if there is an address file. The server may have been killed since.
pub fn running(data: &Path) -> Option<Running> {
    serde_json::from_str(&fs::read_to_string(data.join(FILE)).ok()?).ok()
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A leftover file names a server that does not respond.
        let _ = fs::remove_file(&self.0);
    }
}
