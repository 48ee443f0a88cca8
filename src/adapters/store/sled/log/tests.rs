use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tempfile::TempDir;

use super::super::files;
use super::*;
use crate::adapters::store::sled::open::config;

#[test]
fn a_log_that_was_closed_has_no_flaw() {
    let folder = tempfile::tempdir().unwrap();

    for life in 0..4 {
        fill(folder.path(), life, 1500);

        let closed = closed(folder.path()).unwrap();
        assert!(closed.is_some());
        assert_eq!(first_flaw(folder.path(), closed).unwrap(), None, "life {life}");
        assert_eq!(first_flaw(folder.path(), None).unwrap(), None, "life {life}");
    }
}

#[test]
fn a_log_that_a_crash_left_has_no_flaw() {
    let folder = tempfile::tempdir().unwrap();
    for life in 0..3 {
        let db = config(folder.path(), 1 << 20).open().unwrap();
        for number in 0..40 {
            write(&db, life * 40 + number, 50);

            // The state of the files when a process is killed.
            let left = copy(folder.path());

            assert_eq!(first_flaw(left.path(), None).unwrap(), None, "life {life}, {number}");
        }
        drop(db);
        files::finished(folder.path()).unwrap();
    }
}

#[test]
fn a_flipped_bit_is_a_flaw_wherever_sled_would_read_data() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 0, 4000);
    // Without a snapshot, the log is read from its beginning.
    fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("snap."))
        .for_each(|entry| fs::remove_file(entry.path()).unwrap());
    let closed = closed(folder.path()).unwrap();
    let db = folder.path().join("db");
    let intact = fs::read(&db).unwrap();
    let used = (closed.unwrap().end as u64).min(intact.len() as u64);
    let mut chance = StdRng::seed_from_u64(1);
    let mut unnoticed = Vec::new();

    for _ in 0..60 {
        let at = chance.random_range(0..used) as usize;
        let mut damaged = intact.clone();
        damaged[at] ^= 1 << chance.random_range(0..8);
        fs::write(&db, damaged).unwrap();
        if first_flaw(folder.path(), closed).unwrap().is_none() {
            unnoticed.push(at);
        }
    }

    // The room after the last message of a segment is never read.
    assert!(unnoticed.iter().all(|at| at % SEGMENT > SEGMENT - 2 * LONGEST_MESSAGE_HEADER), "{unnoticed:?} of {used}");
}

#[test]
fn an_emptied_segment_is_a_flaw() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 0, 4000);
    let closed = closed(folder.path()).unwrap();
    let db = folder.path().join("db");
    let mut bytes = fs::read(&db).unwrap();
    assert!(bytes.len() > 2 * SEGMENT);
    bytes[..SEGMENT].fill(0);
    fs::write(&db, bytes).unwrap();

    assert!(matches!(first_flaw(folder.path(), closed).unwrap(), Some(Flaw::Emptied { .. } | Flaw::Unreadable { .. })));
}

#[test]
fn a_missing_or_damaged_large_value_is_a_flaw() {
    let folder = tempfile::tempdir().unwrap();
    let db = config(folder.path(), 1 << 20).open().unwrap();
    db.insert("large", vec![1; 400_000]).unwrap();
    db.flush().unwrap();
    drop(db);
    files::finished(folder.path()).unwrap();
    let blobs: Vec<_> = fs::read_dir(folder.path().join("blobs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let blob = blobs.last().expect("a value of its own file");
    let closed = closed(folder.path()).unwrap();
    assert_eq!(first_flaw(folder.path(), closed).unwrap(), None);
    let whole = fs::read(blob).unwrap();

    fs::write(blob, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(first_flaw(folder.path(), closed).unwrap(), Some(Flaw::Value { .. })));
    fs::remove_file(blob).unwrap();
    assert!(matches!(first_flaw(folder.path(), closed).unwrap(), Some(Flaw::Value { .. })));
}

#[test]
fn a_large_value_damaged_after_a_snapshot_is_a_flaw() {
    let folder = tempfile::tempdir().unwrap();
    let db = config(folder.path(), 1 << 20).open().unwrap();
    db.insert("large", vec![1; 400_000]).unwrap();
    db.flush().unwrap();
    drop(db);
    files::finished(folder.path()).unwrap();
    // sled writes its snapshot file at opening.
    drop(config(folder.path(), 1 << 20).open().unwrap());
    files::finished(folder.path()).unwrap();
    assert_eq!(first_flaw(folder.path(), None).unwrap(), None);

    damage_large_values(folder.path());

    assert!(matches!(first_flaw(folder.path(), None).unwrap(), Some(Flaw::OldValue { .. })));
}

#[test]
fn a_large_value_damaged_after_later_segments_is_a_flaw() {
    let folder = tempfile::tempdir().unwrap();
    let db = config(folder.path(), 1 << 20).open().unwrap();
    db.insert("large", vec![1; 400_000]).unwrap();
    for number in (0..4_000).step_by(50) {
        write(&db, number, 50);
    }
    drop(db);
    files::finished(folder.path()).unwrap();
    assert_eq!(first_flaw(folder.path(), None).unwrap(), None);

    damage_large_values(folder.path());

    assert!(matches!(first_flaw(folder.path(), None).unwrap(), Some(Flaw::OldValue { .. })));
}

#[test]
fn a_damaged_snapshot_file_is_a_flaw() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 0, 100);
    fill(folder.path(), 1, 100);
    let state =
        fs::read_dir(folder.path()).unwrap().flatten().find(|entry| entry.file_name().to_string_lossy().starts_with("snap."));
    let state = state.expect("sled has written a snapshot").path();
    let bytes = fs::read(&state).unwrap();

    for damaged in [Vec::new(), bytes[..bytes.len() / 2].to_vec(), vec![7; bytes.len()]] {
        fs::write(&state, damaged).unwrap();

        assert!(matches!(first_flaw(folder.path(), None).unwrap(), Some(Flaw::Metadata { .. })));
    }
    fs::write(&state, bytes).unwrap();
    assert_eq!(first_flaw(folder.path(), None).unwrap(), None);
}

#[test]
fn a_crash_before_the_next_segment_is_begun_is_not_a_flaw() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 0, 1500);
    let segments = Survey::open(folder.path()).unwrap().unwrap().segments().unwrap().unwrap();
    let (last, _) = segments.named.last_key_value().unwrap();
    let next = last + SEGMENT as Lsn;

    write_snapshot(folder.path(), next);
    assert_eq!(first_flaw(folder.path(), None).unwrap(), None);
    let closed = Some(Closed { end: next, empty: segments.empty });
    assert_eq!(first_flaw(folder.path(), closed).unwrap(), Some(Flaw::Short { at: 0 }));
    write_snapshot(folder.path(), next + SEGMENT as Lsn);
    assert_eq!(first_flaw(folder.path(), None).unwrap(), Some(Flaw::Short { at: 0 }));
}

#[test]
fn numbers_are_decoded_as_sled_encodes_them() {
    let numbers: BTreeMap<&[u8], u64> = BTreeMap::from([
        (&[240_u8][..], 240),
        (&[241, 1], 241),
        (&[248, 255], 2287),
        (&[249, 0, 1], 2289),
        (&[249, 255, 255], 67_823),
        (&[250, 1, 2, 3], 0x03_02_01),
        (&[255, 1, 0, 0, 0, 0, 0, 0, 128], 1 | 1 << 63),
    ]);
    for (bytes, value) in numbers {
        assert_eq!(number(bytes), Some((value, &[][..])), "{bytes:?}");
    }
    assert_eq!(number(&[]), None);
    assert_eq!(number(&[255, 1]), None);
}

/// Flips a bit in each file of a large value.
fn damage_large_values(folder: &Path) {
    for blob in fs::read_dir(folder.join("blobs")).unwrap() {
        let blob = blob.unwrap().path();
        let mut bytes = fs::read(&blob).unwrap();
        bytes[1000] ^= 8;
        fs::write(blob, bytes).unwrap();
    }
}

/// Opens a database, writes, and closes it.
fn fill(folder: &Path, life: u64, groups: u64) {
    let db = config(folder, 1 << 20).open().unwrap();
    for number in (0..groups).step_by(50) {
        write(&db, life * groups + number, 50);
    }
    drop(db);
    files::finished(folder).unwrap();
}

/// Writes a snapshot file for this log position, with the parts that are checked.
fn write_snapshot(folder: &Path, lsn: Lsn) {
    let state = b"state";
    let content = [&state[..], &5_u64.to_le_bytes(), &crc32fast::hash(state).to_le_bytes()].concat();
    fs::write(folder.join(format!("snap.{lsn:016X}")), content).unwrap();
}

/// Writes a group: new records, and one record that is rewritten each time.
fn write(db: &sled::Db, group: u64, records: u64) {
    let mut batch = sled::Batch::default();
    for number in 0..records {
        let key = (group * records + number).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        batch.insert(&key, format!("{group} {number} {}", "and so on ".repeat(10)).as_bytes());
    }
    batch.insert(b"count", &group.to_be_bytes());
    db.apply_batch(batch).unwrap();
    db.flush().unwrap();
}

fn copy(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("blobs")).unwrap();
    for entry in fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}
