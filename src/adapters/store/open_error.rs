//! Why a store cannot be opened, with the remedy.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use super::manifest::Counts;

/// The remedies for a store that has lost data.
pub(super) const WAYS_OUT: &str = "restore a backup with `tertulia history restore`, \
    or copy the folder and continue with what is left with `tertulia serve --accept-loss`";

/// Why a store on disk cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server has locked the folder.
    #[error("{} is in use by another server: stop that one first, or use another folder", .folder.display())]
    InUse { folder: PathBuf },
    /// The file system is mounted read-only.
    #[error("{} is on a read-only file system: mount it for writing, or use another folder", .folder.display())]
    ReadOnly { folder: PathBuf },
    /// The user of this process may not write there.
    #[error("{} cannot be written to: give it to the user that runs this, or use another folder", .path.display())]
    Permission {
        /// The file or folder that may not be written to.
        path: PathBuf,
    },
    /// The database is shorter than the manifest says. It was not changed.
    #[error("{} is damaged: it had {manifest} bytes and has {found} now; {WAYS_OUT}", .path.display())]
    Truncated {
        path: PathBuf,
        /// The length in the manifest, in bytes.
        manifest: u64,
        /// The length found, in bytes; 0 if the file is missing.
        found: u64,
    },
    /// The database is missing, and it contained data. None of the data can be recovered, even if a loss is accepted.
    #[error(
        "{} is missing: it had {manifest} bytes and has 0 now, and nothing else has what was in it; put it back, or restore a backup with `tertulia history restore`. To begin anew, move `store`, `manifest` and `commits` out of the data folder",
        .path.display()
    )]
    Missing {
        path: PathBuf,
        /// The length in the manifest, in bytes.
        manifest: u64,
    },
    /// The database opens, but contains less than the manifest says.
    #[error("the store in {} has lost data: it had {manifest} and has {found} now; {WAYS_OUT}", .folder.display())]
    Lost { folder: PathBuf, manifest: Counts, found: Counts },
    /// The database does not answer, or the server does not exist. The failure may be temporary.
    #[error("the database of storage.url or storage.url_file cannot be reached: {0}")]
    Unreachable(String),
    /// Stored data cannot be read.
    #[error("{0}")]
    Damaged(String),
    /// Opening did not finish: damage can make sled search without end. The thread keeps running, so the process should end.
    #[error(
        "{} made no progress for {} s while it was opened: it is damaged, or very slow to read; restore a backup with `tertulia history restore`, or copy the folder and try `tertulia serve --accept-loss`, which waits for longer",
        .folder.display(), .after.as_secs_f32()
    )]
    Stuck {
        folder: PathBuf,
        /// The time waited.
        after: Duration,
    },
    #[error(
        "restoring a backup into {} was interrupted: do it again with `tertulia history restore`, or start without the backup with `tertulia serve --accept-loss`",
        .folder.display()
    )]
    HalfRestored { folder: PathBuf },
    /// A newer version of this program wrote it.
    #[error("{} was written in format {found}, this version of tertulia reads up to {known}: start the version that wrote it, or restore an earlier backup with `tertulia history restore`; nothing was changed", .path.display())]
    NewerVersion {
        /// The file or folder with a newer version.
        path: PathBuf,
        found: u64,
        /// The newest version known here.
        known: u64,
    },
    /// The database cannot be used. The text contains no part of its URL.
    #[error("the database of storage.url or storage.url_file cannot be used: {0}")]
    Database(String),
    #[error(
        "the {what} of the database of storage.url or storage.url_file have version {found}, this version of tertulia knows up to {known}: start the version that wrote it; nothing was changed"
    )]
    NewerDatabase {
        /// The part that has a newer version.
        what: &'static str,
        found: u64,
        /// The newest version known here.
        known: u64,
    },
    /// The disk is full.
    #[error("the disk of {} is full, or files may not grow (`ulimit -f`): make room and start again", .folder.display())]
    Full { folder: PathBuf },
    /// No more files may be opened.
    #[error("{}: too many files are open (`ulimit -n`): raise the limit and start again", .path.display())]
    Files {
        /// The file or folder in question.
        path: PathBuf,
    },
    /// A folder is needed, but the path is another kind of file.
    #[error("{} is not a folder: move what is there, or name another data folder with storage.path", .path.display())]
    NoFolder { path: PathBuf },
    /// Another error of the file system.
    #[error("{} cannot be used: {error}; name another data folder with storage.path (TERTULIA__STORAGE__PATH)", .path.display())]
    Io {
        /// The file or folder in question.
        path: PathBuf,
        error: io::Error,
    },
}

impl OpenError {
    /// Whether the store is known to be damaged or incomplete. Other errors say nothing about that.
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Truncated { .. } | Self::Missing { .. } | Self::Lost { .. } | Self::Damaged(_) | Self::HalfRestored { .. }
        )
    }

    /// Converts an error of the file system about a path in a data folder.
    pub(super) fn of(path: &Path, error: io::Error) -> Self {
        let path = path.to_path_buf();
        if let Some(Errno::MFILE | Errno::NFILE) = Errno::from_io_error(&error) {
            return Self::Files { path };
        }
        match error.kind() {
            ErrorKind::PermissionDenied => Self::Permission { path },
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { folder: path },
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Self::Full { folder: path },
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Self::NoFolder { path },
            _ => Self::Io { path, error },
        }
    }

    /// The error for a store that cannot be read to its end. Only a backup helps.
    pub(super) fn damaged(folder: &Path, detail: impl std::fmt::Display) -> Self {
        let folder = folder.display();
        Self::Damaged(format!("the store in {folder} is damaged ({detail}); restore a backup with `tertulia history restore`"))
    }

    /// The error for a store that can be read, but is inconsistent.
    pub(super) fn doubtful(folder: &Path, detail: impl std::fmt::Display) -> Self {
        Self::Damaged(format!("the store in {} is damaged ({detail}); {WAYS_OUT}", folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_file_system_say_what_to_do() {
        let message = |kind: ErrorKind| OpenError::of(Path::new("/data"), kind.into()).to_string();

        assert!(message(ErrorKind::FileTooLarge).contains("make room"));
        assert!(message(ErrorKind::StorageFull).contains("make room"));
        assert!(message(ErrorKind::AlreadyExists).starts_with("/data is not a folder"));
        assert!(OpenError::of(Path::new("/data"), Errno::MFILE.into()).to_string().contains("ulimit -n"));
        assert!(message(ErrorKind::PermissionDenied).contains("give it to the user"));
    }

    #[test]
    fn a_store_that_is_slow_to_open_does_not_count_as_damaged() {
        let slow = OpenError::Stuck { folder: "/data".into(), after: Duration::from_secs(60) };

        assert!(!slow.is_damage() && slow.to_string().contains("or very slow to read"));
        assert!(OpenError::damaged(Path::new("/data"), "torn".to_owned()).is_damage());
    }
}
