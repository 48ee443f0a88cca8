//! Reads sled's log before sled does, because sled skips damaged parts of it without an error.
//!
//! The database file is a log of segments. At opening, sled reads the segments written since its last snapshot file (`snap.*`). It takes a
//! damaged message in the middle for the end of its segment, a damaged header for an empty segment, and a value whose file is missing for one
//! that was replaced. The data there is then lost, although later records may refer to it. Older segments are checked by sled whenever they
//! are read. The format is that of sled 0.34 (`pagecache/{iterator,logger,segment}.rs`).

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::layout;
use crate::adapters::store::manifest::Closed;

// sled fills its file in segments of this many bytes, and truncates whole empty segments at the end.
pub(super) const SEGMENT_BYTES: u64 = 512 * 1024;
const SEGMENT: usize = SEGMENT_BYTES as usize;
const SEGMENT_HEADER: usize = 20;
// No message begins closer than this to the end of a segment.
const LONGEST_MESSAGE_HEADER: usize = 32;

/// A log sequence number of sled: a position in everything that it ever wrote.
type Lsn = i64;

/// Damage that sled would skip without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The log breaks off at this byte of the file, but continues elsewhere, or was longer.
    Unreadable { at: u64 },
    /// The log breaks off at this byte, before the position of sled's snapshot file. A crash cannot cause that.
    Short { at: u64 },
    /// A segment at this byte has content, but no valid header.
    BadHeader { at: u64 },
    /// There are more empty segments than when the database was closed.
    Emptied { found: u64, known: u64 },
    /// The file of a value of this number is damaged or missing.
    Value { blob: Lsn },
    /// The file of a value of this number is damaged, although it was intact when sled wrote its snapshot file or a later segment. A crash cannot
    /// cause that, and sled would overwrite the records after it.
    OldValue { blob: Lsn },
    /// A file with sled's settings or its snapshot is damaged. Both can be recreated.
    Metadata { name: String },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { at } => write!(f, "`store/db` cannot be read at byte {at}"),
            Self::Short { at } => write!(f, "`store/db` cannot be read from byte {at} on"),
            Self::BadHeader { at } => write!(f, "`store/db` cannot be read at byte {at}, where a segment begins"),
            Self::Emptied { found, known } => write!(f, "`store/db` has {found} empty segments and had {known}"),
            Self::Value { blob } | Self::OldValue { blob } => write!(f, "`store/blobs/{blob}` is missing or damaged"),
            Self::Metadata { name } => write!(f, "`store/{name}` is damaged"),
        }
    }
}

/// Finds the first damage that sled would skip.
///
/// A torn end of a log that was not closed does not count: it is normal after a crash, and the manifest says how much there must be.
pub(super) fn first_flaw(sled_folder: &Path, closed: Option<Closed>) -> io::Result<Option<Flaw>> {
    let Some(mut survey) = Survey::open(sled_folder)? else { return Ok(None) };
    if let Some(name) = damaged_metadata(sled_folder)?.into_iter().next() {
        return Ok(Some(Flaw::Metadata { name }));
    }
    let segments = match survey.segments()? {
        Ok(segments) => segments,
        Err(flaw) => return Ok(Some(flaw)),
    };
    // If a segment was full to its end, sled's snapshot names the beginning of the next one. A crash may happen before that one exists.
    let is_between = closed.is_none() && segments.has_previous && survey.snapshot_at % SEGMENT as Lsn == 0;
    if segments.named.is_empty() && !is_between && (closed.is_some() || survey.snapshot_at > 0) {
        return Ok(Some(Flaw::Short { at: 0 }));
    }
    for (lsn, at) in &segments.named {
        let is_last = segments.named.last_key_value().is_some_and(|(last, _)| last == lsn);
        let end = match survey.read(*lsn, *at)? {
            Ok(end) => end,
            Err(Flaw::Value { blob }) if *lsn < segments.stable => return Ok(Some(Flaw::OldValue { blob })),
            Err(flaw) => return Ok(Some(flaw)),
        };
        if is_last && lsn + (end as Lsn) < survey.snapshot_at {
            return Ok(Some(Flaw::Short { at: at + end as u64 }));
        }
        let is_intact = match closed {
            Some(closed) if is_last => lsn + end as Lsn == closed.end,
            Some(_) => end + LONGEST_MESSAGE_HEADER > SEGMENT,
            None => *lsn >= segments.stable || end + LONGEST_MESSAGE_HEADER > SEGMENT,
        };
        if !is_intact {
            return Ok(Some(Flaw::Unreadable { at: at + end as u64 }));
        }
    }
    let emptied = closed.filter(|closed| segments.empty > closed.empty);
    let emptied = emptied.map(|closed| Flaw::Emptied { found: segments.empty, known: closed.empty });
    let missing = survey.doubtful.into_values().next().map(|blob| Flaw::Value { blob });
    Ok(missing.or(emptied))
}

/// The state of the log of a closed database; `None` if the database is empty or already damaged.
pub(super) fn closed(sled_folder: &Path) -> io::Result<Option<Closed>> {
    let Some(mut survey) = Survey::open(sled_folder)? else { return Ok(None) };
    let Ok(segments) = survey.segments()? else { return Ok(None) };
    let Some((lsn, at)) = segments.named.last_key_value() else { return Ok(None) };
    let end = survey.read(*lsn, *at)?;
    Ok(end.ok().map(|end| Closed { end: lsn + end as Lsn, empty: segments.empty }))
}

/// The large values named anywhere in the log whose files are missing or damaged, each with its purpose byte. Most missing ones were
/// replaced.
pub(super) fn broken_values(sled_folder: &Path) -> io::Result<BTreeMap<Lsn, u8>> {
    let mut broken = BTreeMap::new();
    let Some(survey) = Survey::open(sled_folder)? else { return Ok(broken) };
    for at in (0..survey.db.metadata()?.len()).step_by(SEGMENT) {
        let segment = survey.segment(at)?;
        let Some(header) = segment.first_chunk().and_then(Header::read) else { continue };
        let number = header.lsn as u64 / SEGMENT as u64;
        let mut place = SEGMENT_HEADER;
        while let Some(message) = segment.get(place..).and_then(Message::read).filter(|message| message.segment == number) {
            place += message.bytes;
            if let Kind::PageInFile(blob) | Kind::LinkInFile(blob) = message.kind
                && survey.blob_is_intact(blob)? != Some(true)
            {
                broken.insert(blob, message.purpose);
            }
        }
    }
    Ok(broken)
}

/// The damaged files with sled's settings or its snapshot.
pub(super) fn damaged_metadata(sled_folder: &Path) -> io::Result<Vec<String>> {
    let mut broken = Vec::new();
    for entry in fs::read_dir(sled_folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // The snapshot has its length before the checksum.
        let length_bytes = match &*name {
            "conf" => 0,
            name if name.starts_with("snap.") => 8,
            _ => continue,
        };
        let bytes = fs::read(entry.path())?;
        let content = bytes.split_last_chunk().map(|(content, sum)| (content, u32::from_le_bytes(*sum)));
        let is_intact = content.is_some_and(|(content, sum)| {
            content.len().checked_sub(length_bytes).is_some_and(|length| length > 0 && crc32fast::hash(&content[..length]) == sum)
        });
        if !is_intact {
            broken.push(name);
        }
    }
    Ok(broken)
}

/// The log position of sled's newest snapshot file; 0 if there is none.
fn snapshot_lsn(sled_folder: &Path) -> io::Result<Lsn> {
    let mut newest = 0;
    for entry in fs::read_dir(sled_folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("snap.")).and_then(|lsn| Lsn::from_str_radix(lsn, 16).ok());
        newest = newest.max(number.unwrap_or(0));
    }
    Ok(newest)
}

/// The segments that sled would read at opening.
struct Segments {
    /// The file offset of each, by log position.
    named: BTreeMap<Lsn, u64>,
    /// Segments that begin before this were complete when a later one was begun.
    stable: Lsn,
    /// Whether there is an older segment directly before the first of them.
    has_previous: bool,
    /// The number of empty segments in the file.
    empty: u64,
}

struct Survey {
    db: File,
    blobs: PathBuf,
    snapshot_at: Lsn,
    /// Pages whose newest value is in a missing file.
    doubtful: BTreeMap<u64, Lsn>,
}

impl Survey {
    fn open(sled_folder: &Path) -> io::Result<Option<Self>> {
        let db = match File::open(layout::db(sled_folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let snapshot_at = snapshot_lsn(sled_folder)?;
        Ok(Some(Self { db, blobs: layout::blobs(sled_folder), snapshot_at, doubtful: BTreeMap::new() }))
    }

    fn segments(&self) -> io::Result<Result<Segments, Flaw>> {
        let first = self.snapshot_at / SEGMENT as Lsn * SEGMENT as Lsn;
        let bytes = self.db.metadata()?.len();
        let mut segments = Segments { named: BTreeMap::new(), stable: self.snapshot_at, has_previous: false, empty: 0 };
        let mut header = [0; SEGMENT_HEADER];
        for at in (0..bytes).step_by(SEGMENT) {
            if bytes - at < SEGMENT_HEADER as u64 {
                break;
            }
            self.db.read_exact_at(&mut header, at)?;
            match Header::read(&header) {
                Some(header) if header.lsn >= first => {
                    segments.named.insert(header.lsn, at);
                    segments.stable = segments.stable.max(header.stable);
                }
                Some(header) => segments.has_previous |= header.lsn + SEGMENT as Lsn == first,
                None if self.segment(at)?.iter().any(|byte| *byte != 0) => return Ok(Err(Flaw::BadHeader { at })),
                None => segments.empty += 1,
            }
        }
        segments.stable = segments.stable / SEGMENT as Lsn * SEGMENT as Lsn;
        Ok(Ok(segments))
    }

    /// Reads one segment, and returns the offset at which its messages end: its length if it is full.
    fn read(&mut self, lsn: Lsn, at: u64) -> io::Result<Result<usize, Flaw>> {
        let segment = self.segment(at)?;
        let number = lsn as u64 / SEGMENT as u64;
        let mut place = SEGMENT_HEADER;
        while place + LONGEST_MESSAGE_HEADER <= SEGMENT {
            let message = segment.get(place..).and_then(Message::read).filter(|message| message.segment == number);
            let Some(message) = message else { return Ok(Ok(place)) };
            let is_before_snapshot = lsn + (place as Lsn) < self.snapshot_at;
            place += message.bytes;
            match message.kind {
                Kind::Cap => return Ok(Ok(SEGMENT)),
                Kind::Nothing | Kind::Link => {}
                // In the segment of its snapshot, sled also reads the messages before it. At a damaged value it takes the log to be over, and
                // overwrites the rest of the segment.
                Kind::PageInFile(blob) | Kind::LinkInFile(blob)
                    if is_before_snapshot && self.blob_is_intact(blob)? == Some(false) =>
                {
                    return Ok(Err(Flaw::OldValue { blob }));
                }
                // sled checks other messages before its snapshot whenever they are read.
                _ if is_before_snapshot => {}
                Kind::Page => drop(self.doubtful.remove(&message.page)),
                Kind::PageInFile(blob) | Kind::LinkInFile(blob) => match self.blob_is_intact(blob)? {
                    Some(true) if matches!(message.kind, Kind::PageInFile(_)) => drop(self.doubtful.remove(&message.page)),
                    Some(true) => {}
                    Some(false) => return Ok(Err(Flaw::Value { blob })),
                    // The file of a page that was rewritten later is deleted.
                    None => drop(self.doubtful.insert(message.page, blob)),
                },
            }
        }
        Ok(Ok(SEGMENT))
    }

    /// The bytes of a segment; fewer at the end of the file.
    fn segment(&self, at: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; SEGMENT];
        let mut read = 0;
        while read < SEGMENT {
            match self.db.read_at(&mut bytes[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Whether the checksum of a value's file is correct; `None` if the file is missing.
    fn blob_is_intact(&self, blob: Lsn) -> io::Result<Option<bool>> {
        let bytes = match fs::read(self.blobs.join(blob.to_string())) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let sum = bytes.split_first_chunk().map(|(sum, written)| (u32::from_le_bytes(*sum), crc32fast::hash(written)));
        Ok(Some(sum.is_some_and(|(stored, found)| stored == found)))
    }
}

/// The header of a segment.
struct Header {
    lsn: Lsn,
    /// Everything before this position had been written when the segment was begun.
    stable: Lsn,
}

impl Header {
    /// None if it is damaged or missing.
    fn read(bytes: &[u8; SEGMENT_HEADER]) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk::<4>()?;
        let (lsn, stable) = rest.split_first_chunk::<8>()?;
        let number = |bytes: [u8; 8]| Lsn::from_le_bytes(bytes) ^ Lsn::MAX;
        let is_intact = u32::from_le_bytes(*sum) == crc32fast::hash(rest) ^ u32::MAX;
        let header = Self { lsn: number(*lsn), stable: number(stable.try_into().ok()?) };
        (is_intact && header.lsn >= 0).then_some(header)
    }
}

/// The kind of a message.
#[derive(Clone, Copy)]
enum Kind {
    /// The rest of the segment is empty.
    Cap,
    /// Nothing that is stored.
    Nothing,
    /// A whole page, or its removal.
    Page,
    /// A change of a page.
    Link,
    PageInFile(Lsn),
    LinkInFile(Lsn),
}

struct Message {
    kind: Kind,
    /// The kind, as the byte that sled writes.
    purpose: u8,
    segment: u64,
    page: u64,
    /// The length, including the header.
    bytes: usize,
}

impl Message {
    /// None if it is damaged or missing.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (sum, header) = bytes.split_first_chunk::<4>()?;
        let (purpose, rest) = header.split_first()?;
        let (length, rest) = number(rest)?;
        let (segment, rest) = number(rest)?;
        let (page, rest) = number(rest)?;
        let header = &header[..header.len() - rest.len()];
        let body = rest.get(..usize::try_from(length).ok()?)?;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(body);
        hasher.update(header);
        if hasher.finalize() ^ u32::MAX != u32::from_le_bytes(*sum) {
            return None;
        }
        let kind = match purpose {
            1 | 3 => Kind::Nothing,
            2 => Kind::Cap,
            4 | 5 | 6 | 8 => Kind::Page,
            7 | 9 => Kind::PageInFile(Lsn::from_le_bytes(body.try_into().ok()?)),
            10 => Kind::Link,
            11 => Kind::LinkInFile(Lsn::from_le_bytes(body.try_into().ok()?)),
            _ => return None,
        };
        Some(Self { kind, purpose: *purpose, segment, page, bytes: 4 + header.len() + body.len() })
    }
}

/// Decodes a number in sled's encoding of one to nine bytes, and returns the bytes after it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let first = u64::from(*first);
    match first {
        0..=240 => Some((first, rest)),
        241..=248 => rest.split_first().map(|(low, rest)| (240 + 256 * (first - 241) + u64::from(*low), rest)),
        249 => rest.split_first_chunk::<2>().map(|(low, rest)| (2288 + u64::from(u16::from_be_bytes(*low)), rest)),
        _ => {
            let (digits, rest) = rest.split_at_checked(first as usize - 247)?;
            let mut whole = [0; 8];
            whole[..digits.len()].copy_from_slice(digits);
            Some((u64::from_le_bytes(whole), rest))
        }
    }
}

#[cfg(test)]
mod tests;
