//! Creates a new database from records: of a backup, or of the database itself to free space.

use std::path::Path;

use super::closing::{FAILED_TIMEOUT, attempt, close_within};
use super::facts::Facts;
use super::{OpenOptions, commit_log, files, layout, open, records, unreadable};
use crate::OpenError;
use crate::audit::{PROGRESS_EVERY, Problem, Report};
use crate::backup::{self, Copied, CopyError};
use crate::manifest::{self, FORMAT, Manifest};
use crate::ports::store::key::Key;
use crate::ports::store::maintenance::Inspect;
use crate::ports::store::{StoreError, Value};

// sled writes batches of this size at full speed.
const RECORDS_PER_BATCH: usize = 1000;

/// Creates the store of a data folder from a backup. Blocks. `progress` receives the number of records written every few
/// thousand. The backup is read completely before anything is written, and each record is checked with `inspect`. Records that
/// cannot be decoded are in the report, and are restored unchanged.
///
/// # Errors
/// [`CopyError::Occupied`] if the folder contains a store or a manifest; [`CopyError::Unusable`] if the backup cannot be used.
pub fn restore(
    from: &Path,
    data: &Path,
    options: &OpenOptions,
    inspect: impl Inspect + Send + 'static,
    progress: impl FnMut(u64),
) -> Result<(Copied, Report), CopyError> {
    let report = backup::verify(from, inspect, |_| {})?;
    if report.problem_count > report.illegible {
        let first = report.problems.iter().find(|problem| !matches!(problem, Problem::Illegible(_)));
        let detail = first.map_or_else(|| "its records do not fit together".to_owned(), ToString::to_string);
        return Err(CopyError::Unusable { path: from.to_path_buf(), detail });
    }
    let _lock = options.lock(data)?;
    files::recover(data)?;
    for path in [manifest::path(data), layout::sled_folder(data)] {
        if path.exists() {
            return Err(CopyError::Occupied(data.to_path_buf()));
        }
    }
    let bytes_before = std::fs::metadata(from).map_err(|error| about(from, error))?.len();
    let records = backup::Records::open(from)?;
    let (manifest, records) = fill(data, options, records, progress)?;
    commit_log::remove(data).and_then(|()| files::swap(data)).map_err(|error| about(data, error))?;
    manifest::write(data, &manifest).map_err(|error| about(data, error))?;
    Ok((Copied { records, bytes_before, bytes_after: disk_size(data)? }, report))
}

/// Frees space, and removes deleted text from the disk, by copying a closed store into a new database that then replaces it.
/// Blocks. `progress` receives the number of records copied every few thousand. The copy needs disk space beside the store.
///
/// If a loss is accepted, each record is checked with `inspect`. Records that `leave_out` selects are not copied. Before the copy
/// replaces the store, the copy is closed, opened again and compared with the copied records.
///
/// # Errors
/// [`CopyError::Open`] as for opening. On any error there is a complete store, the old or the new one.
pub fn compact(
    data: &Path,
    options: &OpenOptions,
    inspect: impl Inspect + Send + 'static,
    leave_out: impl Fn(&Key) -> bool,
    progress: impl FnMut(u64),
) -> Result<Copied, CopyError> {
    if files::db_bytes(data)?.is_none() && manifest::read(data)?.is_none() {
        return Err(StoreError::Failed(format!("{} holds no store", data.display())).into());
    }
    let open::Opened { db, manifest: before, lock: _lock, .. } = open::open(data, options, inspect)?;
    let bytes_before = disk_size(data)?;
    let (db, (after, count)) = attempt(db, |db| {
        let kept = records(db).filter(|record| !record.as_ref().is_ok_and(|(key, _)| leave_out(key)));
        copied(data, options, kept.map(|record| record.map_err(|error| CopyError::Store(unreadable(&error)))), progress)
    })?;
    drop(db);
    // Until the swap is complete, the manifest must match the old database and the new one.
    let either = Manifest { db_bytes: before.db_bytes.min(after.db_bytes), files: None, ..after.clone() };
    manifest::write(data, &either).and_then(|()| commit_log::remove(data)).map_err(|error| about(data, error))?;
    files::swap(data).map_err(|error| about(data, error))?;
    manifest::write(data, &after).map_err(|error| about(data, error))?;
    Ok(Copied { records: count, bytes_before, bytes_after: disk_size(data)? })
}

/// Copies all readable records of an open, damaged database into a new one, which replaces it and is returned. If that fails, the
/// old one stays.
pub(super) fn renew(data: &Path, options: &OpenOptions, db: sled::Db, progress: impl Fn()) -> Result<sled::Db, OpenError> {
    let (db, _) = attempt(db, |db| {
        let records = records(db).map(|record| record.map_err(|error| CopyError::Open(open::explain(data, error))));
        copied(data, options, records, |_| progress())
    })
    .map_err(|error| match error {
        CopyError::Open(error) => error,
        error => OpenError::damaged(data, error),
    })?;
    // Closing writes to the database, which may panic.
    close_within(db, FAILED_TIMEOUT);
    let folder = layout::sled_folder(data);
    files::finished(&folder).and_then(|_| files::swap(data)).map_err(|error| OpenError::of(data, error))?;
    open::config(&folder, options.cache_bytes).open().map_err(|error| open::explain(data, error))
}

/// Writes records into a new database beside sled's folder, reads the database again and compares it with the records. Returns
/// its manifest and the number of records.
fn copied(
    data: &Path,
    options: &OpenOptions,
    records: impl Iterator<Item = Result<(Key, Value), CopyError>>,
    progress: impl FnMut(u64),
) -> Result<(Manifest, u64), CopyError> {
    let mut copied = Checksum::default();
    let records = records.inspect(|record| {
        if let Ok((key, value)) = record {
            copied.add(key, value);
        }
    });
    let (manifest, count) = fill(data, options, records, progress)?;
    Ok((verified(data, options, manifest, &copied)?, count))
}

/// The number of records and a checksum of all of them, in their order.
#[derive(Clone, Debug, Default)]
struct Checksum {
    records: u64,
    crc: crc32fast::Hasher,
}

impl Checksum {
    fn add(&mut self, key: &Key, value: &[u8]) {
        self.records += 1;
        for part in [key.as_bytes(), value] {
            self.crc.update(&part.len().to_be_bytes());
            self.crc.update(part);
        }
    }

    fn matches(&self, other: &Self) -> bool {
        self.records == other.records && self.crc.clone().finalize() == other.crc.clone().finalize()
    }
}

/// Reads a finished copy from the disk and compares it with the copied records. Returns its manifest, updated for the opening.
fn verified(data: &Path, options: &OpenOptions, manifest: Manifest, copied: &Checksum) -> Result<Manifest, CopyError> {
    let folder = layout::new_folder(data);
    let wrong = |why: String| {
        CopyError::Store(StoreError::Failed(format!("the copy {}: {why}; the store is unchanged", folder.display())))
    };
    let db = open::config(&folder, options.cache_bytes).open().map_err(|error| wrong(super::message_of(&error)))?;
    let (db, ()) = attempt(db, |db| {
        let mut found = Checksum::default();
        for record in records(db) {
            let (key, value) = record.map_err(|error| wrong(super::message_of(&error)))?;
            found.add(&key, &value);
        }
        let (expected, read) = (copied.records, found.records);
        if found.matches(copied) {
            Ok(())
        } else {
            Err(wrong(format!("{expected} records were copied, but {read} different ones were read")))
        }
    })?;
    drop(db);
    let (db_bytes, sums) = files::closed(&folder).map_err(|error| about(&folder, error))?;
    Ok(Manifest { db_bytes, files: Some(sums), ..manifest })
}

/// Writes records into a new database beside sled's folder, and closes it. Returns its manifest and the number of records.
fn fill(
    data: &Path,
    options: &OpenOptions,
    records: impl Iterator<Item = Result<(Key, Value), CopyError>>,
    mut progress: impl FnMut(u64),
) -> Result<(Manifest, u64), CopyError> {
    let folder = layout::new_folder(data);
    let failed = |error: sled::Error| match error {
        sled::Error::Io(error) => CopyError::Open(OpenError::of(&folder, error)),
        other => CopyError::Store(unreadable(&other)),
    };
    let db = open::config(&folder, options.cache_bytes).open().map_err(failed)?;
    let mut count = 0;
    let (db, facts) = attempt(db, |db| {
        let mut batch = sled::Batch::default();
        for record in records {
            let (key, value) = record?;
            batch.insert(key.as_bytes(), value);
            count += 1;
            if count % RECORDS_PER_BATCH as u64 == 0 {
                db.apply_batch(std::mem::take(&mut batch)).map_err(failed)?;
            }
            if count % PROGRESS_EVERY == 0 {
                progress(count);
            }
        }
        db.apply_batch(batch).map_err(failed)?;
        db.flush().map_err(failed)?;
        let facts = Facts::read(db).map_err(StoreError::Damaged)?;
        let facts = facts.ok_or_else(|| StoreError::Damaged("it has no identity record".into()))?;
        if facts.format > FORMAT {
            return Err(CopyError::Open(OpenError::NewerVersion { path: folder.clone(), found: facts.format, known: FORMAT }));
        }
        Ok(facts)
    })?;
    drop(db);
    let (db_bytes, sums) = files::closed(&folder).map_err(|error| about(&folder, error))?;
    let Facts { format, store, counts, .. } = facts;
    Ok((Manifest { format, store, counts, db_bytes, files: Some(sums) }, count))
}

fn disk_size(data: &Path) -> Result<u64, CopyError> {
    files::bytes_under(&layout::sled_folder(data)).map_err(|error| about(data, error))
}

fn about(path: &Path, error: std::io::Error) -> CopyError {
    CopyError::Io { path: path.to_path_buf(), error }
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;
    use crate::domain::id::Ward;
    use crate::ports::store::key::Kind;

    #[test]
    fn a_copy_that_differs_from_the_original_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        let [lost, kept] = ["lost", "kept"].map(|name| Key::new(Ward(0), Kind::Setting).text(name));
        let open::Opened { db, facts, manifest, .. } = open::open(data, &options(), ()).unwrap();
        drop(db);
        let db = open::config(&layout::new_folder(data), options().cache_bytes).open().unwrap();
        db.insert(kept.as_bytes(), b"here").unwrap();
        drop(db);
        files::finished(&layout::new_folder(data)).unwrap();
        let sum = |records: &[(&Key, &[u8])]| {
            let mut sum = Checksum::default();
            records.iter().for_each(|(key, value)| sum.add(key, value));
            sum
        };
        let verified = |sum| verified(data, &options(), manifest.clone(), &sum);

        let whole = verified(sum(&[(&kept, b"here")]));
        let less = verified(sum(&[(&kept, b"here"), (&lost, b"there")]));
        let other = verified(sum(&[(&kept, b"hare")]));

        assert_eq!(whole.unwrap().store, facts.store);
        for refused in [less, other] {
            assert!(refused.unwrap_err().to_string().ends_with("the store is unchanged"));
        }
    }
}
