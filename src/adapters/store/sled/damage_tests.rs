//! Tests of stores that lost records, have another manifest, or are locked or unwritable. (`tests/it/damage/` damages the files of stores.)

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::process::Command;

use super::facts::{identity_key, term_key};
use super::tests::{OnDisk, options};
use super::*;
use crate::conformance::{Subject, WARD, append, journal, put, taken, writes};
use crate::domain::id::Seq;
use crate::manifest::{self, Counts, FORMAT, Manifest};
use crate::ports::store::Append;
use crate::ports::store::key::ChannelNo;

#[tokio::test]
async fn a_store_with_less_than_its_manifest_says_is_refused_with_both_counts() {
    let subject = filled(10).await;
    let found = manifest(&subject).counts;
    let promised = Counts { events: found.events + 5, ..found };
    manifest::write(&subject.data(), &Manifest { counts: promised, ..manifest(&subject) }).unwrap();

    let refused = refused(&subject, &options());

    assert!(
        matches!(refused, OpenError::Lost { manifest, found: less, .. } if (manifest, less) == (promised, found)),
        "{refused}"
    );
    let text = refused.to_string();
    for part in ["15 events", "10 events", "tertulia history restore", "--accept-loss"] {
        assert!(text.contains(part), "{part} in: {text}");
    }
    SledStore::open(&subject.data(), &OpenOptions { accept_loss: true, ..options() }).unwrap();
    SledStore::open(&subject.data(), &options()).unwrap();
}

#[tokio::test]
async fn the_database_of_another_store_is_refused() {
    let subject = filled(10).await;
    manifest::write(&subject.data(), &Manifest { store: "another".into(), ..manifest(&subject) }).unwrap();

    let refused = refused(&subject, &options());

    assert!(matches!(refused, OpenError::Damaged(_)), "{refused}");
}

#[tokio::test]
async fn the_manifest_follows_a_file_that_sled_shortens_while_idle() {
    let mut subject = filled(20_000).await;
    subject.reopen();
    let promised = manifest(&subject).db_bytes;
    let shorter = promised - 6 * open::SEGMENT_BYTES / 64 * 64;

    File::options().write(true).open(db(&subject)).unwrap().set_len(shorter).unwrap();

    let began = tokio::time::Instant::now();
    while manifest(&subject).db_bytes > shorter {
        assert!(began.elapsed() < Duration::from_secs(60), "the manifest still says {promised}");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_sound_store_without_a_manifest_gets_a_new_one() {
    let mut subject = filled(10).await;
    let before = manifest(&subject);
    fs::remove_file(manifest::path(&subject.data())).unwrap();

    subject.reopen();

    assert_eq!(manifest(&subject).counts, before.counts);
    assert_eq!(manifest(&subject).store, before.store);
}

#[tokio::test]
async fn an_unsound_store_without_a_manifest_is_refused() {
    let subject = filled(10).await;
    fs::remove_file(manifest::path(&subject.data())).unwrap();
    raw(&subject, |db| db.remove(Key::event(WARD, ChannelNo(1), Seq(4)).as_bytes()).map(drop));

    let refused = refused(&subject, &options());

    assert!(matches!(refused, OpenError::Damaged(_)), "{refused}");
    assert!(refused.to_string().contains("the events 4 to 4 are missing"), "{refused}");
}

#[tokio::test]
async fn events_lost_in_an_accepted_loss_count_as_deleted_and_no_number_is_given_twice() {
    let mut subject = filled(10).await;
    raw(&subject, |db| {
        for seq in [2, 4, 9, 10] {
            db.remove(Key::event(WARD, ChannelNo(1), Seq(seq)).as_bytes())?;
        }
        db.remove(Key::head(WARD, ChannelNo(1)).as_bytes())?;
        db.insert(Key::event(WARD, ChannelNo(2), Seq(1)).as_bytes(), "beyond")?;
        Ok(())
    });
    let refused = refused(&subject, &options());
    assert!(refused.to_string().contains("channel 1 of ward 7 ends at event 0, not 10"), "{refused}");

    subject.store = Some(SledStore::open(&subject.data(), &OpenOptions { accept_loss: true, ..options() }).unwrap());

    let report = subject.open().verify((), |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    let term = taken(subject.store()).await;
    let other = Append { channel: ChannelNo(2), after: Seq(1), records: vec![b"next".to_vec()] };
    let group = vec![append(term, 10, ["next"]), Batch { append: Some(other), ..writes(term, []) }];
    assert_eq!(subject.store().commit(group).await.unwrap(), [Ok(()), Ok(())]);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_to_its_end_is_refused_at_every_attempt() {
    let mut subject = filled(10).await;
    subject.store = Some(SledStore::open(&subject.data(), &options()).unwrap());
    let term = taken(subject.store()).await;
    let text = "x".repeat(400_000);
    subject.store().commit(vec![append(term, 10, ["one", &text, "three"])]).await.unwrap();
    // As a killed process leaves it.
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in contents(&subject.data()) {
        let path = copy.path().join(path.strip_prefix(subject.data()).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::read_dir(copy.path().join("store/blobs")).unwrap().for_each(|blob| fs::remove_file(blob.unwrap().path()).unwrap());

    for _ in 0..3 {
        let refused = SledStore::open(copy.path(), &options()).err().expect("it opened");

        assert!(matches!(refused, OpenError::Damaged(_)), "{refused}");
    }
}

#[tokio::test]
async fn a_store_without_its_database_is_refused_also_if_a_loss_is_accepted() {
    for is_manifest_there in [true, false] {
        let subject = filled(10).await;
        fs::remove_file(db(&subject)).unwrap();
        if !is_manifest_there {
            fs::write(subject.data().join("manifest"), "torn").unwrap();
        }
        let before = contents(&subject.data());

        let refused = refused(&subject, &OpenOptions { accept_loss: true, ..options() });

        let message = refused.to_string();
        assert!(refused.is_damage() && message.contains("is missing") && message.contains("history restore"), "{message}");
        assert!(!message.contains("--accept-loss"), "{message}");
        assert_eq!(contents(&subject.data()), before);
    }
}

#[test]
fn a_database_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let db = open::config(&folder.path().join("store"), 1 << 20).open().unwrap();
    db.insert("something", "else").unwrap();
    drop(db);

    let refused = SledStore::open(folder.path(), &options()).err().unwrap();

    assert!(matches!(refused, OpenError::Damaged(_)), "{refused}");
}

#[tokio::test]
async fn a_newer_manifest_is_refused_and_nothing_is_changed() {
    let subject = filled(10).await;
    manifest::write(&subject.data(), &Manifest { format: FORMAT + 1, ..manifest(&subject) }).unwrap();
    let before = contents(&subject.data());

    let refused = refused(&subject, &OpenOptions { accept_loss: true, ..options() });

    assert!(matches!(refused, OpenError::NewerVersion { found, known: FORMAT, .. } if found == FORMAT + 1), "{refused}");
    assert_eq!(contents(&subject.data()), before);
}

#[tokio::test]
async fn a_newer_store_is_refused_and_its_records_are_not_changed() {
    let subject = filled(10).await;
    let newer = format!(r#"{{"format":{},"store":"0"}}"#, FORMAT + 1);
    raw(&subject, |db| db.insert(identity_key().as_bytes(), newer.as_bytes()).map(drop));

    let refused = refused(&subject, &OpenOptions { accept_loss: true, ..options() });

    assert!(matches!(refused, OpenError::NewerVersion { found, known: FORMAT, .. } if found == FORMAT + 1), "{refused}");
    raw(&subject, |db| {
        assert_eq!(db.get(identity_key().as_bytes())?.unwrap(), newer.as_bytes());
        assert_eq!(db.get(term_key().as_bytes())?.unwrap(), 1_u64.to_be_bytes());
        Ok(())
    });
}

#[test]
fn a_store_is_opened_once_at_a_time() {
    let subject = OnDisk::new();

    let refused = refused(&subject, &options());

    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains(&*subject.data().to_string_lossy()), "{refused}");
}

#[test]
fn a_database_locked_by_a_foreign_process_is_in_use() {
    let subject = OnDisk::new();
    fs::remove_file(subject.data().join("lock")).unwrap();

    let refused = refused(&subject, &OpenOptions { deadline: Duration::from_secs(3), ..options() });

    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
}

#[tokio::test]
async fn after_a_failed_write_reads_work_and_no_data_is_lost() {
    let folder = tempfile::tempdir().unwrap();

    let outcome = in_limited_process(folder.path());

    assert!(outcome.contains("failed as it should"), "{outcome}");
    let acknowledged: u64 = outcome.split("acknowledged ").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let store = SledStore::open(folder.path(), &options()).unwrap();
    let report = store.verify((), |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert!(report.events >= acknowledged, "{} of {acknowledged}", report.events);
}

#[tokio::test]
#[ignore = "run by the test above, in a process of its own"]
async fn a_store_is_filled_until_it_fails() {
    let Ok(data) = std::env::var("TERTULIA_TEST_DATA") else { return };
    let store = SledStore::open(Path::new(&data), &options()).unwrap();
    let term = taken(&store).await;
    let text = "x".repeat(10_000);
    let mut acknowledged = 0;
    let error = loop {
        match store.commit(vec![append(term, acknowledged, [&text])]).await {
            Ok(outcomes) => assert_eq!(outcomes, [Ok(())]),
            Err(error) => break error,
        }
        acknowledged += 1;
    };
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    let next = store.commit(vec![writes(term, [put("a", "1")])]).await;
    assert!(matches!(next, Err(StoreError::Failed(_))), "{next:?}");
    assert!(matches!(store.acquire_ward(WARD).await, Err(StoreError::Failed(_))));
    assert!(journal(&store).await.len() as u64 >= acknowledged);
    println!("failed as it should, acknowledged {acknowledged} : {error}");
}

/// A closed store with this many events in one channel, written in groups.
async fn filled(events: u64) -> OnDisk {
    let mut subject = OnDisk::new();
    let store = subject.store();
    let term = taken(store).await;
    for after in (0..events).step_by(500) {
        let records =
            (after..events.min(after + 500)).map(|number| format!("event {number} {}", "of some length ".repeat(8)).into());
        let append = Append { channel: ChannelNo(1), after: Seq(after), records: records.collect() };
        let outcomes = store.commit(vec![Batch { append: Some(append), ..writes(term, []) }]).await.unwrap();
        assert_eq!(outcomes, [Ok(())]);
    }
    subject.store = None;
    subject
}

fn refused(subject: &OnDisk, options: &OpenOptions) -> OpenError {
    SledStore::open(&subject.data(), options).err().expect("the store opened")
}

fn manifest(subject: &OnDisk) -> Manifest {
    manifest::read(&subject.data()).unwrap().unwrap()
}

fn db(subject: &OnDisk) -> PathBuf {
    subject.data().join("store/db")
}

/// Changes a closed store without any of its checks.
fn raw(subject: &OnDisk, work: impl FnOnce(&sled::Db) -> sled::Result<()>) {
    let folder = subject.data().join("store");
    files::finished(&folder).unwrap();
    let db = open::config(&folder, 1 << 20).open().unwrap();
    work(&db).unwrap();
    drop(db);
    let (db_bytes, sums) = files::closed(&folder).unwrap();
    if manifest::path(&subject.data()).exists() {
        let closed = Manifest { db_bytes, files: Some(sums), ..manifest(subject) };
        manifest::write(&subject.data(), &closed).unwrap();
    }
}

/// Every file under a folder with its content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let mut bytes = Vec::new();
            File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// Runs the test above in a process that may not write files of more than two mebibytes, and returns its output.
fn in_limited_process(data: &Path) -> String {
    let name = format!("{}::a_store_is_filled_until_it_fails", module_path!().split_once("::").unwrap().1);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 4096; trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let output = command.args(["--exact", &name, "--ignored", "--nocapture"]).env("TERTULIA_TEST_DATA", data).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}
