//! Rewrites a store of an older format in the current one before it is used.

use std::path::Path;

use super::closing::attempt;
use super::{OpenOptions, files, layout, open, records};
use crate::OpenError;
use crate::audit::PROGRESS_EVERY;
use crate::manifest::{self, FORMAT, Manifest};
use crate::ports::store::Value;
use crate::ports::store::key::Key;

// sled writes batches of this size at full speed.
const RECORDS_PER_BATCH: usize = 1000;

/// The result of upgrading a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upgraded {
    /// The format that the store had.
    pub from: u64,
    /// The number of rewritten records.
    pub records: u64,
    /// The number of records that were not changed, because they cannot be read.
    pub left: u64,
    /// The error of the first record that was not changed.
    pub first: Option<String>,
}

/// Rewrites the records of a data folder's store if its format is older than this version's. `None`: it is not older, or the
/// folder has no readable manifest. Blocks. `progress` receives the number of records read every few thousand. `upgraded_value`
/// returns a value in the newest format, or `None` if the value has that format already.
///
/// If this is interrupted, every record is complete, in its old or its new form. Both can be read. The next run continues.
///
/// # Errors
/// The same as for opening.
pub fn upgrade(
    data: &Path,
    options: &OpenOptions,
    upgraded_value: impl Fn(&Key, &[u8]) -> Result<Option<Value>, String>,
    mut progress: impl FnMut(u64),
) -> Result<Option<Upgraded>, OpenError> {
    // Opening reports an unreadable manifest.
    if !manifest::read(data).is_ok_and(|known| known.is_some_and(|known| known.format < FORMAT)) {
        return Ok(None);
    }
    let open::Opened { db, mut facts, lock: _lock, .. } = open::open(data, options, ())?;
    if facts.format >= FORMAT {
        // The previous run ended just before it wrote its manifest.
        return Ok(None);
    }
    let failed = |error: sled::Error| open::explain(data, error);
    let mut outcome = Upgraded { from: facts.format, ..Upgraded::default() };
    let (db, ()) = attempt(db, |db| {
        let (mut records_read, mut pending, mut batch) = (0, 0, sled::Batch::default());
        for record in records(db) {
            let (key, value) = record.map_err(failed)?;
            match upgraded_value(&key, &value) {
                Ok(None) => {}
                Ok(Some(value)) => {
                    batch.insert(key.as_bytes(), value);
                    outcome.records += 1;
                    pending += 1;
                }
                Err(why) => {
                    outcome.left += 1;
                    outcome.first.get_or_insert(why);
                }
            }
            if pending == RECORDS_PER_BATCH {
                db.apply_batch(std::mem::take(&mut batch)).map_err(failed)?;
                pending = 0;
            }
            records_read += 1;
            if records_read % PROGRESS_EVERY == 0 {
                progress(records_read);
            }
        }
        db.apply_batch(batch).map_err(failed)?;
        db.flush().map_err(failed)?;
        // The format is written last, so that an interrupted upgrade is repeated.
        facts.format = FORMAT;
        facts.write(db).map_err(failed)
    })?;
    drop(db);
    let (db_bytes, sums) = files::closed(&layout::sled_folder(data)).map_err(|error| OpenError::of(data, error))?;
    let manifest = Manifest { format: facts.format, store: facts.store, counts: facts.counts, db_bytes, files: Some(sums) };
    manifest::write(data, &manifest).map_err(|error| OpenError::of(data, error))?;
    Ok(Some(outcome))
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;
    use crate::domain::id::Ward;
    use crate::ports::store::key::Kind;
    use crate::sled::SledStore;

    fn key(number: u64) -> Key {
        Key::new(Ward(1), Kind::Setting).number(number)
    }

    /// A store of format 0 with this many records, the first of which cannot be read.
    fn old(records: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        drop(SledStore::open(folder.path(), &options()).unwrap());
        let open::Opened { db, mut facts, manifest, lock: _lock } = open::open(folder.path(), &options(), ()).unwrap();
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

    fn upgraded_value(key: &Key, value: &[u8]) -> Result<Option<Value>, String> {
        match value {
            _ if key.as_bytes()[1] != Kind::Setting as u8 => Ok(None),
            [0, rest @ ..] => Ok(Some([&[1], rest].concat())),
            [b'?', ..] => Err("it cannot be read".into()),
            _ => Ok(None),
        }
    }

    fn value(data: &Path, number: u64) -> Vec<u8> {
        let open::Opened { db, .. } = open::open(data, &options(), ()).unwrap();
        db.get(key(number).as_bytes()).unwrap().unwrap().to_vec()
    }

    #[test]
    fn a_store_of_an_older_format_is_upgraded_once() {
        let folder = old(2_500);

        let first = upgrade(folder.path(), &options(), upgraded_value, |_| {}).unwrap();
        let again = upgrade(folder.path(), &options(), upgraded_value, |_| {}).unwrap();

        let left = Some("it cannot be read".into());
        assert_eq!(first, Some(Upgraded { from: 0, records: 2_499, left: 1, first: left }));
        assert_eq!(again, None);
        assert_eq!(value(folder.path(), 2_499), b"\x01old");
        assert_eq!(value(folder.path(), 0), b"?");
        assert_eq!(manifest::read(folder.path()).unwrap().unwrap().format, FORMAT);
        drop(SledStore::open(folder.path(), &options()).unwrap());
    }

    #[test]
    fn an_interrupted_upgrade_continues_at_the_next_run() {
        let folder = old(2_500);
        let panic_halfway = |key: &Key, value: &[u8]| {
            assert!(key.last_number() != Some(1_700), "as the test wants it");
            upgraded_value(key, value)
        };
        let died = std::panic::catch_unwind(|| upgrade(folder.path(), &options(), panic_halfway, |_| {}));
        assert!(died.is_err());
        assert_eq!(value(folder.path(), 1), b"\x01old");
        assert_eq!(value(folder.path(), 2_000), b"\x00old");

        let next = upgrade(folder.path(), &options(), upgraded_value, |_| {}).unwrap().unwrap();

        // One batch of a thousand had been applied.
        assert_eq!(next.records, 1_499);
        assert_eq!(value(folder.path(), 2_000), b"\x01old");
    }

    #[test]
    fn a_folder_without_a_store_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();

        assert_eq!(upgrade(folder.path(), &options(), upgraded_value, |_| {}).unwrap(), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
