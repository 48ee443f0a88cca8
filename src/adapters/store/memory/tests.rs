use std::sync::Arc;

use super::*;
use crate::conformance::{Subject, append, conformance, journal, taken};

conformance!(MemoryStore::new());

impl Subject for MemoryStore {
    fn store(&self) -> &dyn Store {
        self
    }

    fn reopen(&mut self) {
        MemoryStore::reopen(self);
    }
}

#[tokio::test]
async fn a_held_store_commits_one_group_on_request() {
    let store = Arc::new(MemoryStore::holding());
    let term = taken(&*store).await;
    let first = start_commit(&store, append(term, 0, ["one"])).await;
    let second = start_commit(&store, append(term, 1, ["two"])).await;

    assert!(store.commit_next());

    assert_eq!(first.await.unwrap(), Ok(vec![Ok(())]));
    assert!(!second.is_finished());
    assert_eq!(store.waiting(), 1);
    assert_eq!(journal(&*store).await, ["one"]);
}

#[tokio::test]
async fn releasing_commits_all_waiting_groups() {
    let store = Arc::new(MemoryStore::holding());
    let term = taken(&*store).await;
    let first = start_commit(&store, append(term, 0, ["one"])).await;

    store.release();
    let second = store.commit(vec![append(term, 1, ["two"])]).await;

    assert_eq!(first.await.unwrap(), Ok(vec![Ok(())]));
    assert_eq!(second, Ok(vec![Ok(())]));
    assert!(!store.commit_next());
}

#[tokio::test]
async fn a_group_whose_caller_is_gone_is_stored_all_the_same() {
    let store = Arc::new(MemoryStore::holding());
    let term = taken(&*store).await;
    let commit = start_commit(&store, append(term, 0, ["one"])).await;
    commit.abort();

    store.commit_next();

    assert_eq!(journal(&*store).await, ["one"]);
}

#[tokio::test]
async fn a_failed_store_rejects_writes_and_still_reads_until_it_is_reopened() {
    let store = MemoryStore::new();
    let term = taken(&store).await;
    store.commit(vec![append(term, 0, ["one"])]).await.unwrap();
    store.fail_next(Fault::Failed);

    let failing = store.commit(vec![append(term, 1, ["two"])]).await;
    let after = store.commit(vec![append(term, 1, ["two"])]).await;

    assert!(matches!(failing, Err(StoreError::Failed(_))));
    assert!(matches!(after, Err(StoreError::Failed(_))));
    assert!(matches!(store.acquire_ward(Ward(1)).await, Err(StoreError::Failed(_))));
    assert_eq!(journal(&store).await, ["one"]);

    store.reopen();
    let term = taken(&store).await;
    assert_eq!(store.commit(vec![append(term, 1, ["two"])]).await, Ok(vec![Ok(())]));
}

#[tokio::test]
async fn a_commit_with_an_unknown_outcome_stores_the_given_number_of_batches() {
    for (batches, expected) in [(0, vec![]), (1, vec!["one"]), (usize::MAX, vec!["one", "two"])] {
        let store = MemoryStore::new();
        let term = taken(&store).await;
        store.fail_next(Fault::Unknown { batches });

        let outcome = store.commit(vec![append(term, 0, ["one"]), append(term, 1, ["two"])]).await;

        assert!(matches!(outcome, Err(StoreError::Unknown(_))));
        assert_eq!(journal(&store).await, expected);
        assert_eq!(store.commit(vec![append(term, expected.len() as u64, ["more"])]).await, Ok(vec![Ok(())]));
    }
}

#[tokio::test]
async fn reopening_leaves_the_outcome_of_waiting_groups_unknown() {
    let store = Arc::new(MemoryStore::holding());
    let term = taken(&*store).await;
    let commit = start_commit(&store, append(term, 0, ["one"])).await;

    store.reopen();

    assert!(matches!(commit.await.unwrap(), Err(StoreError::Unknown(_))));
    assert!(journal(&*store).await.is_empty());
}

/// Starts a commit, and returns when it waits in the store.
async fn start_commit(store: &Arc<MemoryStore>, batch: Batch) -> tokio::task::JoinHandle<Outcome> {
    let before = store.waiting();
    let commit = tokio::spawn({
        let store = Arc::clone(store);
        async move { store.commit(vec![batch]).await }
    });
    while store.waiting() == before {
        tokio::task::yield_now().await;
    }
    commit
}
