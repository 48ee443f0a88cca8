//! Commands with arguments that name something missing or are invalid: they print what exists, and what to do.

use crate::harness::{Premises, Ran};

/// A stopped server whose store has a message.
async fn with_stored_message() -> Premises {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    server.stop().await;
    premises
}

#[tokio::test]
async fn an_unknown_guild_person_or_room_is_reported_with_and_without_a_server() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    let commands: [(&[&str], &str); 6] = [
        (
            &["history", "forget", "--guild", "nope", "--person", "Ana", "--yes"],
            "there is no guild nope: no room belongs to it, and it never used anything; there is home",
        ),
        (
            &["history", "forget", "--guild", "home", "--person", "Anna", "--yes"],
            "no message of Anna in home is on record; did you mean Ana?",
        ),
        (&["history", "export", "--guild", "nope", "--person", "Ana"], "there is no guild nope"),
        (&["history", "export", "--guild", "home", "--person", "ana"], "did you mean Ana?"),
        (&["history", "export", "--room", "loby"], "there is no room loby; did you mean lobby?"),
        (&["why", "loby"], "there is no room loby; did you mean lobby?"),
    ];

    let mut online = Vec::new();
    for (arguments, _) in commands {
        online.push(premises.run(arguments).await);
    }
    server.stop().await;

    for (result, (arguments, words)) in online.into_iter().zip(commands) {
        for result in [result, premises.run(arguments).await] {
            assert_eq!((result.code, &*result.stdout), (Some(1), ""), "{result:?}");
            assert!(result.stderr.contains(words) && !result.stderr.contains("PUT"), "{result:?}");
        }
    }
}

#[tokio::test]
async fn a_backup_is_written_to_an_existing_folder_or_to_a_new_backup_file() {
    let premises = with_stored_message().await;
    std::fs::create_dir(premises.path().join("copies")).expect("a folder");
    let backup = async |to: &str| premises.run(&["history", "backup", to]).await;

    let refused =
        [backup("missing/").await, backup("missing").await, backup("missing/monday.backup").await, backup("a.backup/").await];
    let [first, second, third] = [backup("copies").await, backup("copies/").await, backup("monday.backup").await];
    let again = backup("monday.backup").await;

    for (Ran { code, stderr, .. }, expected) in refused.iter().zip([2, 2, 1, 2]) {
        assert_eq!(*code, Some(expected), "{stderr}");
        assert!(stderr.contains("there is no folder") && stderr.contains("create it first"), "{stderr}");
    }
    assert!(!premises.path().join("missing").exists());
    assert_eq!([first.code, second.code, third.code], [Some(0); 3], "{first:?} {second:?} {third:?}");
    let copies = std::fs::read_dir(premises.path().join("copies")).expect("the folder").count();
    assert_eq!(copies, 2, "two backups within a second have different names");
    assert!(again.code == Some(1) && again.stderr.contains("exists already: name another"), "{again:?}");
}

#[tokio::test]
async fn a_server_rejects_a_relative_backup_path() {
    let premises = Premises::new();
    let server = premises.start().await;

    let to = serde_json::json!({ "to": "monday.backup" });
    let (status, body) = server.ask(reqwest::Method::POST, "/api/backup", Some(to)).await;

    assert_eq!(status, 422, "{body}");
    assert!(body["detail"].as_str().is_some_and(|detail| detail.contains("not an absolute path")), "{body}");
    assert!(!premises.path().join("monday.backup").exists());
    server.stop().await;
}

#[tokio::test]
async fn a_restore_over_a_store_is_refused_with_instructions() {
    let premises = with_stored_message().await;
    let copied = premises.run(&["history", "backup", "monday.backup"]).await;
    assert_eq!(copied.code, Some(0), "{copied:?}");

    let refused = premises.run(&["history", "restore", "monday.backup"]).await;

    assert_eq!(refused.code, Some(1), "{refused:?}");
    let says = |words: &str| refused.stderr.contains(words);
    assert!(says("there is a store in data already") && says("move `store` and `manifest`") && says("TERTULIA__STORAGE__PATH="));
}

#[tokio::test]
async fn commands_on_the_data_folder_have_no_server_option() {
    let premises = with_stored_message().await;

    for command in ["compact", "restore", "verify", "expire"] {
        let help = premises.run(&["history", command, "--help"]).await;
        assert!(help.code == Some(0) && !help.stdout.contains("--server"), "{help:?}");
    }
    let refused = premises.run(&["history", "compact", "--server", "http://127.0.0.1:1"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[tokio::test]
async fn a_damaged_backup_is_reported_as_json_too() {
    let premises = with_stored_message().await;
    let copied = premises.run(&["history", "backup", "monday.backup"]).await;
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let path = premises.path().join("monday.backup");
    let mut bytes = std::fs::read(&path).expect("the backup");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("written");

    let verified = premises.run(&["history", "verify", "monday.backup", "--json"]).await;

    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert_eq!(verified.object()["sound"], false);
    assert_eq!(verified.object()["problem_count"], 1);
}

#[tokio::test]
async fn expire_deletes_older_events_when_an_operator_asks() {
    let premises = Premises::new();
    let server = premises.start().await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "aria, a zebra?").await;
    // Unsettled messages would not expire.
    watch.event("statement").await;
    server.rest("lobby").await;
    // Killed, so that the channel did not go to sleep first.
    server.kill().await;

    let without_age = premises.run(&["history", "expire", "--yes"]).await;
    let unconfirmed = premises.run(&["history", "expire", "--older-than", "1d"]).await;
    let unknown_guild = premises.run(&["history", "expire", "--guild", "hoem", "--everything", "--yes"]).await;
    let too_young = premises.run(&["history", "expire", "--older-than", "0d", "--yes"]).await;
    let all_guilds = premises.run(&["history", "expire", "--everything", "--yes"]).await;
    let nothing_old = premises.run(&["history", "expire", "--older-than", "1d", "--yes", "--json"]).await;
    let expired = premises.run(&["history", "expire", "--guild", "home", "--everything", "--yes", "--json"]).await;

    assert!(without_age.code == Some(2) && without_age.stderr.contains("storage.retention_days"), "{without_age:?}");
    assert!(unconfirmed.code == Some(2) && unconfirmed.stderr.contains("--yes"), "{unconfirmed:?}");
    assert!(too_young.code == Some(2) && too_young.stderr.contains("is not from 1d to 36500d"), "{too_young:?}");
    assert!(all_guilds.code == Some(2) && all_guilds.stderr.contains("--guild"), "{all_guilds:?}");
    assert!(unknown_guild.code == Some(1) && unknown_guild.stderr.contains("did you mean home?"), "{unknown_guild:?}");
    assert_eq!((nothing_old.code, nothing_old.object()["events"].as_u64()), (Some(0), Some(0)), "{nothing_old:?}");
    assert!(expired.code == Some(0) && expired.object()["channels"] == 1 && expired.object()["failed"] == 0, "{expired:?}");
    let export = premises.run(&["history", "export"]).await;
    assert!(export.code == Some(0) && !export.stdout.contains("zebra"), "{export:?}");
    let compacted = premises.run(&["history", "compact"]).await;
    assert_eq!(compacted.code, Some(0), "{compacted:?}");
    let file = std::fs::read(premises.data().join("store/db")).expect("the store");
    assert!(!String::from_utf8_lossy(&file).contains("zebra"));
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, []);
    server.say("lobby", "Ana", "hello").await;
    server.stop().await;
    let verified = premises.run(&["history", "verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[tokio::test]
async fn too_low_a_limit_of_open_files_is_reported_without_a_panic() {
    for files in [5, 8, 10, 14, 20] {
        let premises = Premises::new();
        let limited = format!("ulimit -n {files}; exec {}", crate::harness::program());

        let refused = crate::harness::ran(premises.command_of(&["sh", "-c", &limited])).await;

        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(&format!("tertulia: {files} files may be open at once (`ulimit -n`)")), "{refused:?}");
        assert!(!refused.stderr.contains("panicked"), "{refused:?}");
    }
}
