//! Finds, writes and removes the files of companions. Each change is atomic, except in a file that is a mount point.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::BUILT_IN;
use super::folder::{KEYS, persona_files};
use crate::domain::id::CompanionId;
use crate::load::{is_there, read_text};

/// The files of all companions.
#[derive(Clone, Debug)]
pub struct CompanionFiles {
    folder: PathBuf,
    /// Replaces the text of a file. Tests inject other functions.
    replace: fn(&Path, &str) -> io::Result<()>,
}

/// The files of one companion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub form: Form,
    /// The file with its keys. For a built-in companion it does not exist.
    pub path: PathBuf,
    /// The content of that file.
    pub text: String,
    /// Its persona files, with their content.
    pub personas: Vec<(PathBuf, String)>,
}

/// The storage form of a companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    BuiltIn,
    File,
    Folder,
}

/// Files that were moved away until a change is complete. The caller then deletes them or puts them back.
#[must_use = "the files are neither deleted nor put back"]
#[derive(Debug)]
pub struct MovedAway {
    from: PathBuf,
    to: PathBuf,
}

impl CompanionFiles {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, replace }
    }

    /// Replaces the function that writes a file.
    #[cfg(any(test, feature = "samples"))]
    pub fn writing_with(self, replace: fn(&Path, &str) -> io::Result<()>) -> Self {
        Self { replace, ..self }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the built-in companions are in use, because the folder does not exist.
    pub fn are_built_in(&self) -> bool {
        !is_there(&self.folder)
    }

    /// The path of a new companion's file.
    pub fn path_of(&self, id: &CompanionId) -> PathBuf {
        self.folder.join(format!("{id}.toml"))
    }

    /// The files of a companion, if it has any.
    ///
    /// # Errors
    /// Returns an error if the files exist but cannot be read. The text names the file.
    pub fn find(&self, id: &CompanionId) -> Result<Option<Found>, String> {
        let unreadable = |path: &Path, message: String| format!("{}: {message}", path.display());
        let file = self.path_of(id);
        if self.are_built_in() {
            let built_in = BUILT_IN.into_iter().find(|(stem, _)| *stem == id.as_str());
            return Ok(built_in.map(|(_, text)| Found {
                form: Form::BuiltIn,
                path: file,
                text: text.to_owned(),
                personas: Vec::new(),
            }));
        }
        let folder = self.folder.join(id.as_str());
        let keys = folder.join(KEYS);
        if is_there(&keys) {
            let text = read_text(&keys).map_err(|message| unreadable(&keys, message))?;
            let paths = persona_files(&folder).map_err(|error| unreadable(&folder, error.to_string()))?;
            let personas = paths
                .into_iter()
                .map(|path| read_text(&path).map(|text| (path.clone(), text)).map_err(|message| unreadable(&path, message)));
            return Ok(Some(Found { form: Form::Folder, path: keys, text, personas: personas.collect::<Result<_, _>>()? }));
        }
        if !is_there(&file) {
            return Ok(None);
        }
        let text = read_text(&file).map_err(|message| unreadable(&file, message))?;
        Ok(Some(Found { form: Form::File, path: file, text, personas: Vec::new() }))
    }

    /// Whether the folder has an entry of this name, in any case: a companion's file or folder, or any other entry.
    pub fn has(&self, name: &str) -> bool {
        let names = |path: &Path| {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().to_lowercase()).collect::<Vec<_>>()
        };
        let is_it = |found: &String| *found == name || found.strip_suffix(".toml") == Some(name);
        match self.are_built_in() {
            true => BUILT_IN.iter().any(|(stem, _)| *stem == name),
            false => names(&self.folder).iter().any(is_it),
        }
    }

    /// Whether the server may write the files. This is only a guess; a write can still fail.
    pub fn is_writable(&self, found: Option<&Found>) -> bool {
        let file = found.filter(|found| found.form != Form::BuiltIn).map(|found| target(&found.path));
        if file.as_ref().and_then(|file| fs::metadata(file).ok()).is_some_and(|file| file.permissions().readonly()) {
            return false;
        }
        let place = match &file {
            Some(file) => file.parent(),
            None => self.folder.ancestors().find(|folder| folder.as_os_str().is_empty() || is_there(folder)),
        };
        let place = place.filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
        access(place, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    }

    /// Writes the file of a companion. If the folder does not exist, it is created with the built-in companions and this one,
    /// atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. Nothing has changed then.
    pub fn write(&self, id: &CompanionId, found: Option<&Found>, text: &str) -> io::Result<()> {
        if self.are_built_in() {
            return self.make_folder(self.built_in_but(id).chain([(id.as_str(), text)]));
        }
        match found {
            Some(found) => (self.replace)(&found.path, text),
            None => (self.replace)(&self.path_of(id), text),
        }
    }

    /// Writes a persona file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. Nothing has changed then.
    pub fn write_persona(&self, path: &Path, text: &str) -> io::Result<()> {
        (self.replace)(path, text)
    }

    /// Moves the files of a companion away, to a name that is not read. To remove a built-in companion, the other built-in
    /// companions are written to a new folder.
    ///
    /// # Errors
    /// Returns an error if the files cannot be moved. Nothing has changed then.
    pub fn move_away(&self, id: &CompanionId, found: &Found) -> io::Result<Option<MovedAway>> {
        let from = match found.form {
            Form::BuiltIn => return self.make_folder(self.built_in_but(id)).map(|()| None),
            Form::File => found.path.clone(),
            Form::Folder => self.folder.join(id.as_str()),
        };
        let endings = std::iter::once(".removed".to_owned()).chain((2..).map(|number| format!(".removed-{number}")));
        let Some(to) = endings.map(|ending| hidden(&from, &ending)).find(|to| !is_there(to)) else { return Ok(None) };
        fs::rename(&from, &to)?;
        sync(&self.folder);
        Ok(Some(MovedAway { from, to }))
    }

    /// The built-in companions except this one, by the stems of their files.
    fn built_in_but<'a>(&self, id: &'a CompanionId) -> impl Iterator<Item = (&'a str, &'a str)> {
        BUILT_IN.into_iter().filter(|(stem, _)| *stem != id.as_str())
    }

    /// Creates the folder with these companions.
    fn make_folder<'a>(&self, companions: impl Iterator<Item = (&'a str, &'a str)>) -> io::Result<()> {
        let parent = self.folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made: Vec<_> = parent.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !is_there(folder)).collect();
        let new = hidden(&self.folder, ".new");
        let make = || {
            fs::create_dir_all(parent)?;
            remove_all(&new)?;
            fs::create_dir(&new)?;
            for (stem, text) in companions {
                (self.replace)(&new.join(format!("{stem}.toml")), text)?;
            }
            sync(&new);
            // This fails if another process has created the folder in the meantime, unless the folder is empty.
            fs::rename(&new, &self.folder)
        };
        make().inspect_err(|_| {
            // A remaining folder is hidden, so it is not read as a companion.
            let _ = remove_all(&new);
            for folder in &made {
                let _ = fs::remove_dir(folder);
            }
        })?;
        sync(parent);
        Ok(())
    }
}

impl MovedAway {
    /// Deletes the files. Other files in a companion's folder stay, in a hidden folder.
    pub fn delete(self) {
        let deleted = if self.to.is_symlink() || self.to.is_file() {
            fs::remove_file(&self.to)
        } else {
            let personas = persona_files(&self.to).unwrap_or_default();
            let files = personas.into_iter().chain([self.to.join(KEYS)]);
            files.filter(|file| is_there(file)).try_for_each(fs::remove_file).and_then(|()| match fs::remove_dir(&self.to) {
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
                removed => removed,
            })
        };
        if let Err(error) = deleted {
            tracing::warn!(path = %self.to.display(), %error, "files of a companion that was removed cannot be deleted");
        }
    }

    /// Moves the files back.
    pub fn put_back(self) {
        if let Err(error) = fs::rename(&self.to, &self.from) {
            tracing::error!(path = %self.to.display(), %error, "a companion's files cannot be put back; move them to {}", self.from.display());
        }
    }
}

/// Whether this error means that files cannot be written there, now or later. Other errors, such as a full disk, are temporary.
pub fn is_unwritable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory)
}

/// Replaces the text of a file. Its permissions and owner stay. A symbolic link stays a link.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = target(path);
    let before = match fs::metadata(&target) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if before.as_ref().is_some_and(|before| before.permissions().readonly()) {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "the file is write-protected"));
    }
    let new = hidden(&target, ".new");
    remove_all(&new)?;
    let write = || {
        let mut file = File::options().write(true).create_new(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        if let Some(before) = &before {
            keep_owner(&file, before);
            file.set_permissions(before.permissions())?;
        }
        file.sync_all()?;
        match fs::rename(&new, &target) {
            // A file that is a mount point, as in containers, cannot be replaced by renaming.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                fs::remove_file(&new)?;
                let mut file = File::options().write(true).truncate(true).open(&target)?;
                file.write_all(text.as_bytes())?;
                file.sync_all()
            }
            renamed => renamed,
        }
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))?;
    if let Some(folder) = target.parent() {
        sync(folder);
    }
    Ok(())
}

/// Resolves a path through all symbolic links, also if the target does not exist.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // Linux follows at most 40 links.
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&path) else { break };
        path = path.parent().map(|folder| folder.join(&link)).unwrap_or(link);
    }
    path
}

/// Keeps the owner of the old file, if the server may change owners.
fn keep_owner(file: &File, before: &Metadata) {
    let is_other = file.metadata().is_ok_and(|new| (new.uid(), new.gid()) != (before.uid(), before.gid()));
    if is_other && let Err(error) = fchown(file, Some(before.uid()), Some(before.gid())) {
        tracing::warn!(%error, "a companion's file has another owner now");
    }
}

/// A hidden name beside this path. Hidden names are never companions.
fn hidden(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(ending);
    path.with_file_name(name)
}

/// Removes the remains of an earlier attempt, if there are any.
fn remove_all(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Syncs a folder, so that a rename in it survives a power failure. If it cannot be synced, the rename is in effect nevertheless.
fn sync(folder: &Path) {
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::warn!(folder = %folder.display(), %error, "the folder cannot be synced");
    }
}

#[cfg(test)]
mod tests;
