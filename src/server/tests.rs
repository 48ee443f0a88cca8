use super::offline::open_options;
use super::*;
use crate::domain::id::Ward;
use crate::ports::store::Store as _;

#[tokio::test]
async fn a_store_that_is_still_in_use_stays_open_and_works() {
    let folder = tempfile::tempdir().unwrap();
    let options = open_options();
    let store = open(folder.path(), &options).unwrap();
    let used_by_a_backup = store.clone();

    let store = close(store).unwrap_err();

    store.take(Ward(3)).await.unwrap();
    drop(used_by_a_backup);
    assert!(close(store).is_ok());
    assert!(open(folder.path(), &options).is_ok());
}
