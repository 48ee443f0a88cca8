//! Reads sled's log before sled does: what sled cannot read of it it passes over, and tells nobody.
//!
//! The database file is a log of segments. At opening sled goes through those that it wrote since it noted its state last (`snap.*`), and
//! takes a damaged message in the middle for the end of its segment, a damaged header for an empty segment, and a value whose file is
//! missing for one that was replaced. Whatever was written there is gone then, although what came later may say that it is there. What is
//! older is checked by sled whenever it is read. The format is that of sled 0.34 (`pagecache/{iterator,logger,segment}.rs`).

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::layout;
use crate::adapters::store::manifest::Closed;

// sled fills its file in segments of this many bytes, and gives empty ones at the end back whole.
pub(super) const SEGMENT_BYTES: u64 = 512 * 1024;
const SEGMENT: usize = SEGMENT_BYTES as usize;
const SEGMENT_HEADER: usize = 20;
// No message begins closer to the end of a segment.
const LONGEST_MESSAGE_HEADER: usize = 32;

/// A number of sled's for a place in everything that it ever wrote.
type Lsn = i64;

/// Something that sled would pass over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The log breaks off at this byte of the file, and goes on elsewhere, or was longer.
    Unreadable { at: u64 },
    /// The log breaks off at this byte, before what sled noted of it. No crash leaves it so.
    Short { at: u64 },
    /// A segment at this byte has something in it, and no name.
    Nameless { at: u64 },
    /// There are so many segments with nothing in them, and so many were empty.
    Emptied { found: u64, known: u64 },
    /// A value of this number is not whole, or not there.
    Value { blob: Lsn },
    /// A value of this number is not whole, and it was when sled noted its state, or went on in another segment. No crash leaves it so, and sled
    /// would overwrite what follows it.
    Noted { blob: Lsn },
    /// A file of this name, in which sled notes its settings or its state. Both can be made anew.
    Notes { name: String },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { at } => write!(f, "`store/db` cannot be read at byte {at}"),
            Self::Short { at } => write!(f, "`store/db` cannot be read from byte {at} on"),
            Self::Nameless { at } => write!(f, "`store/db` cannot be read at byte {at}, where a segment begins"),
            Self::Emptied { found, known } => write!(f, "`store/db` has {found} empty segments and had {known}"),
            Self::Value { blob } | Self::Noted { blob } => write!(f, "`store/blobs/{blob}` is missing or not whole"),
            Self::Notes { name } => write!(f, "`store/{name}` is not whole"),
        }
    }
}

/// The first thing that sled would pass over.
///
/// The end of a log that was not closed is none of them: after a crash it is torn, and how much there has to be the manifest knows.
pub(super) fn first_flaw(sled_folder: &Path, closed: Option<Closed>) -> io::Result<Option<Flaw>> {
    let Some(mut survey) = Survey::of(sled_folder)? else { return Ok(None) };
    if let Some(name) = broken_notes(sled_folder)?.into_iter().next() {
        return Ok(Some(Flaw::Notes { name }));
    }
    let segments = match survey.segments()? {
        Ok(segments) => segments,
        Err(flaw) => return Ok(Some(flaw)),
    };
    // Where a segment was full to its end, sled notes where the next one will begin. A crash may come before that.
    let is_between = closed.is_none() && segments.has_previous && survey.noted % SEGMENT as Lsn == 0;
    if segments.named.is_empty() && !is_between && (closed.is_some() || survey.noted > 0) {
        return Ok(Some(Flaw::Short { at: 0 }));
    }
    for (lsn, at) in &segments.named {
        let is_last = segments.named.last_key_value().is_some_and(|(last, _)| last == lsn);
        let end = match survey.read(*lsn, *at)? {
            Ok(end) => end,
            Err(Flaw::Value { blob }) if *lsn < segments.stable => return Ok(Some(Flaw::Noted { blob })),
            Err(flaw) => return Ok(Some(flaw)),
        };
        if is_last && lsn + (end as Lsn) < survey.noted {
            return Ok(Some(Flaw::Short { at: at + end as u64 }));
        }
        let is_whole = match closed {
            Some(closed) if is_last => lsn + end as Lsn == closed.end,
            Some(_) => end + LONGEST_MESSAGE_HEADER > SEGMENT,
            None => *lsn >= segments.stable || end + LONGEST_MESSAGE_HEADER > SEGMENT,
        };
        if !is_whole {
            return Ok(Some(Flaw::Unreadable { at: at + end as u64 }));
        }
    }
    let emptied = closed.filter(|closed| segments.empty > closed.empty);
    let emptied = emptied.map(|closed| Flaw::Emptied { found: segments.empty, known: closed.empty });
    let missing = survey.doubtful.into_values().next().map(|blob| Flaw::Value { blob });
    Ok(missing.or(emptied))
}

/// How a database was left by whoever closed it; `None` if there is nothing in it, or something is wrong with it already.
pub(super) fn closed(sled_folder: &Path) -> io::Result<Option<Closed>> {
    let Some(mut survey) = Survey::of(sled_folder)? else { return Ok(None) };
    let Ok(segments) = survey.segments()? else { return Ok(None) };
    let Some((lsn, at)) = segments.named.last_key_value() else { return Ok(None) };
    let end = survey.read(*lsn, *at)?;
    Ok(end.ok().map(|end| Closed { end: lsn + end as Lsn, empty: segments.empty }))
}

/// The large values that are missing or not whole, of all that the log names from its beginning on, each with what sled says that it is for.
/// Most that are missing were replaced.
pub(super) fn broken_values(sled_folder: &Path) -> io::Result<BTreeMap<Lsn, u8>> {
    let mut broken = BTreeMap::new();
    let Some(survey) = Survey::of(sled_folder)? else { return Ok(broken) };
    for at in (0..survey.db.metadata()?.len()).step_by(SEGMENT) {
        let segment = survey.segment(at)?;
        let Some(header) = segment.first_chunk().and_then(Header::read) else { continue };
        let number = header.lsn as u64 / SEGMENT as u64;
        let mut place = SEGMENT_HEADER;
        while let Some(message) = segment.get(place..).and_then(Message::read).filter(|message| message.segment == number) {
            place += message.bytes;
            if let Kind::PageInFile(blob) | Kind::LinkInFile(blob) = message.kind
                && survey.blob_is_whole(blob)? != Some(true)
            {
                broken.insert(blob, message.purpose);
            }
        }
    }
    Ok(broken)
}

/// The files in which sled notes its settings and its state that are not as it wrote them.
pub(super) fn broken_notes(sled_folder: &Path) -> io::Result<Vec<String>> {
    let mut broken = Vec::new();
    for entry in fs::read_dir(sled_folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Before the sum the state notes how long it is.
        let length_bytes = match &*name {
            "conf" => 0,
            name if name.starts_with("snap.") => 8,
            _ => continue,
        };
        let bytes = fs::read(entry.path())?;
        let noted = bytes.split_last_chunk().map(|(noted, sum)| (noted, u32::from_le_bytes(*sum)));
        let is_whole = noted.is_some_and(|(noted, sum)| {
            noted.len().checked_sub(length_bytes).is_some_and(|length| length > 0 && crc32fast::hash(&noted[..length]) == sum)
        });
        if !is_whole {
            broken.push(name);
        }
    }
    Ok(broken)
}

/// Up to where sled noted its state; 0 if it did not.
fn noted_lsn(sled_folder: &Path) -> io::Result<Lsn> {
    let mut noted = 0;
    for entry in fs::read_dir(sled_folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("snap.")).and_then(|lsn| Lsn::from_str_radix(lsn, 16).ok());
        noted = noted.max(number.unwrap_or(0));
    }
    Ok(noted)
}

/// The segments that sled would go through.
struct Segments {
    /// Where each begins.
    named: BTreeMap<Lsn, u64>,
    /// What begins before this was whole when a later one was begun.
    stable: Lsn,
    /// Whether there is one that ends where the first of them would begin.
    has_previous: bool,
    /// How many of all have nothing in them.
    empty: u64,
}

struct Survey {
    db: File,
    blobs: PathBuf,
    noted: Lsn,
    /// Pages whose newest value is in a file that is not there.
    doubtful: BTreeMap<u64, Lsn>,
}

impl Survey {
    fn of(sled_folder: &Path) -> io::Result<Option<Self>> {
        let db = match File::open(layout::db(sled_folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let noted = noted_lsn(sled_folder)?;
        Ok(Some(Self { db, blobs: layout::blobs(sled_folder), noted, doubtful: BTreeMap::new() }))
    }

    fn segments(&self) -> io::Result<Result<Segments, Flaw>> {
        let first = self.noted / SEGMENT as Lsn * SEGMENT as Lsn;
        let bytes = self.db.metadata()?.len();
        let mut segments = Segments { named: BTreeMap::new(), stable: self.noted, has_previous: false, empty: 0 };
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
                None if self.segment(at)?.iter().any(|byte| *byte != 0) => return Ok(Err(Flaw::Nameless { at })),
                None => segments.empty += 1,
            }
        }
        segments.stable = segments.stable / SEGMENT as Lsn * SEGMENT as Lsn;
        Ok(Ok(segments))
    }

    /// Reads one segment, and returns where in it the messages end: at its very end if it is full.
    fn read(&mut self, lsn: Lsn, at: u64) -> io::Result<Result<usize, Flaw>> {
        let segment = self.segment(at)?;
        let number = lsn as u64 / SEGMENT as u64;
        let mut place = SEGMENT_HEADER;
        while place + LONGEST_MESSAGE_HEADER <= SEGMENT {
            let message = segment.get(place..).and_then(Message::read).filter(|message| message.segment == number);
            let Some(message) = message else { return Ok(Ok(place)) };
            let is_noted = lsn + (place as Lsn) < self.noted;
            place += message.bytes;
            match message.kind {
                Kind::Cap => return Ok(Ok(SEGMENT)),
                Kind::Nothing | Kind::Link => {}
                // In the segment in which it noted its state sled goes through what comes before, too. At a value that is not whole it takes
                // the log to be over, and overwrites the rest of the segment.
                Kind::PageInFile(blob) | Kind::LinkInFile(blob) if is_noted && self.blob_is_whole(blob)? == Some(false) => {
                    return Ok(Err(Flaw::Noted { blob }));
                }
                // What else was noted is checked when it is read.
                _ if is_noted => {}
                Kind::Page => drop(self.doubtful.remove(&message.page)),
                Kind::PageInFile(blob) | Kind::LinkInFile(blob) => match self.blob_is_whole(blob)? {
                    Some(true) if matches!(message.kind, Kind::PageInFile(_)) => drop(self.doubtful.remove(&message.page)),
                    Some(true) => {}
                    Some(false) => return Ok(Err(Flaw::Value { blob })),
                    // Of a page that was written anew later the file is taken away.
                    None => drop(self.doubtful.insert(message.page, blob)),
                },
            }
        }
        Ok(Ok(SEGMENT))
    }

    /// A segment's bytes: fewer at the end of the file.
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

    /// Whether a value's file holds what was written into it; `None` if it is not there.
    fn blob_is_whole(&self, blob: Lsn) -> io::Result<Option<bool>> {
        let bytes = match fs::read(self.blobs.join(blob.to_string())) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let sum = bytes.split_first_chunk().map(|(sum, written)| (u32::from_le_bytes(*sum), crc32fast::hash(written)));
        Ok(Some(sum.is_some_and(|(noted, found)| noted == found)))
    }
}

/// How a segment begins.
struct Header {
    lsn: Lsn,
    /// Everything before this was on its way to the disk when the segment was begun.
    stable: Lsn,
}

impl Header {
    /// None if it is damaged, or there is none.
    fn read(bytes: &[u8; SEGMENT_HEADER]) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk::<4>()?;
        let (lsn, stable) = rest.split_first_chunk::<8>()?;
        let number = |bytes: [u8; 8]| Lsn::from_le_bytes(bytes) ^ Lsn::MAX;
        let is_whole = u32::from_le_bytes(*sum) == crc32fast::hash(rest) ^ u32::MAX;
        let header = Self { lsn: number(*lsn), stable: number(stable.try_into().ok()?) };
        (is_whole && header.lsn >= 0).then_some(header)
    }
}

/// What a message is for.
#[derive(Clone, Copy)]
enum Kind {
    /// The rest of the segment is empty.
    Cap,
    /// Nothing that is kept.
    Nothing,
    /// A whole page, or that there is none any more.
    Page,
    /// A change of a page.
    Link,
    PageInFile(Lsn),
    LinkInFile(Lsn),
}

struct Message {
    kind: Kind,
    /// The same as sled writes it.
    purpose: u8,
    segment: u64,
    page: u64,
    /// How long it is, with its header.
    bytes: usize,
}

impl Message {
    /// None if it is damaged, or there is none.
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

/// A number as sled writes it, in one to nine bytes, and what follows it.
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
