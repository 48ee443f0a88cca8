//! Tests that a commit is acknowledged only after its data is on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};

use crate::conformance::{Subject as _, append, put, taken, writes};
use crate::sled::tests::OnDisk;

/// The contents of files when they were last synced, in watched folders.
static SYNCED: Mutex<BTreeMap<PathBuf, BTreeMap<PathBuf, Vec<u8>>>> = Mutex::new(BTreeMap::new());

/// Records that a file is being synced.
pub(super) fn record_sync(path: &Path) {
    for (_, files) in synced().iter_mut().filter(|(folder, _)| path.starts_with(folder)) {
        files.insert(path.to_path_buf(), fs::read(path).unwrap());
    }
}

fn synced() -> MutexGuard<'static, BTreeMap<PathBuf, BTreeMap<PathBuf, Vec<u8>>>> {
    SYNCED.lock()
}

/// Whether the data that would survive a power loss contains this text.
fn is_on_disk(folder: &Path, text: &str) -> bool {
    synced()[folder].values().any(|file| file.windows(text.len()).any(|found| found == text.as_bytes()))
}

#[tokio::test]
async fn an_acknowledged_commit_was_synced_before() {
    let subject = OnDisk::new();
    let folder = subject.data();
    synced().insert(folder.clone(), BTreeMap::new());
    let term = taken(subject.store()).await;

    for number in 0..20 {
        let text = format!("the text of event {number}, and of no other");
        let (event, setting) = (append(term, number, [&*text]), format!("the text of setting {number}, and of no other"));
        assert!(!is_on_disk(&folder, &text));

        subject.store().commit(vec![event, writes(term, [put("setting", &setting)])]).await.unwrap();

        assert!(is_on_disk(&folder, &text) && is_on_disk(&folder, &setting), "{number}");
    }
    // Large values have files of their own in another folder.
    let large = "so much that it gets its own file ".repeat(10_000);
    subject.store().commit(vec![append(term, 20, [&*large])]).await.unwrap();

    assert!(is_on_disk(&folder, &large[..1_000]));
    synced().remove(&folder);
}
