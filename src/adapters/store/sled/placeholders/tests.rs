use super::super::files;
use super::super::open::config;
use super::super::tests::{OnDisk, options};
use super::super::{SledStore, salvage};
use super::*;
use crate::adapters::store::OpenError;
use crate::adapters::store::conformance::{Subject, WARD, taken};
use crate::domain::id::Seq;
use crate::journal::salvaged::Salvaged;
use crate::ports::store::key::ChannelNo;
use crate::ports::store::{Append, Batch, Store};

const SMALL: u64 = 1_000;
const LARGE: u64 = 60;

#[tokio::test]
async fn a_missing_or_damaged_large_value_loses_no_more_than_its_page() {
    let damages: [fn(&Path); 3] = [
        |blob| fs::remove_file(blob).unwrap(),
        |blob| fs::write(blob, &fs::read(blob).unwrap()[..1000]).unwrap(),
        |blob| {
            let mut bytes = fs::read(blob).unwrap();
            bytes[1000] ^= 8;
            fs::write(blob, bytes).unwrap();
        },
    ];
    for (at, damage) in damages.into_iter().enumerate() {
        let subject = filled().await;
        damage(&newest_value(&subject));
        let refused = SledStore::open(&subject.data(), &options()).err();
        assert!(matches!(refused, Some(OpenError::Damaged(_))), "{at}: {refused:?}");

        let copied = salvage(&subject.data(), &options(), &mut Salvaged::default(), |_| {}).unwrap();

        assert_eq!(copied.holes, 1, "{at}");
        let store = SledStore::open(&subject.data(), &options()).unwrap();
        let report = store.verify((), |_| {}).unwrap();
        assert!(report.is_sound(), "{at}: {:?}", report.problems);
        assert!((SMALL + LARGE / 2..SMALL + LARGE).contains(&report.events), "{at}: {} events", report.events);
    }
}

#[tokio::test]
async fn a_placeholder_of_a_killed_process_is_deleted_at_the_next_opening() {
    let subject = filled().await;
    let value = newest_value(&subject);
    let purpose = fs::read(&value).unwrap()[4];
    fs::write(&value, placeholder(purpose)).unwrap();

    let refused = SledStore::open(&subject.data(), &options()).err();

    assert!(matches!(refused, Some(OpenError::Damaged(_))), "{refused:?}");
    assert!(!value.exists());
}

#[tokio::test]
async fn values_that_were_replaced_are_not_missed() {
    let subject = filled().await;
    let folder = layout::sled_folder(&subject.data());
    assert!(!log::broken_values(&folder).unwrap().is_empty(), "sled has deleted no value");
    files::remove_snapshots(&subject.data()).unwrap();

    let placeholders = Placeholders::put(&folder).unwrap();
    let db = config(&folder, 1 << 20).open().unwrap();
    drop(placeholders);

    assert!(db.iter().all(|entry| entry.is_ok()));
    assert!(db.len() as u64 > SMALL + LARGE);
}

/// A closed store with small events in one channel, and in another one events so large that sled writes a page of them to its own file.
async fn filled() -> OnDisk {
    let mut subject = OnDisk::new();
    let term = taken(subject.store()).await;
    let small = (0..SMALL).map(|number| format!("number {number}").into_bytes()).collect();
    let mut appends = vec![Append { channel: ChannelNo(1), after: Seq(0), records: small }];
    appends.extend((0..LARGE).map(|after| Append {
        channel: ChannelNo(2),
        after: Seq(after),
        records: vec![vec![after as u8; 60_000]],
    }));
    for append in appends {
        let batch = Batch { ward: WARD, term, append: Some(append), fresh: Vec::new(), writes: Vec::new() };
        assert_eq!(subject.open().commit(vec![batch]).await.unwrap(), [Ok(())]);
    }
    subject.store = None;
    files::finished(&layout::sled_folder(&subject.data())).unwrap();
    subject
}

/// The file of the newest large value, which has not been replaced.
fn newest_value(subject: &OnDisk) -> PathBuf {
    let values = fs::read_dir(layout::blobs(&layout::sled_folder(&subject.data()))).unwrap().map(|entry| entry.unwrap().path());
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok());
    values.max_by_key(number).expect("a large value")
}
