//! Deleted words leave the store's file without anybody compacting it by hand.

use std::path::Path;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::keeping::{length, sound};
use crate::harness::{Lines, Premises, Server};

/// What nobody else says.
const SECRET: &str = "quixotic-zephyr-7f3a";

/// A server with a paused room in which this much is said around a message with the secret, which is deleted.
async fn after_a_deletion(premises: &Premises, around: u32) -> Server {
    let server = premises.start().await;
    let (status, _) = server.ask(Method::PATCH, "/api/rooms/lobby", Some(json!({ "paused": true }))).await;
    assert_eq!(status, StatusCode::OK);
    let words = "so much was said ".repeat(200);
    for number in 0..around {
        server.say("lobby", "Ana", &format!("{number}: {words}")).await;
    }
    let secret = server.say("lobby", "Ben", SECRET).await;
    server.say("lobby", "Ana", "and so on").await;
    let (status, body) = server.ask(Method::DELETE, &format!("/api/rooms/lobby/messages/{secret}"), None).await;
    assert!(status.is_success(), "{body}");
    server
}

/// The files below a folder that hold these bytes.
fn files_with(folder: &Path, words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with(&path, words));
        } else if std::fs::read(&path).expect("a file").windows(words.len()).any(|bytes| bytes == words.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn after_the_next_start_deleted_words_are_in_no_file_of_the_data_folder() {
    let premises = Premises::new();
    let server = after_a_deletion(&premises, 3).await;
    let history = server.history("lobby").await;
    server.stop().await;
    assert!(!files_with(&premises.data(), SECRET).is_empty(), "until then they are");

    let server = premises.start().await;

    server.logs("the store was compacted; deleted words are no longer in its file").await;
    assert_eq!(server.history("lobby").await, history);
    assert_eq!(files_with(&premises.data(), SECRET), [""; 0]);
    server.stop().await;
    let again = premises.start().await;
    assert!(again.told_of("compact").is_empty(), "nothing was erased since");
    again.stop().await;
}

#[tokio::test]
async fn with_0_days_deleted_words_stay_in_the_file_until_somebody_compacts_it() {
    let premises = Premises::new().with("storage.compact_after_days", "0");
    after_a_deletion(&premises, 3).await.stop().await;

    let server = premises.start().await;
    assert!(server.told_of("compact").is_empty());
    server.stop().await;
    assert!(!files_with(&premises.data(), SECRET).is_empty());

    let compacted = premises.run(&["history", "compact"]).await;
    assert_eq!(compacted.code, Some(0), "{compacted:?}");
    assert_eq!(files_with(&premises.data(), SECRET), [""; 0]);
}

#[tokio::test]
async fn a_server_that_is_told_to_compact_does_it_in_the_same_process_and_serves_again() {
    let premises = Premises::new();
    let mut server = after_a_deletion(&premises, 3).await;
    let history = server.history("lobby").await;
    let process = server.id();

    server.signal("USR2").await;
    server.logs("the store was compacted").await;
    server.logs_many(" ready address=", 2).await;

    // A free port is another one each time.
    let running: Value = serde_json::from_slice(&std::fs::read(premises.data().join("server.json")).unwrap()).unwrap();
    server.url = running["url"].as_str().expect("an address").to_owned();
    assert_eq!((server.id(), &running["pid"]), (process, &json!(process)));
    assert_eq!(server.history("lobby").await, history);
    assert_eq!(files_with(&premises.data(), SECRET), [""; 0]);
    let next = server.say("lobby", "Ana", "here again").await;
    assert_eq!(server.history("lobby").await.last().map(|(seq, ..)| *seq), Some(next));
    server.stop().await;
    sound(&premises).await;
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_right_after_it_was_told_to_compact_ends_well() {
    for phase in ["", "stopping to compact", "compacting the store", "the store was compacted"] {
        let premises = Premises::new();
        let server = after_a_deletion(&premises, 3).await;

        server.signal("USR2").await;
        server.logs(phase).await;
        server.signal("TERM").await;
        let (status, log) = server.ended().await;

        assert_eq!(status.code(), Some(0), "after {phase:?}: {log}");
        sound(&premises).await;
    }
}

#[tokio::test]
async fn a_start_that_is_killed_while_it_compacts_loses_nothing_and_the_next_one_compacts() {
    let premises = Premises::new();
    let server = after_a_deletion(&premises, 150).await;
    let history = server.history("lobby").await;
    server.stop().await;
    let events = sound(&premises).await;
    let (new, old) = (premises.data().join("store.new"), premises.data().join("store.old"));
    let marks: [&dyn Fn() -> bool; 4] =
        [&|| new.exists(), &|| length(&new.join("db")) > 0, &|| length(&new.join("db")) > 300_000, &|| old.exists()];
    let mut kills = 0;

    for is_seen in marks {
        let mut child = premises.command(&[]).spawn().expect("it can be started");
        let said = Lines::of(child.stdout.take().expect("piped"));
        // Where the compaction was quicker than whoever looks, nothing is left to compact.
        while !is_seen() && !said.text().contains("ready") {
            tokio::task::yield_now().await;
        }
        kills += u32::from(!said.text().contains("ready"));
        child.kill().await.expect("it runs");

        assert!(sound(&premises).await >= events);
    }

    assert!(kills > 0);
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, history);
    assert_eq!(files_with(&premises.data(), SECRET), [""; 0]);
    assert!(!new.exists() && !old.exists());
    server.stop().await;
}
