//! The kinds of damage to a store.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The length of sled's segments in bytes.
const SEGMENT: u64 = 512 * 1024;

/// A kind of damage to a store that no process has open.
#[derive(Clone, Debug)]
pub enum Damage {
    /// A file of the data folder is cut to this percentage.
    Cut(Part, u64),
    /// The database is cut at the end of a segment, where sled itself may truncate it: this many segments before the last one.
    CutAtSegment(u64),
    /// Bytes are zeroed: the position in percent of the file, and the number of bytes.
    Zero(Part, u64, u64),
    Empty(Part),
    Garbage(Part),
    Gone(Part),
    /// A bit of the database is flipped.
    Flip {
        at: u64,
        bit: u8,
    },
    /// A bit of a file is flipped: the position in percent.
    FlipIn(Part, u64),
    /// A restore that was interrupted, in a folder without a store.
    HalfRestored,
    /// sled was killed while it wrote a snapshot.
    HalfSnapshotted,
}

/// A file, or all files of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Database,
    Folder,
    Snapshot,
    Configuration,
    Blobs,
    Manifest,
}

/// All kinds of damage, each where it has an effect.
pub fn each() -> Vec<Damage> {
    use Damage::{Cut, CutAtSegment, Empty, FlipIn, Garbage, Gone, HalfRestored, HalfSnapshotted, Zero};
    use Part::{Blobs, Configuration, Database, Folder, Manifest, Snapshot};
    vec![
        Cut(Database, 99),
        Cut(Database, 50),
        CutAtSegment(0),
        CutAtSegment(1),
        Empty(Database),
        Gone(Database),
        Gone(Folder),
        Zero(Database, 20, 4096),
        Zero(Database, 60, 4096),
        Zero(Database, 85, 4096),
        Zero(Database, 40, 600_000),
        Garbage(Database),
        Cut(Snapshot, 50),
        Empty(Snapshot),
        Garbage(Snapshot),
        FlipIn(Snapshot, 50),
        Gone(Snapshot),
        Cut(Configuration, 50),
        Garbage(Configuration),
        FlipIn(Configuration, 50),
        Gone(Configuration),
        Gone(Blobs),
        Cut(Blobs, 50),
        FlipIn(Blobs, 50),
        Cut(Manifest, 50),
        Empty(Manifest),
        Garbage(Manifest),
        FlipIn(Manifest, 45),
        Gone(Manifest),
        HalfRestored,
        HalfSnapshotted,
    ]
}

impl Damage {
    /// Whether the damage is to the database file, or to the folder that contains it.
    pub fn is_in_database(&self) -> bool {
        match self {
            Self::Cut(part, _) | Self::Zero(part, ..) | Self::Empty(part) | Self::Garbage(part) | Self::Gone(part) => {
                matches!(part, Part::Database | Part::Folder)
            }
            Self::Flip { .. } | Self::CutAtSegment(_) => true,
            _ => false,
        }
    }

    /// What is said of it where it is noticed before sled opens the database, which must then not be changed. The database had `was` bytes, and has
    /// `is` now.
    pub fn noticed_at_once(&self, was: u64, is: u64) -> Option<String> {
        match self {
            Self::CutAtSegment(_)
            | Self::Cut(Part::Database, _)
            | Self::Empty(Part::Database)
            | Self::Gone(Part::Database | Part::Folder) => Some(format!("it had {was} bytes and has {is} now")),
            Self::Cut(Part::Manifest, _) | Self::Empty(Part::Manifest) | Self::Garbage(Part::Manifest) => {
                Some("its manifest cannot be read".to_owned())
            }
            _ => None,
        }
    }

    /// Whether the damage is to the files of large values.
    pub fn is_in_large_values(&self) -> bool {
        matches!(self, Self::Cut(Part::Blobs, _) | Self::FlipIn(Part::Blobs, _) | Self::Gone(Part::Blobs))
    }

    /// Applies the damage. Returns false if there is nothing to damage.
    pub fn inflict(&self, data: &Path) -> bool {
        match self {
            Self::Cut(part, percent) => part.each(data, |path| {
                let bytes = length(path) * percent / 100;
                File::options().write(true).open(path).and_then(|file| file.set_len(bytes)).expect("cut");
            }),
            Self::CutAtSegment(before) => Part::Database.each(data, |path| {
                let segments = (length(path) - 1) / SEGMENT;
                File::options().write(true).open(path).and_then(|file| file.set_len((segments - before) * SEGMENT)).expect("cut");
            }),
            Self::Zero(part, percent, bytes) => part.each(data, |path| {
                let at = length(path) * percent / 100;
                let bytes = (*bytes).min(length(path) - at);
                write_at(path, at, &vec![0; bytes as usize]);
            }),
            Self::Empty(part) => part.each(data, |path| fs::write(path, "").expect("emptied")),
            Self::Garbage(part) => part.each(data, |path| {
                let garbage: Vec<u8> = (0..length(path)).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
                fs::write(path, garbage).expect("written");
            }),
            Self::Gone(Part::Folder) => fs::remove_dir_all(data.join("store")).is_ok(),
            Self::Gone(part) => part.each(data, |path| fs::remove_file(path).expect("removed")),
            Self::Flip { at, bit } => {
                flip(&data.join("store/db"), *at, *bit);
                true
            }
            Self::FlipIn(part, percent) => part.each(data, |path| flip(path, length(path) * percent / 100, 3)),
            Self::HalfRestored => {
                fs::remove_file(data.join("manifest")).expect("removed");
                fs::rename(data.join("store"), data.join("store.new")).is_ok()
            }
            Self::HalfSnapshotted => fs::write(data.join("store/snap.0000000000FFFFFF.generating"), [7; 100]).is_ok(),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(part, percent) => write!(f, "{part} cut to {percent} %"),
            Self::CutAtSegment(before) => write!(f, "`store/db` cut {before} segments before its last one"),
            Self::Zero(part, percent, bytes) => write!(f, "{bytes} bytes zeroed at {percent} % of {part}"),
            Self::Empty(part) => write!(f, "{part} emptied"),
            Self::Garbage(part) => write!(f, "{part} overwritten with garbage"),
            Self::Gone(part) => write!(f, "{part} deleted"),
            Self::Flip { at, bit } => write!(f, "bit {bit} of byte {at} flipped"),
            Self::FlipIn(part, percent) => write!(f, "a bit flipped at {percent} % of {part}"),
            Self::HalfRestored => write!(f, "a restore into an empty folder interrupted"),
            Self::HalfSnapshotted => write!(f, "`store/snap.*` half written"),
        }
    }
}

impl Part {
    /// Calls `work` with each of its files. Returns false if there is none.
    fn each(self, data: &Path, mut work: impl FnMut(&Path)) -> bool {
        let paths = self.paths(data);
        paths.iter().for_each(|path| work(path));
        !paths.is_empty()
    }

    fn paths(self, data: &Path) -> Vec<PathBuf> {
        let store = data.join("store");
        let in_folder = |folder: PathBuf, prefix: &str| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let paths = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)).map(|entry| entry.path());
            paths.collect()
        };
        match self {
            Self::Database => vec![store.join("db")],
            Self::Folder => vec![store],
            Self::Configuration => vec![store.join("conf")],
            Self::Manifest => vec![data.join("manifest")],
            Self::Snapshot => in_folder(store, "snap."),
            Self::Blobs => in_folder(store.join("blobs"), ""),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Database => "`store/db`",
            Self::Folder => "`store/`",
            Self::Snapshot => "`store/snap.*`",
            Self::Configuration => "`store/conf`",
            Self::Blobs => "`store/blobs/*`",
            Self::Manifest => "`manifest`",
        })
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).expect("the file exists").len()
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = File::options().write(true).open(path).expect("the file exists");
    file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(bytes)).expect("written");
}

fn flip(path: &Path, at: u64, bit: u8) {
    let mut file = File::options().read(true).open(path).expect("the file exists");
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut byte)).expect("the file is long enough");
    write_at(path, at, &[byte[0] ^ (1 << bit)]);
}
