use super::offline::open_options;
use super::*;
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

    store.store().take(Ward(3)).await.unwrap();
    drop(used_by_a_backup);
    assert!(close(store).is_ok());
    assert!(open_engine(Engine::Sled, &storage, &options, &Identity::command()).is_ok());
}
