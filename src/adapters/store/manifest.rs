//! The file beside sled's folder with the minimum content of the store. It is needed because sled opens a truncated database
//! without an error.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::OpenError;

/// The newest format of stored records that this version reads.
pub const FORMAT: u64 = 3;

/// The content of a data folder when the manifest was last written. The store may contain more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the records' format.
    pub format: u64,
    /// The store's own id, 128 bits in hexadecimal digits.
    pub store: String,
    /// The numbers of groups and events ever committed.
    #[serde(flatten)]
    pub counts: Counts,
    /// The length of the database file in bytes.
    pub db_bytes: u64,
    /// The files of a database that was closed properly. `None` while it is open, and after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Checksums>,
}

/// The CRC-32 of each file in a folder and its subfolders, by relative path.
pub type Checksums = BTreeMap<String, u32>;

/// The total numbers of commits. Deletion and retention do not lower them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of the last group, from 1.
    pub groups: u64,
    /// The number of events ever appended.
    pub events: u64,
}

impl Counts {
    /// Whether either number is lower than in `other`.
    pub fn is_less_than(self, other: Self) -> bool {
        self.groups < other.groups || self.events < other.events
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events in {} groups", self.events, self.groups)
    }
}

/// The path of a data folder's manifest.
pub fn path(data: &Path) -> PathBuf {
    data.join("manifest")
}

/// Reads a data folder's manifest. `None`: there is none.
///
/// # Errors
/// [`OpenError::NewerVersion`], [`OpenError::Damaged`] if it cannot be parsed, and the errors of the file system.
pub fn read(data: &Path) -> Result<Option<Manifest>, OpenError> {
    #[derive(Deserialize)]
    struct Format {
        format: u64,
    }

    let path = path(data);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::of(&path, error)),
    };
    let unreadable = |error| OpenError::doubtful(data, format!("its manifest cannot be read: {error}"));
    // The version determines how the rest is parsed.
    let Format { format } = serde_json::from_slice(&text).map_err(unreadable)?;
    if format > FORMAT {
        return Err(OpenError::NewerVersion { path, found: format, known: FORMAT });
    }
    serde_json::from_slice(&text).map(Some).map_err(unreadable)
}

/// Replaces a data folder's manifest, in one step that survives a power loss.
///
/// # Errors
/// Returns the errors of the file system. The manifest is then the old one or the new one.
pub fn write(data: &Path, manifest: &Manifest) -> std::io::Result<()> {
    let mut text = serde_json::to_vec_pretty(manifest)?;
    text.push(b'\n');
    replace(data, "manifest", &text).map(drop)
}

/// Replaces a file of a data folder, in one step that survives a power loss. Returns the file, open for writing.
pub(super) fn replace(data: &Path, name: &str, bytes: &[u8]) -> std::io::Result<File> {
    let draft = data.join(format!("{name}.new"));
    let mut file = File::create(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, data.join(name))?;
    sync_folder(data)?;
    Ok(file)
}

/// Syncs a directory, so that its entries survive a power loss.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_folder_has_no_manifest_and_a_manifest_reads_back_as_written() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);

        write(folder.path(), &manifest()).unwrap();

        assert_eq!(read(folder.path()).unwrap(), Some(manifest()));
    }

    #[test]
    fn a_newer_manifest_is_refused_whatever_its_other_fields_and_one_that_is_not_json_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |written: &[u8]| {
            fs::write(path(folder.path()), written).unwrap();
            read(folder.path()).unwrap_err()
        };

        let newer = refusal(br#"{"format": 4, "shards": []}"#);
        assert!(matches!(newer, OpenError::NewerVersion { found: 4, known: FORMAT, .. }), "{newer}");
        let damaged = refusal(&[0; 64]);
        assert!(matches!(damaged, OpenError::Damaged(_)), "{damaged}");
    }

    fn manifest() -> Manifest {
        Manifest { format: FORMAT, store: "17".into(), counts: Counts { groups: 3, events: 40 }, db_bytes: 524_288, files: None }
    }
}
