//! Backups and restores, also while people talk; the server's own backups; and stores of other formats.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::harness::{Premises, contents};

/// A backup of a store in an older format.
fn backup_in_format(format: u64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/stores/format-{format}.backup"))
}

fn utf8(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn manifest(data: &Path) -> Value {
    let manifest = std::fs::read(data.join("manifest")).expect("there is a manifest");
    serde_json::from_slice(&manifest).expect("it is JSON")
}

#[tokio::test]
async fn a_backup_made_under_load_is_complete_and_restores_elsewhere() {
    let premises = Premises::new().with("gate.addresses_per_minute", "1000000");
    let server = Arc::new(premises.start().await);
    for number in 0..50 {
        server.say("lobby", "Ana", &format!("before {number}")).await;
    }
    let before = server.history("lobby").await;
    let is_done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = ["Bob", "Cleo"]
        .map(|name| {
            let (server, is_done) = (server.clone(), is_done.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    server.say("lobby", name, &format!("aria, number {number}?")).await;
                    if is_done.load(Ordering::SeqCst) {
                        return;
                    }
                }
            })
        })
        .into();

    let copied = premises.run(&["history", "backup", "copy.backup", "--json"]).await;

    is_done.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.await.expect("the writer is done");
    }
    let copied = copied.exits_with(0);
    let verified = premises.run(&["history", "verify", "copy.backup", "--json"]).await.exits_with(0);
    assert_eq!(verified.object()["entries"], copied.object()["entries"]);
    let mut elsewhere = premises;
    elsewhere.set("storage.path", "elsewhere");
    elsewhere.run(&["history", "restore", "copy.backup", "--json"]).await.exits_with(0);
    elsewhere.verified_events().await;
    let restored_server = elsewhere.start().await;
    let (original, copy) = (server.history("lobby").await, restored_server.history("lobby").await);
    assert_eq!(copy[..before.len()], before);
    let people =
        |history: &[(u64, String, String)]| -> Vec<_> { history.iter().filter(|(_, from, _)| from != "aria").cloned().collect() };
    let (original, copy) = (people(&original), people(&copy));
    assert_eq!(copy[..], original[..copy.len()]);
    restored_server.stop().await;
    Arc::into_inner(server).expect("the writers are gone").stop().await;
}

#[tokio::test]
async fn a_store_of_an_older_format_is_upgraded() {
    let premises = Premises::shipped();
    premises.run(&["history", "restore", &utf8(&backup_in_format(0))]).await.exits_with(0);
    let events = premises.verified_events().await;
    assert_eq!(manifest(&premises.data())["format"], 0);

    let server = premises.start().await;

    server.logs("the store was rewritten in this version's format").await;
    let lobby = server.history("lobby").await;
    let messages: Vec<_> = lobby.iter().take(4).map(|(_, from, text)| (from.as_str(), text.as_str())).collect();
    assert_eq!(
        messages,
        [
            ("Ana", "Good evening."),
            ("Ben", "Aria, which way to the harbour?"),
            ("aria", "I have a guess. But what would it mean for the harbour?"),
            ("Ana", "Thank you both."),
        ]
    );
    let decisions = server.get("/api/decisions?room=salon").await;
    assert!(!decisions["decisions"].as_array().expect("a list").is_empty());
    server.say("salon", "Ana", "Aria, are you still there?").await;
    server.stop().await;
    assert_eq!(manifest(&premises.data())["format"], 3);
    assert!(premises.verified_events().await > events);
    let backup = premises.path().join("new.backup");
    premises.run(&["history", "backup", &utf8(&backup)]).await.exits_with(0);
    let bytes = std::fs::read(&backup).expect("it can be read");
    assert!(!String::from_utf8_lossy(&bytes).contains("\"kind\":\"human\""));
}

#[tokio::test]
async fn a_store_whose_records_are_not_shortened_is_rewritten_to_a_smaller_one() {
    let premises = Premises::shipped();
    premises.run(&["history", "restore", &utf8(&backup_in_format(2))]).await.exits_with(0);
    assert_eq!(manifest(&premises.data())["format"], 2);

    let server = premises.start().await;

    server.logs("the store was rewritten in this version's format").await;
    let lobby = server.history("lobby").await;
    assert_eq!(lobby.last().map(|(seq, from, text)| (*seq, &**from, &**text)), Some((38, "aria", "I rolled 2d6: 6 + 6 = 12.")));
    let decisions = server.get("/api/decisions?room=lobby").await;
    assert!(decisions["decisions"].as_array().is_some_and(|decisions| decisions.len() > 3), "{decisions}");
    server.stop().await;
    assert_eq!(manifest(&premises.data())["format"], 3);
    let backup = premises.path().join("new.backup");
    premises.run(&["history", "backup", &utf8(&backup)]).await.exits_with(0);
    let bytes = |path: &Path| std::fs::metadata(path).expect("it is there").len();
    assert!(bytes(&backup) < bytes(&backup_in_format(2)) * 3 / 4, "{}", bytes(&backup));
}

/// The stored server was killed while bruno owed a reply in the salon, cleo waited for a new attempt at a question in the attic, and a message in
/// the lobby was unsettled.
#[tokio::test]
async fn unfinished_work_in_an_older_format_continues_after_the_upgrade() {
    let premises = Premises::shipped();
    premises.run(&["history", "restore", &utf8(&backup_in_format(1))]).await.exits_with(0);
    let events = premises.verified_events().await;
    assert_eq!(manifest(&premises.data())["format"], 1);

    let server = premises.start().await;
    for room in ["salon", "attic", "lobby"] {
        server.rest(room).await;
    }

    let salon = server.history("salon").await;
    let mut said = salon.iter().filter(|(seq, ..)| *seq > 78).map(|(_, from, text)| (from.as_str(), text.as_str()));
    let owed = said.next().expect("the reply that is owed");
    assert!(owed.0 == "bruno" && said.all(|later| later != owed), "it is said once: {salon:?}");
    for (room, last) in [("lobby", 21), ("attic", 7)] {
        let decisions = server.get(&format!("/api/decisions?room={room}")).await;
        let mut decided = decisions["decisions"].as_array().expect("a list").iter();
        assert!(decided.any(|decision| decision["seq"].as_u64() > Some(last)), "{room}: {decisions}");
    }
    let export = server.get("/api/export").await.to_string();
    assert!(export.contains("circuit_open") && !export.contains("left_alone"), "{export}");
    server.stop().await;
    assert_eq!(manifest(&premises.data())["format"], 3);
    assert!(premises.verified_events().await > events);
}

#[tokio::test]
async fn a_store_of_a_newer_format_is_refused_with_both_versions_and_a_remedy() {
    let premises = Premises::new();
    premises.start().await.stop().await;
    let mut newer = manifest(&premises.data());
    newer["format"] = 4.into();
    std::fs::write(premises.data().join("manifest"), newer.to_string()).expect("it can be written");

    let before = contents(&premises.data());

    for arguments in [&[][..], &["history", "verify"], &["history", "compact"], &["history", "export"]] {
        let refused = premises.run(arguments).await.exits_with(3);

        let says = |words: &str| refused.stderr.contains(words);
        assert!(says("was written in format 4, this version of tertulia reads up to 3"), "{refused:?}");
        assert!(says("start the version that wrote it") && says("history restore"), "{refused:?}");
    }
    assert!(contents(&premises.data()) == before, "a file was changed");
}

#[tokio::test]
async fn the_servers_backups_of_erased_words_are_replaced() {
    let premises = Premises::new().with("storage.backup_every", "1d");
    let server = premises.start().await;
    server.say("lobby", "Ana", "the words to forget").await;
    server.rest("lobby").await;
    let backups = premises.data().join("backups");
    std::fs::create_dir(&backups).expect("a new folder");
    let of_an_earlier_day = backups.join("tertulia-20260501T160954Z.backup");
    premises.run(&["history", "backup", &utf8(&premises.path().join("a.backup"))]).await.exits_with(0);
    std::fs::rename(premises.path().join("a.backup"), &of_an_earlier_day).expect("the same disk");
    server.stop().await;
    premises.run(&["history", "forget", "--guild", "home", "--person", "Ana", "--yes"]).await.exits_with(0);

    let mut soon = premises;
    soon.set("storage.backup_every", "1s");
    soon.set("storage.backups_kept", "100");
    let server = soon.start().await;
    server.logs("an old backup was deleted").await;
    server.stop().await;

    let words = b"the words to forget";
    for entry in std::fs::read_dir(&backups).expect("there are backups") {
        let path = entry.expect("an entry").path();
        let content = std::fs::read(&path).expect("it can be read");
        assert!(!content.windows(words.len()).any(|part| part == words), "{path:?}");
    }
    assert!(!of_an_earlier_day.exists());
}
