//! Deleted words leave the store's file without a manual compaction.

use serde_json::{Value, json};

use crate::harness::{Premises, files_with};

/// A text that appears in no other message.
const SECRET: &str = "quixotic-zephyr-7f3a";

#[tokio::test]
async fn the_next_start_compacts_deleted_words_out_of_every_file() {
    let premises = Premises::new();
    let server = premises.start_after_a_deletion(3, SECRET).await;
    let history = server.history("lobby").await;
    server.stop().await;
    assert!(!files_with(&premises.data(), SECRET).is_empty(), "they are in the file until the next start");

    let server = premises.start().await;

    server.logs("the store was compacted; deleted words are no longer in its file").await;
    assert_eq!(server.history("lobby").await, history);
    assert_eq!(files_with(&premises.data(), SECRET), [""; 0]);
    server.stop().await;
    let again = premises.start().await;
    assert!(again.log_lines_with("compact").is_empty(), "nothing was erased since the last compaction");
    again.stop().await;
}

#[tokio::test]
async fn without_automatic_compaction_deleted_words_stay_until_an_operator_compacts() {
    let premises = Premises::new().with("storage.compact_after_days", "0");
    premises.start_after_a_deletion(3, SECRET).await.stop().await;

    let server = premises.start().await;
    assert!(server.log_lines_with("compact").is_empty());
    server.stop().await;
    assert!(!files_with(&premises.data(), SECRET).is_empty());

    premises.run(&["history", "compact"]).await.exits_with(0);
    assert_eq!(files_with(&premises.data(), SECRET), [""; 0]);
}

#[tokio::test]
async fn sigusr2_compacts_the_store_without_a_new_process() {
    let premises = Premises::new();
    let mut server = premises.start_after_a_deletion(3, SECRET).await;
    let history = server.history("lobby").await;
    let process = server.id();

    server.signal("USR2").await;
    server.logs("the store was compacted").await;
    server.logs_many(" ready address=", 2).await;

    // Port 0 gives another port after each restart.
    let running: Value = serde_json::from_slice(&std::fs::read(premises.data().join("server.json")).unwrap()).unwrap();
    server.url = running["url"].as_str().expect("an address").to_owned();
    assert_eq!((server.id(), &running["pid"]), (process, &json!(process)));
    assert_eq!(server.history("lobby").await, history);
    assert_eq!(files_with(&premises.data(), SECRET), [""; 0]);
    let next = server.say("lobby", "Ana", "here again").await;
    assert_eq!(server.history("lobby").await.last().map(|(seq, ..)| *seq), Some(next));
    server.stop().await;
    premises.verified_events().await;
}

#[tokio::test]
async fn sigterm_during_a_compaction_ends_the_server_cleanly() {
    for phase in ["", "stopping to compact", "compacting the store", "the store was compacted"] {
        let premises = Premises::new();
        let server = premises.start_after_a_deletion(3, SECRET).await;

        server.signal("USR2").await;
        server.logs(phase).await;
        server.signal("TERM").await;
        let (status, log) = server.ended().await;

        assert_eq!(status.code(), Some(0), "after {phase:?}: {log}");
        premises.verified_events().await;
    }
}
