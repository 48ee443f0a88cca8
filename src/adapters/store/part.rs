//! Writes a file that only its owner can read, under a temporary name until it is complete.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The maximum number of parts of one file, including those of concurrent writers and of killed writers.
const MOST_PARTS: u32 = 1_000;

/// An incomplete file: `<name>.part` beside the target, or `<name>.2.part` and so on if that exists.
///
/// It is always a new file. An existing file, or a link to another place, is never written to or deleted, and its permissions are
/// never used. The part is deleted when this is dropped. A killed process leaves its part behind.
#[derive(Debug)]
pub struct Part {
    to: PathBuf,
    path: PathBuf,
    /// Device and inode, to recognise the file.
    identity: (u64, u64),
}

impl Part {
    /// Creates the part.
    ///
    /// # Errors
    /// Returns the errors of the file system. [`unwritten`] turns one into a message for the user.
    pub fn begin(to: &Path) -> io::Result<(File, Self)> {
        for number in 1..=MOST_PARTS {
            let path = path_of(to, number);
            let file = match File::options().write(true).create_new(true).mode(0o600).open(&path) {
                // The owner of the existing part is unknown.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let identity = identity(&file.metadata()?);
            return Ok((file, Self { to: to.to_path_buf(), path, identity }));
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Gives the file its final name, without replacing another file that has that name by now.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], other errors of the file system, and an error if another file has replaced the part.
    pub fn finish(self) -> io::Result<()> {
        if !self.is_there() {
            return Err(io::Error::other("another process is writing there"));
        }
        fs::hard_link(&self.path, &self.to)?;
        fs::remove_file(&self.path)
    }

    /// Whether the part's path still has the file that was created.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.is_there() {
            // A file that cannot be deleted remains.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn path_of(to: &Path, number: u32) -> PathBuf {
    let mut path = to.as_os_str().to_owned();
    path.push(if number == 1 { ".part".to_owned() } else { format!(".{number}.part") });
    path.into()
}

/// The message for a new file that could not be written. It names the target and the remedy.
pub fn unwritten(to: &Path, error: &io::Error) -> String {
    let shown = to.display();
    if to.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return format!("there is no folder {shown}: create it first, and name a new file in it");
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = folder.display();
    match error.kind() {
        ErrorKind::NotFound if !folder.exists() => {
            format!("{shown} cannot be written, there is no folder {place}: create it first")
        }
        ErrorKind::NotADirectory => format!("{shown} cannot be written, {place} is not a folder: name another"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!("{shown} cannot be written ({error}): let the user that runs this write to {place}, or name another folder")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            format!("{shown} cannot be written ({error}): free some space there, or name another folder")
        }
        ErrorKind::AlreadyExists => exists_already(to),
        _ => format!("{shown} cannot be written: {error}"),
    }
}

/// The message for a new file whose name is taken.
pub fn exists_already(to: &Path) -> String {
    let shown = to.display();
    if to.is_dir() {
        return format!("{shown} is a folder: name a new file in it");
    }
    format!("{shown} exists already: name another, or move it away")
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn existing_files_at_the_names_of_parts_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");
        fs::write(path_of(&to, 1), "precious").unwrap();
        fs::create_dir(path_of(&to, 2)).unwrap();
        symlink(folder.path().join("nowhere"), path_of(&to, 3)).unwrap();

        let (mut file, part) = Part::begin(&to).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(part.path, path_of(&to, 4));
        part.finish().unwrap();

        assert_eq!(fs::read_to_string(&to).unwrap(), "whole");
        assert_eq!(fs::read_to_string(path_of(&to, 1)).unwrap(), "precious");
        assert!(path_of(&to, 2).is_dir() && path_of(&to, 3).is_symlink() && !path_of(&to, 4).exists());
        assert!(!folder.path().join("nowhere").exists());
    }

    #[test]
    fn an_unfinished_part_is_deleted_and_a_file_that_replaced_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");

        let (_file, part) = Part::begin(&to).unwrap();
        drop(part);
        assert!(!path_of(&to, 1).exists());

        let (_file, part) = Part::begin(&to).unwrap();
        fs::rename(path_of(&to, 1), folder.path().join("away")).unwrap();
        fs::write(path_of(&to, 1), "precious").unwrap();
        drop(part);
        assert_eq!(fs::read_to_string(path_of(&to, 1)).unwrap(), "precious");
    }

    #[test]
    fn a_link_at_the_name_of_a_part_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (to, victim) = (folder.path().join("copy"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, path_of(&to, 1)).unwrap();

        let (mut file, part) = Part::begin(&to).unwrap();
        file.write_all(b"secret").unwrap();
        part.finish().unwrap();

        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&to).unwrap(), "secret");
        assert!(!fs::symlink_metadata(&to).unwrap().is_symlink());
    }

    #[test]
    fn a_file_that_waits_there_for_everybody_lends_no_permissions_and_keeps_no_reader() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");
        fs::write(path_of(&to, 1), "left").unwrap();
        fs::set_permissions(path_of(&to, 1), fs::Permissions::from_mode(0o666)).unwrap();
        let spy = File::open(path_of(&to, 1)).unwrap();

        let (mut file, part) = Part::begin(&to).unwrap();
        file.write_all(b"secret").unwrap();
        part.finish().unwrap();

        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(io::read_to_string(spy).unwrap(), "left");
    }

    #[test]
    fn a_file_that_replaced_a_part_is_not_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");
        let (_file, first) = Part::begin(&to).unwrap();
        fs::remove_file(&first.path).unwrap();
        let (_other, second) = Part::begin(&to).unwrap();
        assert_eq!(first.path, second.path);

        assert!(first.finish().is_err());
        assert!(second.finish().is_ok());
    }

    #[test]
    fn the_first_of_two_concurrent_writers_to_finish_gets_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");
        let (_file, first) = Part::begin(&to).unwrap();
        let (mut other, second) = Part::begin(&to).unwrap();
        other.write_all(b"second").unwrap();

        assert!(second.finish().is_ok());
        assert_eq!(first.finish().unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&to).unwrap(), "second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_message_for_an_unwritable_file_names_the_target_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let message = |to: &str| {
            let to = folder.path().join(to);
            let text = unwritten(&to, &Part::begin(&to).unwrap_err());
            text.replace(&folder.path().display().to_string(), "…")
        };

        assert_eq!(message("gone/copy"), "…/gone/copy cannot be written, there is no folder …/gone: create it first");
        assert_eq!(message("gone/"), "there is no folder …/gone/: create it first, and name a new file in it");
        assert_eq!(message("file/copy"), "…/file/copy cannot be written, …/file is not a folder: name another");
        let full = unwritten(Path::new("copy"), &ErrorKind::StorageFull.into());
        assert_eq!(full, "copy cannot be written (no storage space): free some space there, or name another folder");
    }

    #[test]
    fn a_name_of_a_folder_and_a_taken_name_have_different_messages() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();

        assert!(exists_already(folder.path()).ends_with("is a folder: name a new file in it"));
        assert!(exists_already(&file).ends_with("exists already: name another, or move it away"));
    }

    #[test]
    fn an_existing_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");
        let (_file, part) = Part::begin(&to).unwrap();
        symlink(folder.path().join("elsewhere"), &to).unwrap();

        assert_eq!(part.finish().unwrap_err().kind(), ErrorKind::AlreadyExists);
    }
}
