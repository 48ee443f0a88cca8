//! A server that cannot start explains why, exits with the code for this kind of error, and changes nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::net::TcpListener;

use crate::harness::{Premises, Ran};

#[tokio::test]
async fn a_second_server_on_one_folder_is_refused() {
    let premises = Premises::new();
    let server = premises.start().await;

    let second = premises.run(&[]).await;

    assert_refused(&second, 3, "data is in use by another server");
    server.say("lobby", "Ana", "the first one is not disturbed").await;
    server.stop().await;
}

#[tokio::test]
async fn a_truncated_store_is_refused_untouched() {
    let premises = with_stored_message().await;
    let db = premises.data().join("store/db");
    let bytes = fs::metadata(&db).expect("it is there").len();
    File::options().write(true).open(&db).and_then(|file| file.set_len(bytes / 2)).expect("cut short");

    assert_refused_untouched(&premises, &format!("it had {bytes} bytes and has {} now", bytes / 2)).await;
}

#[tokio::test]
async fn a_deleted_store_is_refused_untouched() {
    let premises = with_stored_message().await;
    fs::remove_file(premises.data().join("store/db")).expect("deleted");

    assert_refused_untouched(&premises, "bytes and has 0 now").await;
}

#[tokio::test]
async fn an_unreadable_manifest_is_refused_untouched() {
    let premises = with_stored_message().await;
    fs::write(premises.data().join("manifest"), [0; 64]).expect("written");

    assert_refused_untouched(&premises, "its manifest cannot be read").await;
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused_untouched() {
    let premises = with_stored_message().await;
    let path = premises.data().join("manifest");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    manifest["format"] = 1_000.into();
    fs::write(&path, manifest.to_string()).expect("written");

    assert_refused_untouched(&premises, "was written in format 1000, this version of tertulia reads up to").await;
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let premises = Premises::new().with("server.listen", &address);

    let refused = premises.run(&[]).await;

    assert_refused(&refused, 1, &format!("{address} is in use by another program"));
}

#[tokio::test]
async fn invalid_settings_are_refused_before_anything_is_created() {
    let premises = Premises::new().with("gate.max_buffer", "plenty");

    let refused = premises.run(&[]).await;

    assert_refused(&refused, 2, "TERTULIA__GATE__MAX_BUFFER");
    assert!(!premises.data().exists());
}

#[tokio::test]
async fn a_server_that_others_can_reach_needs_a_token() {
    let premises = Premises::new().with("server.listen", "0.0.0.0:0");

    let refused = premises.run(&[]).await;

    assert_refused(&refused, 2, "TERTULIA__SERVER__ADMIN_TOKEN");
    assert!(!premises.data().exists());
}

/// A stopped server whose store has a message.
async fn with_stored_message() -> Premises {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "I was here").await;
    server.stop().await;
    premises
}

async fn assert_refused_untouched(premises: &Premises, reason: &str) {
    let before = contents(&premises.data());

    let refused = premises.run(&[]).await;

    assert_refused(&refused, 3, reason);
    assert!(refused.stderr.contains("restore") || refused.stderr.contains("newer"), "no remedy is named: {refused:?}");
    assert_eq!(contents(&premises.data()).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(contents(&premises.data()) == before, "a file was changed");
}

fn assert_refused(refused: &Ran, code: i32, reason: &str) {
    assert_eq!(refused.code, Some(code), "{refused:?}");
    assert!(refused.stderr.contains(reason), "{reason:?} is missing: {refused:?}");
    assert!(!refused.stdout.contains("ready"), "{refused:?}");
}

/// Every file under a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    files
}
