//! Whoever is told that something is stored is told so once it is on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::adapters::store::conformance::{Subject as _, append, put, taken, writes};
use crate::adapters::store::sled::tests::OnDisk;

/// What files held when they were synced last, in folders that are watched.
static SYNCED: Mutex<BTreeMap<PathBuf, BTreeMap<PathBuf, Vec<u8>>>> = Mutex::new(BTreeMap::new());

/// A file is being synced.
pub(super) fn note(path: &Path) {
    for (_, files) in synced().iter_mut().filter(|(folder, _)| path.starts_with(folder)) {
        files.insert(path.to_path_buf(), fs::read(path).unwrap());
    }
}

fn synced() -> MutexGuard<'static, BTreeMap<PathBuf, BTreeMap<PathBuf, Vec<u8>>>> {
    SYNCED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether what would be left of a folder without power holds these words.
fn is_on_disk(folder: &Path, words: &str) -> bool {
    synced()[folder].values().any(|file| file.windows(words.len()).any(|found| found == words.as_bytes()))
}

#[tokio::test]
async fn what_is_said_to_be_stored_was_synced_before() {
    let subject = OnDisk::new();
    let folder = subject.data();
    synced().insert(folder.clone(), BTreeMap::new());
    let term = taken(subject.store()).await;

    for number in 0..20 {
        let words = format!("the words of event {number}, and of no other");
        let (event, setting) = (append(term, number, [&*words]), format!("the words of setting {number}, and of no other"));
        assert!(!is_on_disk(&folder, &words));

        subject.store().commit(vec![event, writes(term, [put("setting", &setting)])]).await.unwrap();

        assert!(is_on_disk(&folder, &words) && is_on_disk(&folder, &setting), "{number}");
    }
    // Files of their own, in the folder beside.
    let large = "so much that it is kept apart ".repeat(10_000);
    subject.store().commit(vec![append(term, 20, [&*large])]).await.unwrap();

    assert!(is_on_disk(&folder, &large[..1_000]));
    synced().remove(&folder);
}
