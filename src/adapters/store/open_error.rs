//! Why a store on disk cannot be opened, and what to do about it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use super::manifest::Counts;

/// What to do about a store that can be read in part.
pub(super) const WAYS_OUT: &str = "put a backup back with `tertulia history restore`, \
    or copy the folder and go on with what is left with `tertulia serve --accept-loss`";

/// Why a store on disk cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server holds the folder.
    #[error("{} is in use by another server: stop that one first, or use another folder", .folder.display())]
    InUse {
        /// The data folder.
        folder: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("{} lies on a file system that is read-only: mount it for writing, or use another folder", .folder.display())]
    ReadOnly {
        /// The data folder.
        folder: PathBuf,
    },
    /// The user of this process may not write there.
    #[error("{} cannot be written to: give it to the user that runs this, or use another folder", .path.display())]
    Permission {
        /// What may not be written to.
        path: PathBuf,
    },
    /// The database is shorter than the manifest says. It has not been touched.
    #[error("{} is damaged: it had {manifest} bytes and has {found} now; {WAYS_OUT}", .path.display())]
    Truncated {
        /// The database file.
        path: PathBuf,
        /// Bytes that the manifest knows of.
        manifest: u64,
        /// Bytes found; 0 if the file is missing.
        found: u64,
    },
    /// The database opens, and holds less than the manifest says.
    #[error("the store in {} has lost something: it had {manifest} and has {found} now; {WAYS_OUT}", .folder.display())]
    Lost {
        /// The data folder.
        folder: PathBuf,
        /// What the manifest knows of.
        manifest: Counts,
        /// What was found.
        found: Counts,
    },
    /// What is stored cannot be read.
    #[error("{0}")]
    Damaged(String),
    /// Places in it cannot be read any more: what is left has to be copied first.
    #[error(
        "{holes} places of the store in {} cannot be read, the first: {first}; put a backup back with `tertulia history restore`, \
         or copy the folder and keep what can be read with `tertulia history compact --accept-loss`",
        .folder.display()
    )]
    Holes {
        /// The data folder.
        folder: PathBuf,
        /// How many.
        holes: usize,
        /// What is known of the first.
        first: String,
    },
    /// Opening did not come to an end: damage can make sled search for ever. The thread that tries is left behind, so the process
    /// should end.
    #[error(
        "{} gave no sign for {} s while it was opened: it is damaged, or very slow to read; put a backup back with `tertulia history restore`, or copy the folder and try `tertulia serve --accept-loss`, which waits for longer",
        .folder.display(), .after.as_secs_f32()
    )]
    Stuck {
        /// The data folder.
        folder: PathBuf,
        /// How long it was waited for.
        after: Duration,
    },
    /// A backup was being restored, and that was interrupted.
    #[error(
        "restoring a backup into {} was interrupted: do it again with `tertulia history restore`, or begin without it with `tertulia serve --accept-loss`",
        .folder.display()
    )]
    HalfRestored {
        /// The data folder.
        folder: PathBuf,
    },
    /// A newer version of this program wrote it.
    #[error("{} was written in format {found}, this version of tertulia reads up to {known}: start the version that wrote it, or put a backup from before back with `tertulia history restore`; nothing was changed", .path.display())]
    NewerVersion {
        /// What is of a newer version.
        path: PathBuf,
        /// The version found.
        found: u64,
        /// The newest version known here.
        known: u64,
    },
    /// The disk is full.
    #[error("the disk of {} is full, or files may not grow (`ulimit -f`): make room and start again", .folder.display())]
    Full {
        /// The data folder.
        folder: PathBuf,
    },
    /// No more files may be opened.
    #[error("{}: too many files are open (`ulimit -n`): raise the limit and start again", .path.display())]
    Files {
        /// What it is about.
        path: PathBuf,
    },
    /// Something that is no folder lies where one is needed.
    #[error("{} is not a folder: move what is there, or name another data folder with storage.path", .path.display())]
    NoFolder {
        /// What is there.
        path: PathBuf,
    },
    /// Anything else that the file system reports.
    #[error("{}: {error}", .path.display())]
    Io {
        /// What it is about.
        path: PathBuf,
        /// What was reported.
        error: io::Error,
    },
}

impl OpenError {
    /// Whether it says that the store is damaged, or not whole; else nothing is known of that.
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Truncated { .. } | Self::Lost { .. } | Self::Damaged(_) | Self::Holes { .. } | Self::HalfRestored { .. }
        )
    }

    /// Names what the file system reported about something in a data folder.
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

    /// That a store cannot be read at all: only a backup helps.
    pub(super) fn damaged(folder: &Path, detail: impl std::fmt::Display) -> Self {
        let folder = folder.display();
        Self::Damaged(format!("the store in {folder} is damaged ({detail}); put a backup back with `tertulia history restore`"))
    }

    /// That a store can be read, and is not what it should be.
    pub(super) fn doubtful(folder: &Path, detail: impl std::fmt::Display) -> Self {
        Self::Damaged(format!("the store in {} is damaged ({detail}); {WAYS_OUT}", folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_system_says_comes_with_a_way_out() {
        let told = |kind: ErrorKind| OpenError::of(Path::new("/data"), kind.into()).to_string();

        assert!(told(ErrorKind::FileTooLarge).contains("make room"));
        assert!(told(ErrorKind::StorageFull).contains("make room"));
        assert!(told(ErrorKind::AlreadyExists).starts_with("/data is not a folder"));
        assert!(OpenError::of(Path::new("/data"), Errno::MFILE.into()).to_string().contains("ulimit -n"));
        assert!(told(ErrorKind::PermissionDenied).contains("give it to the user"));
    }

    #[test]
    fn a_store_that_is_slow_to_open_is_not_known_to_be_damaged() {
        let slow = OpenError::Stuck { folder: "/data".into(), after: Duration::from_secs(60) };

        assert!(!slow.is_damage() && slow.to_string().contains("or very slow to read"));
        assert!(OpenError::damaged(Path::new("/data"), "torn".to_owned()).is_damage());
    }
}
