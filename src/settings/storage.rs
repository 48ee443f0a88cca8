//! Settings of the store.

use std::path::PathBuf;

use super::Problem;

/// Section `storage`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// The folder of the histories; a relative one begins where the server was started.
    pub path: PathBuf,
}

impl Storage {
    /// Holds every value to its range.
    pub fn check(&self) -> Result<(), Problem> {
        if self.path.as_os_str().is_empty() {
            return Err(Problem::new("path", "is empty, must name a folder, for example data"));
        }
        Ok(())
    }
}
