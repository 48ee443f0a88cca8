//! The accepted tools, in a file of the data folder that only the server's user may read.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, RwLock};

use crate::ports::tools::AcceptedTool;
use crate::settings::private_file;

const FILE: &str = "tools.lock";

/// The accepted tools by their names.
type Accepted = BTreeMap<String, AcceptedTool>;

pub(crate) struct Lock {
    path: PathBuf,
    /// Or why the file cannot be read.
    accepted: RwLock<Result<Accepted, String>>,
    /// Held while the file is being written.
    writing: Mutex<()>,
}

impl Lock {
    pub(crate) fn read(data: &Path) -> Self {
        let path = data.join(FILE);
        let accepted = private_file::read(&path).map(Option::unwrap_or_default).map_err(|error| {
            let problem = format!("{} cannot be read: {error}; repair it, or accept the tools again", path.display());
            tracing::error!(problem, "no tool of a server is offered");
            problem
        });
        Self { path, accepted: RwLock::new(accepted), writing: Mutex::default() }
    }

    pub(crate) fn problem(&self) -> Option<String> {
        self.accepted.read().as_ref().err().cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.accepted.read().iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// The version of a tool that was accepted.
    pub(crate) fn accepted(&self, name: &str) -> Option<AcceptedTool> {
        self.accepted.read().as_ref().ok()?.get(name).cloned()
    }

    pub(crate) fn accepts(&self, name: &str, hash: &str) -> bool {
        self.accepted(name).is_some_and(|tool| tool.hash == hash)
    }

    /// Adds accepted tools, and keeps those of the others that are to be kept.
    pub(crate) fn accept(&self, new: Accepted, is_kept: impl Fn(&str) -> bool) -> io::Result<()> {
        let _writing = self.writing.lock();
        let mut accepted = self.accepted.read().clone().unwrap_or_default();
        accepted.retain(|name, _| is_kept(name));
        accepted.extend(new);
        private_file::write(&self.path, &serde_json::to_vec_pretty(&accepted)?)?;
        *self.accepted.write() = Ok(accepted);
        Ok(())
    }
}
