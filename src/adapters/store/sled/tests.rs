use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;
use crate::backup::Records;
use crate::conformance::{Subject, WARD, append, conformance, journal, key, put, taken, value, writes};
use crate::manifest::{self, Counts};
use crate::ports::store::Write;
use crate::telemetry::instruments::Instruments;
use crate::telemetry::metrics::Metrics;

conformance!(OnDisk::new());

/// A store in a folder of its own.
pub(super) struct OnDisk {
    pub(super) store: Option<SledStore>,
    pub(super) folder: TempDir,
}

impl OnDisk {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: Some(SledStore::open(&folder.path().join("data"), &options()).unwrap()), folder }
    }

    /// With a journal of these texts. Returns the term as well.
    async fn with<const N: usize>(texts: [&str; N]) -> (Self, Term) {
        let subject = Self::new();
        let term = taken(subject.store()).await;
        subject.store().commit(vec![append(term, 0, texts)]).await.unwrap();
        (subject, term)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(super) fn open(&self) -> &SledStore {
        self.store.as_ref().unwrap()
    }
}

impl Subject for OnDisk {
    fn store(&self) -> &dyn Store {
        self.open()
    }

    fn reopen(&mut self) {
        self.store = None;
        self.store = Some(SledStore::open(&self.data(), &options()).unwrap());
    }
}

pub(super) fn options() -> OpenOptions {
    OpenOptions {
        held: None,
        accept_loss: false,
        deadline: Duration::from_secs(60),
        cache_bytes: 16 << 20,
        new_id: 42,
        instruments: Instruments::noop(),
    }
}

#[test]
fn only_the_owner_can_read_a_new_data_folder() {
    let subject = OnDisk::new();

    assert_eq!(fs::metadata(subject.data()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn the_term_counts_openings() {
    let mut subject = OnDisk::new();
    let first = taken(subject.store()).await;
    subject.reopen();
    subject.reopen();

    let third = taken(subject.store()).await;

    assert_eq!((first, third), (Term(1), Term(3)));
    assert_eq!(subject.store().acquire_ward(Ward(200)).await.unwrap(), Term(3));
    assert_eq!(taken(subject.store()).await, Term(4));
}

#[tokio::test]
async fn a_closed_store_leaves_a_matching_manifest() {
    let mut subject = OnDisk::new();
    let term = taken(subject.store()).await;
    subject.store().commit(vec![append(term, 0, ["one", "two"]), append(term, 0, ["refused"])]).await.unwrap();
    subject.store().commit(vec![append(term, 0, ["refused"])]).await.unwrap();
    subject.store().commit(vec![append(term, 2, ["three"])]).await.unwrap();

    subject.store = None;

    let manifest = manifest::read(&subject.data()).unwrap().unwrap();
    assert_eq!(manifest.counts, Counts { groups: 2, events: 3 });
    assert_eq!(manifest.db_bytes, fs::metadata(subject.data().join("store/db")).unwrap().len());
    assert_eq!(manifest.store, format!("{:032x}", 42));
}

#[tokio::test]
async fn groups_and_the_disk_are_measured() {
    let mut subject = OnDisk::new();
    let metrics = Metrics::local();
    subject.store = None;
    let measured = OpenOptions { instruments: metrics.instruments(), ..options() };
    subject.store = Some(SledStore::open(&subject.data(), &measured).unwrap());

    let term = taken(subject.store()).await;
    for after in 0..3 {
        subject.store().commit(vec![append(term, after, ["one"])]).await.unwrap();
    }

    let total = |part: &str| metrics.total(&format!("tertulia_journal_commit_duration_seconds_{part}"), &[]);
    assert_eq!(total("count"), 3.0, "taking a ward is not a commit");
    assert!(total("sum") > 0.0);
    assert_eq!(disk_bytes(&subject.data()).unwrap(), subject.store.as_ref().unwrap().disk_bytes().unwrap());
    assert!(disk_free(&subject.data()).unwrap() > 0);
    assert!(disk_free(&subject.data().join("nowhere")).is_err());
}

#[tokio::test]
async fn the_manifest_is_updated_while_commits_continue() {
    let subject = OnDisk::new();
    let term = taken(subject.store()).await;
    let mut number = 0;

    // The manifest is written every second. This loop commits until it is.
    let counts = loop {
        subject.store().commit(vec![append(term, number, ["more"])]).await.unwrap();
        number += 1;
        let counts = manifest::read(&subject.data()).unwrap().unwrap().counts;
        if counts.groups > 0 {
            break counts;
        }
    };

    assert_eq!(counts.groups, counts.events);
    assert!(counts.events <= number);
}

#[tokio::test]
async fn many_concurrent_commits_are_all_acknowledged_and_stored() {
    let mut subject = OnDisk::new();
    let term = taken(subject.store()).await;

    let names: Vec<String> = (0..500).map(|number| format!("{number:03}")).collect();
    let commits = names.iter().map(|name| subject.store().commit(vec![writes(term, [put(name, name)])]));
    let outcomes = futures_util::future::join_all(commits).await;
    subject.reopen();

    assert!(outcomes.iter().all(|outcome| *outcome == Ok(vec![Ok(())])));
    let found = subject.store().scan(key("000"), key("999"), false, 1000).await.unwrap();
    assert_eq!(found.len(), names.len());
}

#[tokio::test]
async fn large_values_are_stored() {
    let mut subject = OnDisk::new();
    let term = taken(subject.store()).await;
    let large = "x".repeat(300_000);
    subject.store().commit(vec![writes(term, [put("large", &large)])]).await.unwrap();
    subject.store().commit(vec![writes(term, [put("small", "1")])]).await.unwrap();

    subject.reopen();

    assert_eq!(value(subject.store(), "large").await, Some(large));
    assert_eq!(value(subject.store(), "small").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_sound_store_is_verified_with_its_counts() {
    let (subject, _) = OnDisk::with(["one", "two"]).await;

    let report = subject.open().verify((), |_| {}).unwrap();

    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!((report.events, report.channels, report.counts), (2, 1, Counts { groups: 1, events: 2 }));
}

#[tokio::test]
async fn a_journal_with_a_gap_is_found() {
    let subject = OnDisk::new();
    let term = taken(subject.store()).await;
    let gap = Write::Remove(Key::event(WARD, crate::conformance::CHANNEL, crate::domain::id::Seq(2)));
    subject.store().commit(vec![append(term, 0, ["one", "two", "three"]), writes(term, [gap])]).await.unwrap();

    let report = subject.open().verify((), |_| {}).unwrap();

    assert_eq!(report.problem_count, 1, "{:?}", report.problems);
}

#[tokio::test]
async fn a_snapshot_shows_nothing_that_was_committed_after_it_began() {
    let names = ["a", "c", "e", "g", "i"];
    for passed in 0..=12 {
        let subject = OnDisk::new();
        let term = taken(subject.store()).await;
        subject.store().commit(vec![writes(term, names.map(|name| put(name, "old")))]).await.unwrap();
        let expected: Vec<_> = subject.open().snapshot().unwrap().collect();

        let mut snapshot = subject.open().snapshot().unwrap();
        let mut found: Vec<_> = snapshot.by_ref().take(passed).collect();
        for name in ["b", "d", "h", "j"] {
            subject.store().commit(vec![writes(term, [put(name, "new")])]).await.unwrap();
        }
        let changes =
            [Write::Remove(key("a")), put("c", "new"), Write::Remove(key("g")), put("g", "new"), Write::Remove(key("i"))];
        subject.store().commit(vec![writes(term, changes)]).await.unwrap();
        taken(subject.store()).await;
        found.extend(snapshot);

        assert_eq!(found, expected, "after {passed} entries");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_busy_store_holds_whole_batches_and_all_that_was_committed_before() {
    let subject = OnDisk::new();
    let target = subject.folder.path().join("backup");
    let term = taken(subject.store()).await;
    let commit = async |number: u64| {
        let text = number.to_string();
        // The keys are far apart, so that a snapshot is between them for some time.
        let batch = Batch { writes: vec![put("a", &text), put("z", &text)], ..append(term, number - 1, [&text]) };
        subject.store().commit(vec![batch]).await.unwrap();
    };
    for number in 1..=300 {
        commit(number).await;
    }

    let done = AtomicBool::new(false);
    let copied = std::thread::scope(|scope| {
        let backup = scope.spawn(|| {
            let copied = subject.open().backup(&target, |_| {});
            done.store(true, Ordering::Release);
            copied
        });
        tokio::task::block_in_place(|| {
            let mut number = 300;
            while !done.load(Ordering::Acquire) {
                number += 1;
                tokio::runtime::Handle::current().block_on(commit(number));
            }
        });
        backup.join().unwrap().unwrap()
    });

    let report = crate::backup::verify(&target, (), |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!(report.records, copied.records);
    assert!(report.events >= 300 && report.events == report.counts.events, "{report:?}");
    let records: Vec<_> = Records::open(&target).unwrap().map(Result::unwrap).collect();
    for name in ["a", "z"] {
        let expected = report.events.to_string().into_bytes();
        assert!(records.contains(&(key(name), expected)), "{name} is not from the last batch");
    }
}

#[tokio::test]
async fn a_backup_among_the_files_of_the_store_is_refused() {
    let (mut subject, _) = OnDisk::with(["one"]).await;

    for to in ["store/snap.00000000FFFFFFFF", "a.backup", "manifest.new", "verify-7.backup"] {
        let refused = subject.open().backup(&subject.data().join(to), |_| {}).unwrap_err();
        assert!(matches!(refused, CopyError::Among { .. }), "{to}: {refused}");
        assert!(!subject.data().join(to).exists());
    }

    subject.reopen();
    assert_eq!(journal(subject.store()).await, ["one"]);
}

#[tokio::test]
async fn a_restored_backup_has_the_content_of_the_store() {
    let subject = OnDisk::new();
    let backup = subject.folder.path().join("backup");
    let term = taken(subject.store()).await;
    subject.store().commit(vec![append(term, 0, ["one", "two"]), writes(term, [put("a", "1")])]).await.unwrap();
    subject.open().backup(&backup, |_| {}).unwrap();

    let elsewhere = subject.folder.path().join("elsewhere");
    let (copied, _) = restore(&backup, &elsewhere, &options(), (), |_| {}).unwrap();

    let restored = SledStore::open(&elsewhere, &options()).unwrap();
    assert_eq!(journal(&restored).await, ["one", "two"]);
    assert_eq!(value(&restored, "a").await.as_deref(), Some("1"));
    assert!(taken(&restored).await > term);
    assert!(restored.verify((), |_| {}).unwrap().is_sound());
    assert!(copied.bytes_after > 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_copies_ends_with_the_last_copy() {
    let mut subject = OnDisk::new();
    let store = subject.store.take().unwrap();
    let soon = std::time::Duration::from_secs(1);
    let (first, second) = (super::Copying::begin(&store.copies), super::Copying::begin(&store.copies));

    drop(first);
    let early = tokio::time::timeout(soon, store.wait_for_copies()).await;
    assert!(early.is_err() && store.is_copying());
    drop(second);
    store.wait_for_copies().await;

    let to = subject.folder.path().join("backup");
    store.backup(&to, |_| {}).unwrap();
    assert!(!store.is_copying());
}

#[tokio::test]
async fn a_running_store_can_be_backed_up_and_measured() {
    let mut subject = OnDisk::new();
    let to = subject.folder.path().join("backup");
    let maintenance: Arc<dyn StoreMaintenance> = Arc::new(subject.store.take().unwrap());

    let records = maintenance.clone().backup(&to).await.unwrap();
    let again = maintenance.clone().backup(&to).await;
    let TemporaryCopy { path: copy, records: copied, file } = maintenance.clone().copy_for(7).await.unwrap();
    let is_there = copy.exists();
    drop(file);

    assert_eq!(crate::backup::verify(&to, (), |_| {}).unwrap().records, records);
    assert!(matches!(again, Err(MaintenanceError::Exists(_))));
    assert_eq!((copied, &copy, is_there), (records, &subject.data().join("verify-7.backup"), true));
    assert!(!copy.exists(), "nobody reads it any more");
}

#[test]
fn a_backup_is_not_restored_over_a_store() {
    let mut subject = OnDisk::new();
    let backup = subject.folder.path().join("backup");
    subject.open().backup(&backup, |_| {}).unwrap();

    let running = restore(&backup, &subject.data(), &options(), (), |_| {}).unwrap_err();
    subject.store = None;
    let stopped = restore(&backup, &subject.data(), &options(), (), |_| {}).unwrap_err();

    assert!(matches!(running, CopyError::Open(OpenError::InUse { .. })), "{running}");
    assert!(matches!(stopped, CopyError::Occupied(_)), "{stopped}");
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let subject = OnDisk::new();
    let backup = subject.folder.path().join("backup");
    subject.open().backup(&backup, |_| {}).unwrap();
    let complete = fs::read(&backup).unwrap();
    fs::write(&backup, &complete[..complete.len() / 2]).unwrap();

    let elsewhere = subject.folder.path().join("elsewhere");
    let refused = restore(&backup, &elsewhere, &options(), (), |_| {}).unwrap_err();

    assert!(matches!(refused, CopyError::Unusable { .. }), "{refused}");
    assert!(!elsewhere.exists());
}

#[tokio::test]
async fn compacting_keeps_all_records_and_frees_space() {
    let mut subject = OnDisk::new();
    let term = taken(subject.store()).await;
    for round in 0..40 {
        let changes = (0..50).map(|number| put(&format!("{number:02}"), &format!("{round}").repeat(400))).collect();
        subject.store().commit(vec![Batch { writes: changes, ..writes(term, []) }]).await.unwrap();
    }
    subject.store().commit(vec![append(term, 0, ["one", "two"])]).await.unwrap();
    subject.store = None;

    let copied = compact(&subject.data(), &options(), (), |_| false, |_| {}).unwrap();

    subject.reopen();
    assert!(copied.bytes_after < copied.bytes_before, "{copied:?}");
    assert_eq!(journal(subject.store()).await, ["one", "two"]);
    assert_eq!(value(subject.store(), "07").await, Some("39".repeat(400)));
    assert!(taken(subject.store()).await > term);
}

#[test]
fn compacting_a_folder_without_a_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();

    let refused = compact(folder.path(), &options(), (), |_| false, |_| {}).unwrap_err();

    assert!(matches!(refused, CopyError::Store(StoreError::Failed(_))), "{refused}");
    assert!(!folder.path().join("store").exists());
}

#[test]
fn a_file_in_place_of_a_folder_is_an_error_and_is_not_changed() {
    for (name, has_store) in
        [("store.new", true), ("store.old", true), ("store.new", false), ("store.old", false), ("store", false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let (data, path) = (folder.path(), folder.path().join(name));
        if has_store {
            drop(SledStore::open(data, &options()).unwrap());
        }
        fs::write(&path, "precious").unwrap();

        let refused = SledStore::open(data, &options()).err().expect("the path is not a folder");

        assert!(matches!(&refused, OpenError::NoFolder { path: reported } if *reported == path), "{name} {has_store}: {refused}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }
}

#[tokio::test]
async fn an_interrupted_compaction_is_completed_or_reverted_by_the_next_opening() {
    type Interrupt = fn(&Path);
    let interrupted: [Interrupt; 4] = [
        // While the copy was made.
        |data| fs::create_dir(data.join("store.new")).unwrap(),
        // Between the two renames.
        |data| {
            fs::rename(data.join("store"), data.join("store.old")).unwrap();
            fs::create_dir(data.join("store.new")).unwrap();
        },
        |data| fs::rename(data.join("store"), data.join("store.old")).unwrap(),
        // Before the old one was removed.
        |data| fs::create_dir(data.join("store.old")).unwrap(),
    ];
    for interrupt in interrupted {
        let (mut subject, _) = OnDisk::with(["one", "two"]).await;
        subject.store = None;
        interrupt(&subject.data());

        subject.reopen();

        assert_eq!(journal(subject.store()).await, ["one", "two"]);
        assert!(!subject.data().join("store.old").exists());
        assert!(!subject.data().join("store.new").exists());
    }
}
