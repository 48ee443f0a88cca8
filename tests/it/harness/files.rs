//! Files on disk: their content, and who may write to them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::{Premises, program, ran};

/// Every file under a folder with its content.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    files
}

/// The files below a folder that contain this text.
pub fn files_with(folder: &Path, words: &str) -> Vec<String> {
    let contain = |bytes: &[u8]| bytes.windows(words.len()).any(|part| part == words.as_bytes());
    contents(folder).into_iter().filter(|(_, bytes)| contain(bytes)).map(|(path, _)| path.display().to_string()).collect()
}

/// Sets the mode of a file or folder.
pub fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions can be set");
}

/// The user that runs the tests, or `nobody` if that is root. Holds the command that changes the user.
pub struct UnprivilegedUser(&'static [&'static str]);

impl UnprivilegedUser {
    /// Gives the premises to that user. `None` if this user can write to every folder, and the program cannot be run as another user.
    pub async fn find(premises: &Premises) -> Option<Self> {
        const NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let is_root = ran(premises.command_of(&["id", "-u"])).await.stdout.trim() == "0";
        if !is_root {
            return Some(Self(&[]));
        }
        let owner_changed = ran(premises.command_of(&["chown", "-R", "65534:65534", "."])).await;
        permit(premises.path(), 0o755);
        let version = ran(premises.command_of(&[NOBODY, &[&*program(), "--version"]].concat())).await;
        ([owner_changed.code, version.code] == [Some(0); 2]).then_some(Self(NOBODY))
    }

    /// The program with these arguments, run by that user.
    pub fn command(&self, premises: &Premises, arguments: &[&str]) -> Command {
        premises.command_of(&[self.0, &[&*program()], arguments].concat())
    }
}
