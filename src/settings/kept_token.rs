//! The admin token that the server has generated. It is in a file beside the store, which only the server's user may read.

use std::io;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::private_file;

const FILE: &str = "admin_token";

/// The file of a token that the server has generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptToken(PathBuf);

impl KeptToken {
    /// The file in a data folder.
    pub fn of(data: &Path) -> Self {
        Self(data.join(FILE))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the token. The file is replaced atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, token: &SecretString) -> io::Result<()> {
        private_file::write(&self.0, format!("{}\n", token.expose_secret()).as_bytes())
    }
}
