//! Backups, compactions and restores, also while people talk and when killed; and stores of other formats.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::harness::Premises;

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

/// Premises with a store of many messages, and the number of events that verify finds.
async fn with_many_messages() -> (Premises, u64) {
    let premises = Premises::new();
    let server = premises.start().await;
    let words = "so much was said ".repeat(200);
    for number in 0..150 {
        server.say("lobby", "Ana", &format!("{number}: {words}")).await;
    }
    server.stop().await;
    let events = verified_events(&premises).await;
    (premises, events)
}

/// Verifies the store, and returns its number of events.
pub(super) async fn verified_events(premises: &Premises) -> u64 {
    let verified = premises.run(&["history", "verify", "--json"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    verified.object()["events"].as_u64().expect("a number")
}

/// Kills a command as soon as `is_seen` is true of the disk. Returns false if the command ended first.
async fn killed_when(mut command: Command, is_seen: impl Fn() -> bool) -> bool {
    let mut child: Child = command.spawn().expect("it can be started");
    loop {
        let has_ended = child.try_wait().expect("its status").is_some();
        if has_ended {
            return false;
        }
        if is_seen() {
            child.start_kill().expect("it runs");
            let status = child.wait().await.expect("its status");
            return !status.success();
        }
        tokio::task::yield_now().await;
    }
}

pub(super) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[tokio::test]
async fn a_killed_compaction_leaves_a_complete_store() {
    let (premises, events) = with_many_messages().await;
    let (new, old) = (premises.data().join("store.new"), premises.data().join("store.old"));
    let marks: [&dyn Fn() -> bool; 4] =
        [&|| new.exists(), &|| length(&new.join("db")) > 0, &|| length(&new.join("db")) > 300_000, &|| old.exists()];
    let mut kills = 0;

    for is_seen in marks {
        kills += u32::from(killed_when(premises.command(&["history", "compact"]), is_seen).await);

        assert_eq!(verified_events(&premises).await, events);
    }

    assert!(kills > 0);
    let compacted = premises.run(&["history", "compact", "--json"]).await;
    assert_eq!(compacted.code, Some(0), "{compacted:?}");
    assert_eq!(verified_events(&premises).await, events);
    assert!(!new.exists() && !old.exists());
}

#[tokio::test]
async fn a_killed_backup_leaves_no_backup_and_harms_nothing() {
    let (premises, events) = with_many_messages().await;
    let backup = premises.path().join("evening.backup");
    let part = premises.path().join("evening.backup.part");

    let was_killed = killed_when(premises.command(&["history", "backup", &utf8(&backup)]), || part.exists()).await;

    assert_eq!(was_killed, !backup.exists());
    assert_eq!(verified_events(&premises).await, events);
    if was_killed {
        let verified = premises.run(&["history", "verify", &utf8(&part)]).await;
        assert!(verified.code == Some(0) || verified.stderr.contains("is not a backup"), "{verified:?}");
        let again = premises.run(&["history", "backup", &utf8(&backup)]).await;
        assert_eq!(again.code, Some(0), "{again:?}");
    }
    let verified = premises.run(&["history", "verify", &utf8(&backup), "--json"]).await;
    assert_eq!(verified.object()["events"], events);
    let parts = std::fs::read_dir(premises.path()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.as_encoded_bytes().ends_with(b".part")
    });
    assert_eq!(parts.count(), usize::from(was_killed), "the killed backup leaves its partial file, and nothing deletes it");
}

#[tokio::test]
async fn a_killed_restore_leaves_no_store_or_a_complete_one() {
    let (premises, events) = with_many_messages().await;
    let backup = premises.path().join("evening.backup");
    let backed_up = premises.run(&["history", "backup", &utf8(&backup)]).await;
    assert_eq!(backed_up.code, Some(0), "{backed_up:?}");
    let mut elsewhere = premises;
    let mut kills = 0;

    for (number, bytes) in [0, 300_000, u64::MAX].into_iter().enumerate() {
        let data = elsewhere.path().join(format!("data-{number}"));
        elsewhere.set("storage.path", &utf8(&data));
        let (new, store) = (data.join("store.new"), data.join("store"));
        let is_seen = || length(&new.join("db")) > bytes || store.exists() || bytes == 0 && new.exists();
        kills += u32::from(killed_when(elsewhere.command(&["history", "restore", &utf8(&backup)]), is_seen).await);

        if !store.exists() {
            let again = elsewhere.run(&["history", "restore", &utf8(&backup)]).await;
            assert_eq!(again.code, Some(0), "{again:?}");
        }
        assert_eq!(verified_events(&elsewhere).await, events);
        assert!(!new.exists());
    }
    assert!(kills > 0);
}

#[tokio::test]
async fn a_backup_made_while_people_talk_is_sound_and_can_be_served() {
    let mut premises = Premises::new();
    let server = premises.start().await;
    let backup = premises.path().join("evening.backup");
    for number in 0..20 {
        server.say("lobby", "Ana", &format!("before {number}")).await;
    }
    let talking = async {
        for number in 0..60 {
            server.say("lobby", "Ben", &format!("meanwhile {number}")).await;
        }
    };
    let arguments = ["history", "backup", &utf8(&backup), "--json"];
    let (copied, ()) = tokio::join!(premises.run(&arguments), talking);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let original = server.history("lobby").await;
    server.stop().await;

    premises.set("storage.path", &utf8(&premises.path().join("elsewhere")));
    let restored = premises.run(&["history", "restore", &utf8(&backup)]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    verified_events(&premises).await;

    let server = premises.start().await;
    let copy = server.history("lobby").await;
    let people =
        |history: &[(u64, String, String)]| -> Vec<_> { history.iter().filter(|(_, from, _)| from != "aria").cloned().collect() };
    let (original, copy) = (people(&original), people(&copy));
    assert!(copy.len() >= 20);
    assert_eq!(copy[..], original[..copy.len()]);
    server.stop().await;
}

#[tokio::test]
async fn a_store_of_an_older_format_is_upgraded() {
    let premises = Premises::shipped();
    let restored = premises.run(&["history", "restore", &utf8(&backup_in_format(0))]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let events = verified_events(&premises).await;
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
    assert_eq!(manifest(&premises.data())["format"], 2);
    assert!(verified_events(&premises).await > events);
    let backup = premises.path().join("new.backup");
    let backed_up = premises.run(&["history", "backup", &utf8(&backup)]).await;
    assert_eq!(backed_up.code, Some(0), "{backed_up:?}");
    let bytes = std::fs::read(&backup).expect("it can be read");
    assert!(!String::from_utf8_lossy(&bytes).contains("\"kind\":\"human\""));
}

/// The stored server was killed while bruno owed a reply in the salon, cleo waited for a new attempt at a question in the attic, and a message in
/// the lobby was unsettled.
#[tokio::test]
async fn unfinished_work_in_an_older_format_continues_after_the_upgrade() {
    let premises = Premises::shipped();
    let restored = premises.run(&["history", "restore", &utf8(&backup_in_format(1))]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let events = verified_events(&premises).await;
    assert_eq!(manifest(&premises.data())["format"], 1);

    let server = premises.start().await;
    for room in ["salon", "attic", "lobby"] {
        server.rest(room).await;
    }

    let salon = server.history("salon").await;
    let answers = salon.iter().filter(|(seq, from, _)| *seq > 78 && from == "bruno").count();
    assert_eq!(answers, 1, "{salon:?}");
    for (room, last) in [("lobby", 21), ("attic", 7)] {
        let decisions = server.get(&format!("/api/decisions?room={room}")).await;
        let mut decided = decisions["decisions"].as_array().expect("a list").iter();
        assert!(decided.any(|decision| decision["seq"].as_u64() > Some(last)), "{room}: {decisions}");
    }
    server.stop().await;
    assert_eq!(manifest(&premises.data())["format"], 2);
    assert!(verified_events(&premises).await > events);
}

#[tokio::test]
async fn a_store_of_a_newer_format_is_refused_with_both_versions_and_a_remedy() {
    let premises = Premises::new();
    premises.start().await.stop().await;
    let mut newer = manifest(&premises.data());
    newer["format"] = 3.into();
    std::fs::write(premises.data().join("manifest"), newer.to_string()).expect("it can be written");

    for arguments in [&[][..], &["history", "verify"], &["history", "compact"], &["history", "export"]] {
        let refused = premises.run(arguments).await;

        assert_eq!(refused.code, Some(3), "{refused:?}");
        let says = |words: &str| refused.stderr.contains(words);
        assert!(says("was written in format 3, this version of tertulia reads up to 2"), "{refused:?}");
        assert!(says("start the version that wrote it") && says("history restore"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_damaged_store_is_restored_from_the_newest_backup_of_the_server_by_the_command_that_it_names() {
    let premises = Premises::new().with("storage.backup_every", "1s").with("storage.backups_kept", "2");
    let server = premises.start().await;
    server.say("lobby", "Ana", "the words to keep").await;
    server.rest("lobby").await;
    let history = server.history("lobby").await;
    // The first of these may have begun before.
    let begun = server.log_lines_with(BACKED_UP).len();
    server.logs_many(BACKED_UP, begun + 3).await;
    server.stop().await;
    let (data, backups) = (premises.data(), premises.data().join("backups"));
    let kept = std::fs::read_dir(&backups).expect("there are backups").count();
    flip_a_bit(&data.join("store/db"));

    let refused = premises.run(&["serve"]).await;
    let aside = premises.path().join("before");
    std::fs::create_dir(&aside).expect("a new folder");
    for name in ["store", "manifest", "commits"] {
        std::fs::rename(data.join(name), aside.join(name)).expect("it is there");
    }
    let newest = refused.stderr.split("run `tertulia history restore ").nth(1).and_then(|rest| rest.split('`').next());
    let restored = premises.run(&["history", "restore", newest.expect("a command")]).await;

    assert_eq!((kept, refused.code), (2, Some(3)), "{refused:?}");
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, history);
    server.stop().await;
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
    let backup = premises.run(&["history", "backup", &utf8(&premises.path().join("a.backup"))]).await;
    assert_eq!(backup.code, Some(0), "{backup:?}");
    std::fs::rename(premises.path().join("a.backup"), &of_an_earlier_day).expect("the same disk");
    server.stop().await;
    let forgotten = premises.run(&["history", "forget", "--guild", "home", "--person", "Ana", "--yes"]).await;
    assert_eq!(forgotten.code, Some(0), "{forgotten:?}");

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

/// What the server logs when it has made a backup by itself.
const BACKED_UP: &str = "the store was backed up";

fn flip_a_bit(path: &Path) {
    let mut bytes = std::fs::read(path).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).expect("it can be written");
}
