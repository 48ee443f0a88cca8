//! Fuzz targets for the files of a store: whatever they contain, they are read as they were written, or rejected.

use std::fs;

use super::audit::Audit;
use super::backup::{self, Records, write};
use super::manifest::{self, FORMAT};
use crate::domain::id::{Seq, Ward};
use crate::fuzzing::{is_bounded, texts};
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::{StoreError, Value};

pub fn manifests() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"format":1,"store":"0123456789abcdef0123456789abcdef","groups":7,"events":9,"db_bytes":4096}"#,
        r#"{"format":3}"#,
    ])
}

pub fn manifest(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(manifest::path(folder.path()), bytes).expect("a file");

    match manifest::read(folder.path()) {
        Ok(read) => {
            let read = read.expect("there is one");
            assert!(read.format <= FORMAT, "a newer format is read as this one");
            manifest::write(folder.path(), &read).expect("a folder that can be written");
            assert_eq!(manifest::read(folder.path()).unwrap(), Some(read), "it is not read back as it was written");
        }
        Err(error) => assert!(is_bounded(&error.to_string(), 2_000), "an error without end"),
    }
}

pub fn backups() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let made = |name: &str, records: Vec<(Key, Value)>| {
        let path = folder.path().join(name);
        write(&path, records.into_iter().map(Ok::<_, StoreError>), |_| {}).expect("a backup");
        fs::read(path).expect("the backup")
    };
    let event = |seq: u64| {
        let value = br#"{"at":5,"event":{"event":"cleared"}}"#;
        (Key::event(Ward(1), ChannelNo(2), Seq(seq)), [&[1], &value[..]].concat())
    };
    let head = (Key::head(Ward(1), ChannelNo(2)), 3_u64.to_be_bytes().to_vec());
    let named = (
        Key::new(Ward(1), Kind::ChannelOf).channel(ChannelNo(2)),
        b"\x01{\"guild\":\"home\",\"channel\":\"console:lobby\"}".to_vec(),
    );
    vec![
        made("none", Vec::new()),
        made("some", vec![event(1), event(2), event(3), head, named]),
        made("gap", vec![event(1), event(3)]),
    ]
}

pub fn backup(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("given");
    fs::write(&path, bytes).expect("a file");
    let read = Records::open(&path).and_then(|records| records.collect::<Result<Vec<_>, _>>());

    match read {
        Ok(records) => {
            backup::verify(&path, (), |_| {}).expect("what is read through can be verified");
            let again = folder.path().join("again");
            write(&again, records.into_iter().map(Ok), |_| {}).expect("what was read can be written");
            assert!(fs::read(again).expect("the backup") == bytes, "two different backups are read as the same");
        }
        Err(error) => assert!(is_bounded(&error.to_string(), 2_000), "an error without end"),
    }
}

/// Audits records without a checksum before them, as a damaged store may have.
pub fn audit(bytes: &[u8]) {
    let mut rest = bytes.get(18..).unwrap_or_default();
    let mut records: Vec<(Key, Value)> = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let length = |at: usize| head[at..at + 4].iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        let key = length(0).min(after.len()).min(100);
        let value = length(4).min(after.len() - key).min(400);
        records.push((Key::from_bytes(&after[..key]), after[key..key + value].to_vec()));
        rest = &after[key + value..];
    }
    let count = records.len();

    let report = Audit::default().run(records.into_iter().map(Ok::<_, StoreError>), |_| {}).expect("nothing fails");

    assert!(report.problems.len() <= count + 100, "{} problems in {count} records", report.problems.len());
    assert!(report.problems.iter().all(|problem| is_bounded(&problem.to_string(), 1_000)), "a problem without end");
}
