use super::offline::open_options;
use super::open_store::check_copies;
use super::*;
use crate::adapters::store::memory::MemoryStore;
use crate::adapters::store::transfer;
use crate::domain::id::Ward;
use crate::settings::Settings;

#[tokio::test]
async fn a_store_that_is_still_in_use_stays_open_and_works() {
    let folder = tempfile::tempdir().unwrap();
    let options = open_options();
    let mut storage: Storage = Settings::defaults().unwrap()["storage"].clone().try_into().unwrap();
    storage.path = folder.path().into();
    let store = open_engine(Engine::Sled, &storage, &options, &Identity::command()).unwrap();
    let used_by_a_backup = store.clone();

    let store = close(store).unwrap_err();

    store.store().acquire_ward(Ward(3)).await.unwrap();
    drop(used_by_a_backup);
    assert!(close(store).is_ok());
    assert!(open_engine(Engine::Sled, &storage, &options, &Identity::command()).is_ok());
}

#[tokio::test]
async fn a_store_that_was_moved_away_is_refused_and_an_empty_one_is_not() {
    let store = MemoryStore::new();

    let before = check_copies(&store).await;
    transfer::note_moved(&store).await.unwrap();
    let after = check_copies(&store).await.unwrap_err();

    assert!(before.is_ok());
    assert!(matches!(after, Ended::Store(_)) && after.to_string().contains("was moved to files"), "{after}");
}
