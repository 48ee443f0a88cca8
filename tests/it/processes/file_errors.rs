//! Files that commands and the API cannot write or read: the error messages.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Premises, Ran};

#[tokio::test]
async fn an_unwritable_file_is_reported_by_the_name_that_was_given() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    std::fs::write(premises.path().join("plain"), "").expect("a file");
    let absent = premises.path().join("absent/monday.backup").display().to_string();

    let (status, body) = server.ask(Method::POST, "/api/backup", Some(json!({ "to": absent }))).await;
    let into_missing_folder = premises.run(&["history", "export", "--out", "absent/all.json"]).await;
    let into_a_file = premises.run(&["history", "export", "--out", "plain/all.json"]).await;
    let to_a_folder = premises.run(&["history", "export", "--out", "data"]).await;
    let beside_a_file = premises.run(&["history", "backup", "plain/monday.backup"]).await;
    server.stop().await;

    let detail = body["detail"].as_str().unwrap_or_default();
    assert_eq!((status.as_u16(), &body["field"]), (422, &json!("to")), "{body}");
    assert!(detail.starts_with(&format!("{absent} cannot be written, there is no folder ")), "{body}");
    assert!(detail.ends_with("/absent: create it first"), "{body}");
    let absent = "absent/all.json cannot be written, there is no folder absent: create it first";
    assert_refused(&into_missing_folder, 1, absent);
    assert_refused(&into_a_file, 1, "plain/all.json cannot be written, plain is not a folder: name another");
    assert_refused(&to_a_folder, 1, "data is a folder: name a new file in it");
    assert_refused(&beside_a_file, 1, "plain is not a folder: name another");
    for refused in [into_missing_folder, into_a_file, to_a_folder, beside_a_file] {
        assert!(!refused.stderr.contains(".part") && !refused.stderr.contains("os error"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_server_rejects_a_backup_name_without_the_backup_suffix() {
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
    let files: Vec<_> = std::fs::read_dir(premises.path()).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert!(!files.iter().any(|file| file.to_string_lossy().contains("zip")), "{files:?}");
}

#[tokio::test]
async fn a_folder_given_as_a_backup_is_reported_with_a_suggestion() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    server.stop().await;

    let data_folder = premises.run(&["history", "verify", "data"]).await;
    let other_folder = premises.run(&["history", "verify", "."]).await;
    let to_restore = premises.run(&["history", "restore", "."]).await;
    let missing = premises.run(&["history", "verify", "monday.backup", "--json"]).await;

    let hint =
        "data is a folder, and a backup is a file: it is a data folder; `tertulia history verify` without BACKUP reads the store";
    assert_refused(&data_folder, 2, hint);
    assert!(data_folder.stderr.contains("set TERTULIA__STORAGE__PATH=data to read this one"), "{data_folder:?}");
    for refused in [&other_folder, &to_restore] {
        assert_refused(refused, 2, ". is a folder, and a backup is a file: name one of the backups in it");
    }
    assert_refused(&missing, 1, "there is no backup monday.backup: name a file that `tertulia history backup` made");
}

fn assert_refused(refused: &Ran, code: i32, words: &str) {
    assert_eq!((refused.code, &*refused.stdout), (Some(code), ""), "{refused:?}");
    assert!(refused.stderr.contains(words), "{refused:?}");
}
