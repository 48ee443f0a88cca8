//! The format of backup files: every record in the order of keys, and a checksum at the end.
//!
//! 1. The line `tertulia backup 1`.
//! 2. The records, each as the lengths of key and value (four bytes each, big-endian), key, value.
//! 3. A length of `u32::MAX`, the number of records, and the 64-bit FNV-1a hash of everything before the hash (eight bytes each).

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use super::OpenError;
use super::audit::{Audit, PROGRESS_EVERY, Report};
use super::manifest::sync_folder;
use super::part::{Part, exists_already, unwritten};
use crate::ports::store::key::Key;
use crate::ports::store::maintenance::{Inspect, MaintenanceError};
use crate::ports::store::{StoreError, Value};

const HEADER: &[u8] = b"tertulia backup 1\n";
const HEADER_START: &[u8] = b"tertulia backup ";
const END: u32 = u32::MAX;

// Real records are far smaller. The limit prevents a damaged length from filling the memory.
const MAX_PART_BYTES: u32 = 1 << 28;

/// The result of copying a store or a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub records: u64,
    /// Bytes on disk before: of the backup, or of the copied store. 0 for a backup of a running store.
    pub bytes_before: u64,
    /// Bytes on disk after: of the backup, or of the new store.
    pub bytes_after: u64,
}

/// Why a copy was not made. Existing data is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store cannot be opened, or its folder cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The target exists.
    #[error("{}", exists_already(.0))]
    Exists(PathBuf),
    /// The target is in the data folder.
    #[error(
        "{} lies in the data folder {}, where it could be taken for a part of the store: name a file outside of it",
        absolute(.to).display(), absolute(.data).display()
    )]
    Among { to: PathBuf, data: PathBuf },
    /// The target cannot be written.
    #[error("{}", unwritten(.to, .error))]
    Unwritten { to: PathBuf, error: io::Error },
    /// A restore was requested into a folder that has a store.
    #[error(
        "there is a store in {folder} already, and a restore never overwrites one: move `store` and `manifest` out of it first \
         (keep them until you know that you do not need them), or restore into another folder: \
         TERTULIA__STORAGE__PATH=/new/folder tertulia history restore …",
        folder = .0.display()
    )]
    Occupied(PathBuf),
    /// The file to be copied is not a backup, or is damaged.
    #[error("{} is not a backup that can be used: {detail}", .path.display())]
    Unusable { path: PathBuf, detail: String },
    /// Another error of the file system.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or folder in question.
        path: PathBuf,
        error: io::Error,
    },
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

impl From<CopyError> for MaintenanceError {
    fn from(error: CopyError) -> Self {
        let detail = error.to_string();
        match error {
            CopyError::Exists(_) | CopyError::Occupied(_) => Self::Exists(detail),
            CopyError::Unwritten { .. } | CopyError::Among { .. } | CopyError::Io { .. } => Self::Target(detail),
            CopyError::Store(StoreError::Damaged(_)) => Self::Damaged(detail),
            CopyError::Store(_) | CopyError::Open(_) | CopyError::Unusable { .. } => Self::Failed(detail),
        }
    }
}

/// Writes records, which must be ordered by key, into one new file that only its owner can read.
pub(super) fn write(
    to: &Path,
    records: impl Iterator<Item = Result<(Key, Value), StoreError>>,
    progress: impl FnMut(u64),
) -> Result<Copied, CopyError> {
    if to.exists() {
        return Err(CopyError::Exists(to.to_path_buf()));
    }
    let about = |error| CopyError::Unwritten { to: to.to_path_buf(), error };

    let (file, part) = Part::begin(to).map_err(about)?;
    let mut out = Hashing::new(BufWriter::new(file));
    let count = write_records(&mut out, records, progress, &about)?;
    let file = out.inner.into_inner().map_err(|error| about(error.into_error()))?;
    file.sync_all().map_err(about)?;
    let bytes_after = file.metadata().map_err(about)?.len();
    part.finish().map_err(about)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(folder).map_err(about)?;
    Ok(Copied { records: count, bytes_before: 0, bytes_after })
}

fn write_records(
    out: &mut Hashing<BufWriter<File>>,
    records: impl Iterator<Item = Result<(Key, Value), StoreError>>,
    mut progress: impl FnMut(u64),
    about: &impl Fn(io::Error) -> CopyError,
) -> Result<u64, CopyError> {
    let mut count = 0_u64;
    out.write_all(HEADER).map_err(about)?;
    for record in records {
        let (key, value) = record?;
        out.record(key.as_bytes(), &value).map_err(about)?;
        count += 1;
        if count.is_multiple_of(PROGRESS_EVERY) {
            progress(count);
        }
    }
    out.write_all(&END.to_be_bytes()).map_err(about)?;
    out.write_all(&count.to_be_bytes()).map_err(about)?;
    let hash = out.hash;
    out.write_all(&hash.to_be_bytes()).map_err(about)?;
    Ok(count)
}

/// Reads a backup completely and checks each record with `inspect`. `progress` receives the number of records read every few
/// thousand.
///
/// # Errors
/// [`CopyError::Unusable`] if the backup is truncated, altered or not a backup. Problems of its records are in the report.
pub fn verify(backup: &Path, inspect: impl Inspect + Send + 'static, progress: impl FnMut(u64)) -> Result<Report, CopyError> {
    Audit::inspecting(inspect).run(Records::open(backup)?, progress)
}

/// The records of a backup, ascending. The last item is an error if the checksum does not match.
pub(super) struct Records {
    path: PathBuf,
    input: Hashing<BufReader<File>>,
    read: u64,
    ended: bool,
}

impl Records {
    pub(super) fn open(path: &Path) -> Result<Self, CopyError> {
        let file = File::open(path).map_err(|error| CopyError::Io { path: path.to_path_buf(), error })?;
        let mut records = Self { path: path.to_path_buf(), input: Hashing::new(BufReader::new(file)), read: 0, ended: false };
        let mut header = [0; HEADER.len()];
        records.input.read_exact(&mut header).map_err(|error| records.unusable(error))?;
        if header == HEADER {
            Ok(records)
        } else if header.starts_with(HEADER_START) {
            let found = String::from_utf8_lossy(&header[HEADER_START.len()..]).trim().to_owned();
            Err(records.unusable_because(&format!(
                "it is a backup in format {}, this version of tertulia reads up to 1: use the version that wrote it",
                found.escape_debug()
            )))
        } else {
            Err(records.unusable_because("it does not begin with the header of one"))
        }
    }

    fn next_record(&mut self) -> io::Result<Option<(Key, Value)>> {
        let key_bytes = self.input.u32()?;
        if key_bytes == END {
            return self.check_end().map(|()| None);
        }
        let value_bytes = self.input.u32()?;
        if key_bytes > MAX_PART_BYTES || value_bytes > MAX_PART_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "a record has an impossible length"));
        }
        let key = self.input.part(key_bytes)?;
        let value = self.input.part(value_bytes)?;
        self.read += 1;
        Ok(Some((Key::from_bytes(&key), value)))
    }

    fn check_end(&mut self) -> io::Result<()> {
        let count = self.input.u64()?;
        let computed = self.input.hash;
        let hash = self.input.u64()?;
        let rest = self.input.inner.read(&mut [0])?;
        if count == self.read && hash == computed && rest == 0 {
            return Ok(());
        }
        Err(io::Error::new(ErrorKind::InvalidData, "its checksum does not match: it was altered"))
    }

    fn unusable(&self, error: io::Error) -> CopyError {
        match error.kind() {
            ErrorKind::UnexpectedEof => self.unusable_because("it is cut off"),
            ErrorKind::InvalidData => self.unusable_because(&error.to_string()),
            _ => CopyError::Io { path: self.path.clone(), error },
        }
    }

    fn unusable_because(&self, detail: &str) -> CopyError {
        CopyError::Unusable { path: self.path.clone(), detail: detail.into() }
    }
}

impl Iterator for Records {
    type Item = Result<(Key, Value), CopyError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_record();
        self.ended = !matches!(next, Ok(Some(_)));
        next.map_err(|error| self.unusable(error)).transpose()
    }
}

/// A reader or writer that hashes all bytes.
struct Hashing<T> {
    inner: T,
    hash: u64,
}

impl<T> Hashing<T> {
    fn new(inner: T) -> Self {
        Self { inner, hash: 0xcbf2_9ce4_8422_2325 }
    }

    fn hash(&mut self, bytes: &[u8]) {
        self.hash = bytes.iter().fold(self.hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

impl<T: Write> Hashing<T> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash(bytes);
        self.inner.write_all(bytes)
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let length = |part: &[u8]| {
            let fits = u32::try_from(part.len()).ok().filter(|length| *length <= MAX_PART_BYTES);
            fits.ok_or_else(|| io::Error::new(ErrorKind::FileTooLarge, "a record is too long for a backup"))
        };
        self.write_all(&length(key)?.to_be_bytes())?;
        self.write_all(&length(value)?.to_be_bytes())?;
        self.write_all(key)?;
        self.write_all(value)
    }
}

impl<T: Read> Hashing<T> {
    fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.hash(bytes);
        Ok(())
    }

    fn u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.read_exact(&mut bytes).map(|()| u32::from_be_bytes(bytes))
    }

    fn u64(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read_exact(&mut bytes).map(|()| u64::from_be_bytes(bytes))
    }

    /// Reads this many bytes. The buffer grows with the existing bytes, so that a wrong length does not fill the memory.
    fn part(&mut self, length: u32) -> io::Result<Vec<u8>> {
        let mut part = Vec::new();
        self.inner.by_ref().take(length.into()).read_to_end(&mut part)?;
        if part.len() < length as usize {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.hash(&part);
        Ok(part)
    }
}

#[cfg(test)]
mod tests;
