use std::fs;

use super::*;
use crate::domain::id::Ward;
use crate::ports::store::key::Kind;

#[test]
fn a_backup_reads_back_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup");

    let copied = write(&path, records(3), |_| {}).unwrap();

    let read = Records::open(&path).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(read, records(3).collect::<Result<Vec<_>, _>>().unwrap());
    assert_eq!(copied, Copied { records: 3, bytes_before: 0, bytes_after: fs::metadata(&path).unwrap().len() });
}

#[test]
fn a_backup_never_replaces_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup");
    fs::write(&path, "precious").unwrap();

    let refused = write(&path, records(3), |_| {}).unwrap_err();

    assert!(matches!(refused, CopyError::Exists(_)));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_backup_cut_off_or_altered_anywhere_or_with_trailing_bytes_is_unusable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup");
    write(&path, records(3), |_| {}).unwrap();
    let complete = fs::read(&path).unwrap();
    let cut_off = (0..complete.len()).map(|length| complete[..length].to_vec());
    let altered = (0..complete.len()).map(|place| {
        let mut altered = complete.clone();
        altered[place] ^= 0x40;
        altered
    });

    for (number, damaged) in cut_off.chain(altered).chain([[&complete[..], b"!"].concat()]).enumerate() {
        fs::write(&path, damaged).unwrap();

        assert!(matches!(verify(&path, (), |_| {}), Err(CopyError::Unusable { .. })), "{number}");
    }
}

#[test]
fn progress_is_reported_every_few_thousand_records() {
    let folder = tempfile::tempdir().unwrap();
    let mut reported = Vec::new();

    write(&folder.path().join("backup"), records(2 * PROGRESS_EVERY + 5), |count| reported.push(count)).unwrap();

    assert_eq!(reported, [PROGRESS_EVERY, 2 * PROGRESS_EVERY]);
}

fn records(count: u64) -> impl Iterator<Item = Result<(Key, Value), StoreError>> {
    (0..count).map(|number| Ok((Key::new(Ward(1), Kind::Setting).number(number), format!("value {number}").into_bytes())))
}
