//! Tests of stores that lost records, and of what is rebuilt.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use super::damage_tests::contents;
use super::tests::{OnDisk, options};
use super::*;
use crate::adapters::store::conformance::{Subject, append, taken};
use crate::domain::conversation::Conversation;
use crate::domain::event::Recorded;
use crate::domain::id::Seq;
use crate::domain::message::Message;
use crate::journal::inspection::Inspection;
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::journal::record::{ChannelRecord, SnapshotRecord, encode, encode_event};
use crate::journal::salvaged::Salvaged;
use crate::ports::store::key::ChannelNo;
use crate::ports::store::{Append, Write};
use crate::samples::{self, lobby, message, person, recorded};

const NO: ChannelNo = ChannelNo(5);

#[tokio::test]
async fn a_journal_that_lost_its_end_continues_after_the_events_in_its_snapshot() {
    let (end, head) = (Key::event(lobby().ward(), NO, Seq(4)), Key::head(lobby().ward(), NO));
    for (salvaged, keys) in
        [(COPIED, vec![end.clone(), head.clone()]), (IN_PLACE, vec![end.clone(), head]), (IN_PLACE, vec![end])]
    {
        let mut subject = salvaged_without(&keys, 9, salvaged).await;
        let reader = Reader::new(subject.open());

        let before = reader.restore(&lobby()).await.unwrap();
        let term = subject.open().take(lobby().ward()).await.unwrap();
        let after = Append { channel: NO, after: before.head, records: vec![encode_event(&said(10, "4711"))] };
        let batch = Batch { ward: lobby().ward(), term, append: Some(after), fresh: Vec::new(), writes: Vec::new() };
        let outcomes = subject.open().commit(vec![batch]).await.unwrap();
        subject.store = None;
        subject.store = Some(SledStore::open(&subject.data(), &options()).unwrap());
        let reader = Reader::new(subject.open());
        let restored = reader.restore(&lobby()).await.unwrap();

        assert_eq!((before.head, before.events), (Seq(9), Vec::new()), "{keys:?}");
        assert_eq!(outcomes, [Ok(())]);
        assert_eq!(restored.events.iter().map(|recorded| recorded.seq).collect::<Vec<_>>(), [Seq(10)]);
        let head = reader.head(&lobby()).await.unwrap();
        assert_eq!((head.last, head.lowest), (Seq(10), Seq(10)), "the events in between count as deleted");
    }
}

#[tokio::test]
async fn the_index_of_message_ids_is_rebuilt_and_the_newest_message_of_an_id_wins() {
    for salvaged in [COPIED, IN_PLACE] {
        let keys = [key::message_id(lobby().ward(), NO, "id 2"), key::message_id(lobby().ward(), NO, "twice")];
        let subject = salvaged_without(&keys, 0, salvaged).await;
        let reader = Reader::new(subject.open());

        assert_eq!(reader.message(&lobby(), "id 2").await, Ok(Some(Seq(2))));
        assert_eq!(reader.message(&lobby(), "twice").await, Ok(Some(Seq(4))));
    }
}

#[tokio::test]
async fn the_name_and_the_head_of_a_channel_are_rebuilt_if_they_cannot_be_read() {
    let ward = lobby().ward();
    let keys = [key::channel_name(&lobby()), key::channel_of(ward, NO), Key::head(ward, NO), key::next_channel(ward)];
    for (salvaged, key) in [COPIED, IN_PLACE].into_iter().flat_map(|salvaged| keys.iter().map(move |key| (salvaged, key))) {
        let subject = salvaged_with(std::slice::from_ref(key), Some(b"\x01!"), 0, salvaged).await;
        let reader = Reader::new(subject.open());

        assert_eq!(reader.channel_key_of(ward, NO).await, Ok(Some(lobby())), "{key}");
        let head = reader.head(&lobby()).await.unwrap();
        assert_eq!((head.no, head.last), (Some(NO), Seq(4)), "{key}");
        assert_eq!(reader.next_channel(ward).await, Ok(6), "{key}");
        let report = subject.open().verify(Inspection, |_| {}).unwrap();
        assert!(report.is_sound(), "{report:?}");
    }
}

#[tokio::test]
async fn accepting_a_loss_reads_the_store_twice() {
    let subject = salvaged_without(&[], 0, IN_PLACE).await;
    let data = subject.data();
    drop(subject.store);
    let counted = Arc::<Counted>::default();

    let options = OpenOptions { accept_loss: true, ..options() };
    let store = SledStore::open_repaired(&data, &options, Counting(counted.clone())).unwrap();

    let records = store.verify((), |_| {}).unwrap().records;
    assert_eq!([&counted.observed, &counted.derived].map(|count| count.load(Ordering::Relaxed)), [records; 2]);
}

#[tokio::test]
async fn reading_a_store_reports_progress() {
    let mut subject = OnDisk::new();
    let term = subject.open().take(lobby().ward()).await.unwrap();
    let writes =
        (0..1_024).map(|number| Write::Put(key::person(&lobby().guild, &"ana".into(), NO, Seq(number << 8)), encode(&())));
    let batch = Batch { ward: lobby().ward(), term, append: None, fresh: Vec::new(), writes: writes.collect() };
    subject.open().commit(vec![batch]).await.unwrap()[0].clone().unwrap();
    subject.store = None;
    let opened = open::open(&subject.data(), &options(), LossPolicy::Refuse).unwrap();
    let (mut reports, mut facts) = ((0, 0), opened.facts);

    assert_eq!(repair::observe(&opened.db, &mut (), || reports.0 += 1), None);
    repair::repair(&opened.db, &(), &mut facts, || reports.1 += 1).unwrap();

    assert_eq!(reports, (4, 4));
}

#[tokio::test]
async fn a_store_damaged_after_a_crash_is_refused_at_every_attempt() {
    let subject = OnDisk::new();
    let term = taken(subject.store()).await;
    let text = "x".repeat(400_000);
    subject.store().commit(vec![append(term, 0, ["one", &text, "three"])]).await.unwrap();
    let folder = crashed_copy(&subject.data());
    fs::read_dir(folder.path().join("store/blobs")).unwrap().for_each(|blob| fs::remove_file(blob.unwrap().path()).unwrap());

    for _ in 0..3 {
        let refused = SledStore::open(folder.path(), &options()).err().expect("a damaged store opened");

        assert!(matches!(refused, OpenError::Damaged(_)), "{refused}");
    }
}

/// Counts how often it is called for a record.
struct Counting(Arc<Counted>);

#[derive(Default)]
struct Counted {
    observed: AtomicU64,
    derived: AtomicU64,
}

impl Reconstruct for Counting {
    fn observe(&mut self, _: &Key, _: &[u8]) {
        self.0.observed.fetch_add(1, Ordering::Relaxed);
    }

    fn missing_records(&self) -> Vec<(Key, Value)> {
        Vec::new()
    }

    fn outdated_counters(&self) -> Vec<(Key, Value)> {
        Vec::new()
    }

    fn derived_records(&self, _: &Key, _: &[u8]) -> Vec<(Key, Value)> {
        self.0.derived.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    }

    fn should_replace(&self, _: &Key, _: &[u8], _: &[u8]) -> bool {
        false
    }
}

/// A way to accept a loss.
type Accepted = fn(&Path);

/// The way of `history compact --accept-loss`.
const COPIED: Accepted = |data| {
    salvage(data, &options(), &mut Salvaged::default(), |_| {}).unwrap();
};

/// The way of `serve --accept-loss` where all pages can be read.
const IN_PLACE: Accepted = |data| {
    let options = OpenOptions { accept_loss: true, ..options() };
    drop(SledStore::open_repaired(data, &options, Salvaged::default()).unwrap());
};

/// A store with a journal of four events that lost these records, after the loss was accepted. Its snapshot says that `handled` was handled.
async fn salvaged_without(keys: &[Key], handled: u64, accepted: Accepted) -> OnDisk {
    salvaged_with(keys, None, handled, accepted).await
}

/// The same, where the records have this damaged value, if any.
async fn salvaged_with(keys: &[Key], damaged_value: Option<&[u8]>, handled: u64, accepted: Accepted) -> OnDisk {
    let mut subject = OnDisk::new();
    let ward = lobby().ward();
    let record = ChannelRecord { guild: lobby().guild, channel: lobby().channel };
    let snapshot = SnapshotRecord { handled: Seq(handled), made: Seq(handled), conversation: Conversation::default() };
    let events = [said(1, "id 1"), said(2, "id 2"), said(3, "twice"), said(4, "twice")];
    let mut writes = vec![
        Write::Put(key::channel_name(&lobby()), encode(&NO.0)),
        Write::Put(key::channel_of(ward, NO), encode(&record)),
        Write::Put(key::snapshot(ward, NO), encode(&snapshot)),
    ];
    // If its head is unknown, a journal may have reached the end of its indexed stretch.
    let indexed = Write::Put(key::person(&lobby().guild, &"ana".into(), NO, Seq(1)), encode(&()));
    writes.extend(damaged_value.map(|_| indexed));
    writes.extend(keys.iter().cloned().map(Write::Remove));
    let term = subject.open().take(ward).await.unwrap();
    let append = Append { channel: NO, after: Seq::NONE, records: events.iter().map(encode_event).collect() };
    let batch = Batch { ward, term, append: Some(append), fresh: Vec::new(), writes };
    assert_eq!(subject.open().commit(vec![batch]).await.unwrap(), [Ok(())]);
    subject.store = None;
    let folder = subject.data().join("store");
    files::finished(&folder).unwrap();
    let db = open::config(&folder, 1 << 20).open().unwrap();
    for key in keys {
        match damaged_value {
            Some(value) => db.insert(key.as_bytes(), value),
            None => db.remove(key.as_bytes()),
        }
        .unwrap();
    }
    drop(db);
    files::finished(&folder).unwrap();

    accepted(&subject.data());

    let store = SledStore::open(&subject.data(), &options()).unwrap();
    let report = store.verify((), |_| {}).unwrap();
    assert!(report.is_sound(), "{report:?}");
    subject.store = Some(store);
    subject
}

fn said(seq: u64, id: &str) -> Recorded {
    recorded(seq, samples::said(Message { id: Some(id.into()), ..message(person("ana"), "zebra") }))
}

/// A copy of a data folder as a killed process leaves it.
fn crashed_copy(data: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in contents(data) {
        let path = copy.path().join(path.strip_prefix(data).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    copy
}
