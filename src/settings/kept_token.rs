//! The admin token that the server made itself: a file beside the store, which only the server's user may read.

use std::io;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::private_file;

const FILE: &str = "admin_token";

/// Where the server keeps a token that it made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptToken(PathBuf);

impl KeptToken {
    /// The one of a data folder.
    pub fn of(data: &Path) -> Self {
        Self(data.join(FILE))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the token. The file is replaced as a whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, token: &SecretString) -> io::Result<()> {
        private_file::write(&self.0, format!("{}\n", token.expose_secret()).as_bytes())
    }
}
