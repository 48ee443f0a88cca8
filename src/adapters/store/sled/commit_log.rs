//! The file `commits` beside sled's folder: the last event of each channel, as of the last acknowledged group.
//!
//! sled opens a damaged database without an error, and may lose the end of a journal together with its head. So each group is
//! also written to this log before it is acknowledged. At the next opening, every channel must end at the logged event or later.
//!
//! The file is a sequence of entries of 32 bytes. The first one is the id of the store. Each other one has the group, channel,
//! number of the last event, ward and a checksum, all big-endian. The rest is zero. When the file is full, it is replaced by a
//! file with the newest entry of each channel.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::batch::number;
use crate::domain::id::{Seq, Ward};
use crate::manifest::replace;
use crate::ports::store::key::{ChannelNo, Key, Kind};

const ENTRY: usize = 32;
const CHECKED: usize = ENTRY - size_of::<u32>();

// Room for entries that are not yet written: syncing a write into a file that keeps its length is cheaper.
const SPARE_ENTRIES: usize = if cfg!(test) { 256 } else { 8192 };

/// The last event of each channel.
pub(super) type Lasts = BTreeMap<(Ward, ChannelNo), Seq>;

/// The minimum content of a database.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// The number of the last group. 0: there was none.
    pub(super) group: u64,
    pub(super) lasts: Lasts,
}

/// Writes the log.
pub(super) struct CommitLog {
    data: PathBuf,
    store: String,
    file: File,
    written: usize,
    capacity: usize,
    lasts: Lasts,
}

/// The path of a data folder's log.
fn path(data: &Path) -> PathBuf {
    data.join("commits")
}

/// The acknowledged content of this store. Empty if the folder's log is missing or belongs to another store. Entries that are
/// invalid because of a crash or damage are skipped.
pub(super) fn read(data: &Path, store: &str) -> io::Result<Acknowledged> {
    let bytes = match fs::read(path(data)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Acknowledged::default()),
        bytes => bytes?,
    };
    let mut found = Acknowledged::default();
    let (entries, _torn) = bytes.as_chunks();
    if let Some((id, entries)) = entries.split_first()
        && *id == id_entry(store)
    {
        for (group, ward, channel, last) in entries.iter().filter_map(parse) {
            found.group = found.group.max(group);
            if last > Seq::NONE {
                let known = found.lasts.entry((ward, channel)).or_default();
                *known = last.max(*known);
            }
        }
    }
    Ok(found)
}

/// The last event of each channel of a database.
pub(super) fn lasts_of(db: &sled::Db) -> Result<Lasts, sled::Error> {
    let mut lasts = Lasts::new();
    for ward in 0..=u8::MAX {
        let first = Key::new(Ward(ward), Kind::Head);
        for head in db.scan_prefix(first.as_bytes()) {
            let (key, value) = head?;
            if let (Some(channel), Some(last)) = (key[first.as_bytes().len()..].try_into().ok(), number(&value)) {
                lasts.insert((Ward(ward), ChannelNo(u32::from_be_bytes(channel))), Seq(last));
            }
        }
    }
    Ok(lasts)
}

/// Deletes a data folder's log, so that its store may contain less.
pub(super) fn remove(data: &Path) -> io::Result<()> {
    match fs::remove_file(path(data)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

impl CommitLog {
    /// Replaces a data folder's log by one that begins with this content.
    pub(super) fn begin(data: &Path, store: &str, Acknowledged { group, lasts }: Acknowledged) -> io::Result<Self> {
        let capacity = (lasts.len() * 2 + SPARE_ENTRIES) * ENTRY;
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend(id_entry(store));
        bytes.extend(entry(group, (Ward(0), ChannelNo(0)), Seq::NONE));
        bytes.extend(lasts.iter().flat_map(|(channel, last)| entry(group, *channel, *last)));
        let written = bytes.len();
        bytes.resize(capacity, 0);
        let file = replace(data, "commits", &bytes)?;
        Ok(Self { data: data.to_path_buf(), store: store.to_owned(), file, written, capacity, lasts })
    }

    /// Appends a group and the last events that it appended, and waits until the entry is on disk.
    pub(super) fn append_group(&mut self, group: u64, lasts: Lasts) -> io::Result<()> {
        let mut bytes: Vec<u8> = lasts.iter().flat_map(|(channel, last)| entry(group, *channel, *last)).collect();
        if bytes.is_empty() {
            bytes.extend(entry(group, (Ward(0), ChannelNo(0)), Seq::NONE));
        }
        self.lasts.extend(lasts);
        if self.written + bytes.len() > self.capacity {
            let lasts = std::mem::take(&mut self.lasts);
            *self = Self::begin(&self.data, &self.store, Acknowledged { group, lasts })?;
            return Ok(());
        }
        self.file.write_all_at(&bytes, self.written as u64)?;
        self.written += bytes.len();
        self.file.sync_data()
    }
}

fn id_entry(store: &str) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    entry.iter_mut().zip(store.bytes()).for_each(|(to, byte)| *to = byte);
    entry
}

fn entry(group: u64, (ward, channel): (Ward, ChannelNo), last: Seq) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    entry[..8].copy_from_slice(&group.to_be_bytes());
    entry[8..12].copy_from_slice(&channel.0.to_be_bytes());
    entry[12..20].copy_from_slice(&last.0.to_be_bytes());
    entry[20] = ward.0;
    let checksum = crc32fast::hash(&entry[..CHECKED]);
    entry[CHECKED..].copy_from_slice(&checksum.to_be_bytes());
    entry
}

fn parse(entry: &[u8; ENTRY]) -> Option<(u64, Ward, ChannelNo, Seq)> {
    let (checked, checksum) = entry.split_last_chunk()?;
    let (group, rest) = checked.split_first_chunk()?;
    let (channel, rest) = rest.split_first_chunk()?;
    let (last, rest) = rest.split_first_chunk()?;
    let is_intact = crc32fast::hash(checked) == u32::from_be_bytes(*checksum);
    let channel = ChannelNo(u32::from_be_bytes(*channel));
    is_intact.then(|| (u64::from_be_bytes(*group), Ward(rest[0]), channel, Seq(u64::from_be_bytes(*last))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: (Ward, ChannelNo) = (Ward(3), ChannelNo(70_000));
    const OTHER: (Ward, ChannelNo) = (Ward(255), ChannelNo(0));

    fn log_of(data: &Path) -> CommitLog {
        let lasts = Lasts::from([(CHANNEL, Seq(4)), (OTHER, Seq(9))]);
        CommitLog::begin(data, "17", Acknowledged { group: 12, lasts }).unwrap()
    }

    #[test]
    fn the_newest_entry_of_each_channel_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log_of(folder.path());

        log.append_group(13, Lasts::from([(CHANNEL, Seq(5))])).unwrap();
        log.append_group(14, Lasts::new()).unwrap();

        let lasts = Lasts::from([(CHANNEL, Seq(5)), (OTHER, Seq(9))]);
        assert_eq!(read(folder.path(), "17").unwrap(), Acknowledged { group: 14, lasts });
        assert_eq!(read(folder.path(), "18").unwrap(), Acknowledged::default(), "of another store");
    }

    #[test]
    fn a_full_log_keeps_the_newest_entries_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log_of(folder.path());
        let bytes = fs::metadata(path(folder.path())).unwrap().len();

        for group in 0..2 * SPARE_ENTRIES as u64 {
            let mut entries = log.written;
            log.append_group(group, Lasts::from([(CHANNEL, Seq(group + 5))])).unwrap();
            entries = log.written - entries.min(log.written);
            assert!(entries == ENTRY || log.written == 4 * ENTRY, "{entries} bytes for one entry");
        }

        assert_eq!(fs::metadata(path(folder.path())).unwrap().len(), bytes);
        let last = Seq(2 * SPARE_ENTRIES as u64 + 4);
        assert_eq!(read(folder.path(), "17").unwrap().lasts, Lasts::from([(CHANNEL, last), (OTHER, Seq(9))]));
    }

    #[test]
    fn damage_harms_the_damaged_entry_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log_of(folder.path());
        log.append_group(13, Lasts::from([(CHANNEL, Seq(5))])).unwrap();
        log.append_group(14, Lasts::from([(CHANNEL, Seq(6))])).unwrap();
        let intact = fs::read(path(folder.path())).unwrap();

        for bit in 0..ENTRY * 8 {
            let mut bytes = intact.clone();
            bytes[5 * ENTRY + bit / 8] ^= 1 << (bit % 8);
            fs::write(path(folder.path()), &bytes).unwrap();

            let found = read(folder.path(), "17").unwrap();

            assert_eq!((found.group, found.lasts[&CHANNEL]), (13, Seq(5)), "bit {bit}");
        }
        for end in 0..intact.len().min(6 * ENTRY) {
            fs::write(path(folder.path()), &intact[..end]).unwrap();

            let found = read(folder.path(), "17").unwrap();

            assert_eq!(found.lasts.get(&OTHER).copied(), (end >= 4 * ENTRY).then_some(Seq(9)), "{end} bytes");
        }
    }

    #[test]
    fn a_removed_log_promises_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let _log = log_of(folder.path());

        remove(folder.path()).unwrap();
        remove(folder.path()).unwrap();

        assert_eq!(read(folder.path(), "17").unwrap(), Acknowledged::default());
    }
}
