use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::*;
use crate::adapters::store::memory::MemoryStore;
use crate::domain::id::Ward;
use crate::ports::store::Batch;
use crate::server::address::running;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Starts at midnight and follows Tokio's time.
struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment::from_micros(self.0.elapsed().as_micros() as u64)
    }
}

async fn store_with(marks: &[Moment]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    for (ward, at) in (3..).map(Ward).zip(marks) {
        let term = store.acquire_ward(ward).await.unwrap();
        let batch =
            Batch { ward, term, append: None, fresh: Vec::new(), writes: erased::erasure_writes(ward, *at, true).collect() };
        store.commit(vec![batch]).await.unwrap()[0].clone().unwrap();
    }
    store
}

fn section<T: serde::de::DeserializeOwned>(name: &str) -> T {
    Settings::defaults().unwrap()[name].clone().try_into().unwrap()
}

fn storage() -> Storage {
    let mut storage: Storage = section("storage");
    (storage.compact_after_days, storage.compact_hour) = (2, 4);
    storage.path = "is-not-there".into();
    storage
}

#[tokio::test(start_paused = true)]
async fn a_running_server_compacts_in_the_configured_hour_once_deletions_are_old_enough() {
    let clock = Arc::new(TestClock(Instant::now()));
    let store = store_with(&[Moment::ZERO + 30 * HOUR, Moment::ZERO + 20 * HOUR]).await;

    due(&*store, &*clock, &storage(), || false, &AtomicBool::new(false)).await;

    // The older deletion was on the first day.
    assert_eq!(clock.now(), Moment::ZERO + (2 * 24 + 4) * HOUR);
}

#[tokio::test(start_paused = true)]
async fn without_deletions_or_with_automatic_compaction_off_a_server_does_not_compact() {
    let never = Storage { compact_after_days: 0, ..storage() };
    for (erased, storage) in [(&[][..], storage()), (&[Moment::ZERO], never)] {
        let (clock, store) = (TestClock(Instant::now()), store_with(erased).await);

        let waited = timeout(30 * 24 * HOUR, due(&*store, &clock, &storage, || false, &AtomicBool::new(false))).await;

        assert!(waited.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_server_waits_for_a_backup_before_it_compacts() {
    let clock = Arc::new(TestClock(Instant::now()));
    let store = store_with(&[Moment::ZERO]).await;
    let is_over = Moment::ZERO + (2 * 24 + 4) * HOUR + HOUR / 2;

    due(&*store, &*clock, &storage(), || clock.now() < is_over, &AtomicBool::new(false)).await;

    assert_eq!(clock.now(), is_over);
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_compaction_a_running_server_retries_on_the_next_day() {
    let clock = Arc::new(TestClock(Instant::now()));
    let store = store_with(&[Moment::ZERO]).await;
    sleep((2 * 24 + 4) * HOUR + HOUR / 4).await;

    due(&*store, &*clock, &storage(), || false, &AtomicBool::new(true)).await;

    assert_eq!(clock.now(), Moment::ZERO + (3 * 24 + 4) * HOUR);
}

#[tokio::test]
async fn during_a_compaction_the_server_is_alive_and_reports_why_it_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let mut server: Server = section("server");
    server.listen = "127.0.0.1:0".into();
    let copied = Arc::new(AtomicU64::new(4096));
    let asking = async {
        let url = running(folder.path()).expect("the address file exists").url;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut answers = Vec::new();
        for path in ["/healthz", "/readyz", "/api/rooms"] {
            let answer = http.get(format!("{url}{path}")).send().await.unwrap();
            answers.push((answer.status().as_u16(), answer.headers().contains_key("retry-after"), answer.text().await.unwrap()));
        }
        answers
    };

    let answers = while_closed(&server, folder.path(), Metrics::local(), copied, asking).await.unwrap();

    let [alive, ready, rooms] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((alive.0, ready.0, rooms.0), (200, 503, 503));
    let detail = "compacting: 4096 records are copied; the server is ready afterwards";
    let body: Value = serde_json::from_str(&ready.2).unwrap();
    assert_eq!(body["parts"], json!([{ "part": "store", "ready": false, "detail": detail }]));
    assert!(rooms.1 && rooms.2.contains("the store is compacting"), "{rooms:?}");
    assert_eq!(running(folder.path()), None);
}
