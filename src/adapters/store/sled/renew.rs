//! Writing a store of an older format anew, in the current one, before it is used.

use std::path::Path;

use super::letting_go::attempt;
use super::{OpenOptions, files, layout, open};
use crate::adapters::store::OpenError;
use crate::adapters::store::audit::PROGRESS_EVERY;
use crate::adapters::store::manifest::{self, FORMAT, Manifest};
use crate::ports::store::Value;
use crate::ports::store::key::Key;

// sled writes batches of this size at full speed.
const RECORDS_PER_BATCH: usize = 1000;

/// What became of a store of an older format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// The format that it had.
    pub from: u64,
    /// Records that were written anew.
    pub records: u64,
    /// Records that were left as they are, because they cannot be read.
    pub left: u64,
    /// What is wrong with the first of those.
    pub first: Option<String>,
}

/// Writes the records of a data folder's store anew if its format is older than this version's; `None`: it is not, or there is no store. Blocks;
/// `progress` hears the number of records looked at every few thousand. `renewed` gives a value as it is written now, or none if it already is.
///
/// Whatever interrupts it, every record is whole, in its old form or the new one, both of which are read; the next time goes on.
///
/// # Errors
/// As for opening.
pub fn renew(
    data: &Path,
    options: &OpenOptions,
    renewed: impl Fn(&Key, &[u8]) -> Result<Option<Value>, String>,
    mut progress: impl FnMut(u64),
) -> Result<Option<Renewed>, OpenError> {
    // What cannot be read here is told of by whoever opens it.
    if !manifest::read(data).is_ok_and(|known| known.is_some_and(|known| known.format < FORMAT)) {
        return Ok(None);
    }
    let open::Opened { db, mut facts, lock: _lock, .. } = open::open(data, options, open::Rest::Refused)?;
    if facts.format >= FORMAT {
        // It ended just before its manifest was written.
        return Ok(None);
    }
    let failed = |error: sled::Error| open::explain(data, error);
    let mut outcome = Renewed { from: facts.format, ..Renewed::default() };
    let (db, ()) = attempt(db, |db| {
        let (mut looked_at, mut waiting, mut batch) = (0, 0, sled::Batch::default());
        for entry in db.iter() {
            let (key, value) = entry.map_err(failed)?;
            match renewed(&Key::from_bytes(&key), &value) {
                Ok(None) => {}
                Ok(Some(value)) => {
                    batch.insert(key, value);
                    outcome.records += 1;
                    waiting += 1;
                }
                Err(why) => {
                    outcome.left += 1;
                    outcome.first.get_or_insert(why);
                }
            }
            if waiting == RECORDS_PER_BATCH {
                db.apply_batch(std::mem::take(&mut batch)).map_err(failed)?;
                waiting = 0;
            }
            looked_at += 1;
            if looked_at % PROGRESS_EVERY == 0 {
                progress(looked_at);
            }
        }
        db.apply_batch(batch).map_err(failed)?;
        db.flush().map_err(failed)?;
        // Last of all, so that what was interrupted is done again.
        facts.format = FORMAT;
        facts.write(db).map_err(failed)
    })?;
    drop(db);
    let db_bytes = files::finished(&layout::sled_folder(data)).map_err(|error| OpenError::of(data, error))?;
    let manifest = Manifest { format: facts.format, store: facts.store, counts: facts.counts, db_bytes, closed: None };
    manifest::write(data, &manifest).map_err(|error| OpenError::of(data, error))?;
    Ok(Some(outcome))
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;
    use crate::adapters::store::sled::SledStore;
    use crate::domain::id::Ward;
    use crate::ports::store::key::Kind;

    fn key(number: u64) -> Key {
        Key::new(Ward(1), Kind::Setting).number(number)
    }

    /// A store of format 0 with so many records, the first of which cannot be read.
    fn old(records: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        drop(SledStore::open(folder.path(), &options()).unwrap());
        let open::Opened { db, mut facts, manifest, lock: _lock } =
            open::open(folder.path(), &options(), open::Rest::Refused).unwrap();
        for number in 0..records {
            let value: &[u8] = if number == 0 { b"?" } else { b"\x00old" };
            db.insert(key(number).as_bytes(), value).unwrap();
        }
        facts.format = 0;
        facts.write(&db).unwrap();
        drop(db);
        let db_bytes = files::finished(&layout::sled_folder(folder.path())).unwrap();
        manifest::write(folder.path(), &Manifest { format: 0, db_bytes, ..manifest }).unwrap();
        folder
    }

    fn renewed(key: &Key, value: &[u8]) -> Result<Option<Value>, String> {
        match value {
            _ if key.as_bytes()[1] != Kind::Setting as u8 => Ok(None),
            [0, rest @ ..] => Ok(Some([&[1], rest].concat())),
            [b'?', ..] => Err("it cannot be read".into()),
            _ => Ok(None),
        }
    }

    fn value(data: &Path, number: u64) -> Vec<u8> {
        let open::Opened { db, .. } = open::open(data, &options(), open::Rest::Refused).unwrap();
        db.get(key(number).as_bytes()).unwrap().unwrap().to_vec()
    }

    #[test]
    fn a_store_of_an_older_format_is_written_anew_once() {
        let folder = old(2_500);

        let first = renew(folder.path(), &options(), renewed, |_| {}).unwrap();
        let again = renew(folder.path(), &options(), renewed, |_| {}).unwrap();

        let left = Some("it cannot be read".into());
        assert_eq!(first, Some(Renewed { from: 0, records: 2_499, left: 1, first: left }));
        assert_eq!(again, None);
        assert_eq!(value(folder.path(), 2_499), b"\x01old");
        assert_eq!(value(folder.path(), 0), b"?");
        assert_eq!(manifest::read(folder.path()).unwrap().unwrap().format, FORMAT);
        drop(SledStore::open(folder.path(), &options()).unwrap());
    }

    #[test]
    fn what_was_interrupted_goes_on_the_next_time() {
        let folder = old(2_500);
        let die_half_way = |key: &Key, value: &[u8]| {
            assert!(key.last_number() != Some(1_700), "as the test wants it");
            renewed(key, value)
        };
        let died = std::panic::catch_unwind(|| renew(folder.path(), &options(), die_half_way, |_| {}));
        assert!(died.is_err());
        assert_eq!(value(folder.path(), 1), b"\x01old");
        assert_eq!(value(folder.path(), 2_000), b"\x00old");

        let next = renew(folder.path(), &options(), renewed, |_| {}).unwrap().unwrap();

        // One batch of a thousand had been applied.
        assert_eq!(next.records, 1_499);
        assert_eq!(value(folder.path(), 2_000), b"\x01old");
    }

    #[test]
    fn a_folder_without_a_store_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();

        assert_eq!(renew(folder.path(), &options(), renewed, |_| {}).unwrap(), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
