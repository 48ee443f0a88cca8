//! A backup that is damaged, and the backup that a damaged store is restored from.

use std::path::Path;

use crate::harness::Premises;

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
    premises.run(&["history", "restore", newest.expect("a command")]).await.exits_with(0);

    assert_eq!((kept, refused.code), (2, Some(3)), "{refused:?}");
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, history);
    server.stop().await;
}

#[tokio::test]
async fn a_damaged_backup_is_reported_as_json_too() {
    let premises = Premises::new().with_message("hello").await;
    premises.run(&["history", "backup", "monday.backup"]).await.exits_with(0);
    flip_a_bit(&premises.path().join("monday.backup"));

    let report = premises.run(&["history", "verify", "monday.backup", "--json"]).await.exits_with(1).object();

    assert_eq!((&report["sound"], &report["problem_count"]), (&false.into(), &1.into()), "{report}");
}

/// What the server logs when it has made a backup by itself.
const BACKED_UP: &str = "the store was backed up";

fn flip_a_bit(path: &Path) {
    let mut bytes = std::fs::read(path).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).expect("it can be written");
}
