//! Files that commands and the API are told to write or to read: what is said of them when that cannot be done.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Premises, Ran};

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told_of_by_the_name_that_was_asked_for() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    std::fs::write(premises.path().join("plain"), "").expect("a file");
    let absent = premises.path().join("absent/monday.backup").display().to_string();

    let (status, body) = server.ask(Method::POST, "/api/backup", Some(json!({ "to": absent }))).await;
    let into_nothing = premises.run(&["history", "export", "--out", "absent/all.json"]).await;
    let into_a_file = premises.run(&["history", "export", "--out", "plain/all.json"]).await;
    let onto_a_folder = premises.run(&["history", "export", "--out", "data"]).await;
    let beside_a_file = premises.run(&["history", "backup", "plain/monday.backup"]).await;
    server.stop().await;

    let detail = body["detail"].as_str().unwrap_or_default();
    assert_eq!((status.as_u16(), &body["field"]), (422, &json!("to")), "{body}");
    assert!(detail.starts_with(&format!("{absent} cannot be written, there is no folder ")), "{body}");
    assert!(detail.ends_with("/absent: make it first"), "{body}");
    let absent = "absent/all.json cannot be written, there is no folder absent: make it first";
    assert_told(&into_nothing, 1, absent);
    assert_told(&into_a_file, 1, "plain/all.json cannot be written, plain is not a folder: name another");
    assert_told(&onto_a_folder, 1, "data is a folder: name a new file in it");
    assert_told(&beside_a_file, 1, "plain is not a folder: name another");
    for told in [into_nothing, into_a_file, onto_a_folder, beside_a_file] {
        assert!(!told.stderr.contains(".part") && !told.stderr.contains("os error"), "{told:?}");
    }
}

#[tokio::test]
async fn a_server_takes_a_backup_only_by_a_name_that_is_found_again_when_old_ones_are_cleared_away() {
    let premises = Premises::new();
    let server = premises.start().await;

    for name in ["monday.zip", "monday", "", "monday.backup/"] {
        let to = format!("{}/{name}", premises.path().display());
        let (status, body) = server.ask(Method::POST, "/api/backup", Some(json!({ "to": to }))).await;
        assert_eq!((status.as_u16(), &body["field"]), (422, &json!("to")), "{body}");
        assert!(body["detail"].as_str().is_some_and(|detail| detail.contains("which ends in .backup")), "{body}");
    }
    let to = premises.path().join("monday.backup").display().to_string();
    let (status, body) = server.ask(Method::POST, "/api/backup", Some(json!({ "to": to }))).await;
    server.stop().await;

    assert_eq!((status.as_u16(), &body["to"]), (200, &json!(to)), "{body}");
    let beside: Vec<_> = std::fs::read_dir(premises.path()).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert!(!beside.iter().any(|file| file.to_string_lossy().contains("zip")), "{beside:?}");
}

#[tokio::test]
async fn a_folder_in_the_place_of_a_backup_is_told_with_what_was_meant() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    server.stop().await;

    let of_a_store = premises.run(&["history", "verify", "data"]).await;
    let of_backups = premises.run(&["history", "verify", "."]).await;
    let to_restore = premises.run(&["history", "restore", "."]).await;
    let nothing = premises.run(&["history", "verify", "monday.backup", "--json"]).await;

    let alone =
        "data is a folder, and a backup is a file: it is a data folder; `tertulia history verify` without BACKUP reads the store";
    assert_told(&of_a_store, 2, alone);
    assert!(of_a_store.stderr.contains("set TERTULIA__STORAGE__PATH=data to read this one"), "{of_a_store:?}");
    for told in [&of_backups, &to_restore] {
        assert_told(told, 2, ". is a folder, and a backup is a file: name one of the backups in it");
    }
    assert_told(&nothing, 1, "there is no backup monday.backup: name a file that `tertulia history backup` made");
}

fn assert_told(told: &Ran, code: i32, words: &str) {
    assert_eq!((told.code, &*told.stdout), (Some(code), ""), "{told:?}");
    assert!(told.stderr.contains(words), "{told:?}");
}
