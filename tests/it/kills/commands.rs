//! Commands, and starts, that are killed at each phase of their work.

use std::path::Path;

use tokio::process::Command;

use crate::harness::{Lines, Premises, files_with};

const SECRET: &str = "quixotic-zephyr-7f3a";

/// One store goes through all of it: with many messages, and with a deleted one that the next start compacts out of the file.
#[tokio::test]
async fn a_killed_command_or_start_leaves_a_complete_store_and_no_half_of_anything() {
    let mut premises = Premises::new();
    let server = premises.start_after_a_deletion(150, SECRET).await;
    let history = server.history("lobby").await;
    server.stop().await;
    let events = premises.verified_events().await;
    let (new, old) = (premises.data().join("store.new"), premises.data().join("store.old"));
    let phases: [&dyn Fn() -> bool; 4] =
        [&|| new.exists(), &|| length(&new.join("db")) > 0, &|| length(&new.join("db")) > 300_000, &|| old.exists()];

    // Starts that compact. The first one that gets ready has compacted.
    let mut kills = 0;
    for is_seen in phases {
        kills += u32::from(killed_when(premises.command(&[]), is_seen).await);
        assert!(premises.verified_events().await >= events);
    }
    assert!(kills > 0);
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, history);
    assert_eq!(files_with(&premises.data(), SECRET), [""; 0]);
    assert!(!new.exists() && !old.exists());
    server.stop().await;

    // `history compact`.
    let events = premises.verified_events().await;
    let mut kills = 0;
    for is_seen in phases {
        kills += u32::from(killed_when(premises.command(&["history", "compact"]), is_seen).await);
        assert_eq!(premises.verified_events().await, events);
    }
    assert!(kills > 0);
    premises.run(&["history", "compact", "--json"]).await.exits_with(0);
    assert_eq!(premises.verified_events().await, events);
    assert!(!new.exists() && !old.exists());

    // `history backup`.
    let (backup, part) = (premises.path().join("a.backup"), premises.path().join("a.backup.part"));
    let was_killed = killed_when(premises.command(&["history", "backup", "a.backup"]), || part.exists()).await;
    assert_eq!(was_killed, !backup.exists());
    assert_eq!(premises.verified_events().await, events);
    if was_killed {
        let verified = premises.run(&["history", "verify", "a.backup.part"]).await;
        assert!(verified.code == Some(0) || verified.stderr.contains("is not a backup"), "{verified:?}");
        premises.run(&["history", "backup", "a.backup"]).await.exits_with(0);
    }
    assert_eq!(premises.run(&["history", "verify", "a.backup", "--json"]).await.object()["events"], events);
    let parts = std::fs::read_dir(premises.path()).expect("a folder").flatten();
    let parts = parts.filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "part")).count();
    assert_eq!(parts, usize::from(was_killed), "the killed backup leaves its partial file, and nothing deletes it");

    // `history restore`.
    let mut kills = 0;
    for (number, bytes) in [0, 300_000, u64::MAX].into_iter().enumerate() {
        let data = premises.path().join(format!("data-{number}"));
        premises.set("storage.path", data.to_str().expect("UTF-8"));
        let (new, store) = (data.join("store.new"), data.join("store"));
        let is_seen = || length(&new.join("db")) > bytes || store.exists() || bytes == 0 && new.exists();
        kills += u32::from(killed_when(premises.command(&["history", "restore", "a.backup"]), is_seen).await);
        if !store.exists() {
            premises.run(&["history", "restore", "a.backup"]).await.exits_with(0);
        }
        assert_eq!(premises.verified_events().await, events);
        assert!(!new.exists());
    }
    assert!(kills > 0);
}

/// Kills a command as soon as `is_seen` is true of the disk. Returns false if it ended, or the server got ready, before.
async fn killed_when(mut command: Command, is_seen: impl Fn() -> bool) -> bool {
    let mut child = command.spawn().expect("it can be started");
    let output = Lines::of(child.stdout.take().expect("piped"));
    loop {
        if child.try_wait().expect("its status").is_some() {
            return false;
        }
        let is_ready = output.text().contains("ready ");
        if is_ready || is_seen() {
            child.start_kill().expect("it runs");
            let status = child.wait().await.expect("its status");
            return !is_ready && !status.success();
        }
        tokio::task::yield_now().await;
    }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
