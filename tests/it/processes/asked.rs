//! Commands that are asked for what is not there, or in a way that does not fit: they say what there is, and what to do.

use crate::harness::{Premises, Ran};

/// A store of which the server has stopped.
async fn furnished() -> Premises {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    server.stop().await;
    premises
}

#[tokio::test]
async fn who_and_what_is_not_there_is_told_with_what_is_by_the_server_and_without_it() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    let asked: [(&[&str], &str); 6] = [
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

    let mut served = Vec::new();
    for (arguments, _) in asked {
        served.push(premises.run(arguments).await);
    }
    server.stop().await;

    for (served, (arguments, words)) in served.into_iter().zip(asked) {
        for told in [served, premises.run(arguments).await] {
            assert_eq!((told.code, &*told.stdout), (Some(1), ""), "{told:?}");
            assert!(told.stderr.contains(words) && !told.stderr.contains("PUT"), "{told:?}");
        }
    }
}

#[tokio::test]
async fn a_backup_goes_into_a_folder_that_is_there_or_into_a_file_that_is_called_one() {
    let premises = furnished().await;
    std::fs::create_dir(premises.path().join("copies")).expect("a folder");
    let backup = async |to: &str| premises.run(&["history", "backup", to]).await;

    let refused =
        [backup("missing/").await, backup("missing").await, backup("missing/monday.backup").await, backup("a.backup/").await];
    let [first, second, third] = [backup("copies").await, backup("copies/").await, backup("monday.backup").await];
    let twice = backup("monday.backup").await;

    for (Ran { code, stderr, .. }, expected) in refused.iter().zip([2, 2, 1, 2]) {
        assert_eq!(*code, Some(expected), "{stderr}");
        assert!(stderr.contains("there is no folder") && stderr.contains("create it first"), "{stderr}");
    }
    assert!(!premises.path().join("missing").exists());
    assert_eq!([first.code, second.code, third.code], [Some(0); 3], "{first:?} {second:?} {third:?}");
    let made = std::fs::read_dir(premises.path().join("copies")).expect("the folder").count();
    assert_eq!(made, 2, "within a second, too");
    assert!(twice.code == Some(1) && twice.stderr.contains("exists already: name another"), "{twice:?}");
}

#[tokio::test]
async fn a_server_takes_no_backup_by_a_path_that_begins_where_it_was_started() {
    let premises = Premises::new();
    let server = premises.start().await;

    let to = serde_json::json!({ "to": "monday.backup" });
    let (status, body) = server.ask(reqwest::Method::POST, "/api/backup", Some(to)).await;

    assert_eq!(status, 422, "{body}");
    assert!(body["detail"].as_str().is_some_and(|detail| detail.contains("whole path")), "{body}");
    assert!(!premises.path().join("monday.backup").exists());
    server.stop().await;
}

#[tokio::test]
async fn a_restore_over_a_store_is_refused_with_what_to_do() {
    let premises = furnished().await;
    let copied = premises.run(&["history", "backup", "monday.backup"]).await;
    assert_eq!(copied.code, Some(0), "{copied:?}");

    let refused = premises.run(&["history", "restore", "monday.backup"]).await;

    assert_eq!(refused.code, Some(1), "{refused:?}");
    let says = |words: &str| refused.stderr.contains(words);
    assert!(says("there is a store in data already") && says("move `store` and `manifest`") && says("TERTULIA__STORAGE__PATH="));
}

#[tokio::test]
async fn what_works_on_the_folder_itself_offers_no_server() {
    let premises = furnished().await;

    for command in ["compact", "restore", "verify", "expire"] {
        let help = premises.run(&["history", command, "--help"]).await;
        assert!(help.code == Some(0) && !help.stdout.contains("--server"), "{help:?}");
    }
    let refused = premises.run(&["history", "compact", "--server", "http://127.0.0.1:1"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[tokio::test]
async fn a_backup_that_is_damaged_is_told_as_json_too() {
    let premises = furnished().await;
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
async fn what_is_older_is_deleted_when_an_operator_wants_it() {
    let premises = Premises::new();
    let server = premises.start().await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "aria, a zebra?").await;
    // What nobody has dealt with yet would stay.
    watch.event("statement").await;
    server.rest("lobby").await;
    // Killed, so that the room never fell asleep.
    server.kill().await;

    let unset = premises.run(&["history", "expire", "--yes"]).await;
    let unasked = premises.run(&["history", "expire", "--older-than", "1d"]).await;
    let elsewhere = premises.run(&["history", "expire", "--guild", "hoem", "--everything", "--yes"]).await;
    let at_once = premises.run(&["history", "expire", "--older-than", "0d", "--yes"]).await;
    let everywhere = premises.run(&["history", "expire", "--everything", "--yes"]).await;
    let kept = premises.run(&["history", "expire", "--older-than", "1d", "--yes", "--json"]).await;
    let gone = premises.run(&["history", "expire", "--guild", "home", "--everything", "--yes", "--json"]).await;

    assert!(unset.code == Some(2) && unset.stderr.contains("storage.retention_days"), "{unset:?}");
    assert!(unasked.code == Some(2) && unasked.stderr.contains("--yes"), "{unasked:?}");
    assert!(at_once.code == Some(2) && at_once.stderr.contains("is not from 1d to 36500d"), "{at_once:?}");
    assert!(everywhere.code == Some(2) && everywhere.stderr.contains("--guild"), "{everywhere:?}");
    assert!(elsewhere.code == Some(1) && elsewhere.stderr.contains("did you mean home?"), "{elsewhere:?}");
    assert_eq!((kept.code, kept.object()["events"].as_u64()), (Some(0), Some(0)), "{kept:?}");
    assert!(gone.code == Some(0) && gone.object()["channels"] == 1 && gone.object()["failed"] == 0, "{gone:?}");
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
async fn too_few_open_files_are_told_and_no_panic() {
    for files in [5, 8, 10, 14, 20] {
        let premises = Premises::new();
        let limited = format!("ulimit -n {files}; exec {}", crate::harness::program());

        let refused = crate::harness::ran(premises.command_of(&["sh", "-c", &limited])).await;

        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(&format!("tertulia: {files} files may be open at once (`ulimit -n`)")), "{refused:?}");
        assert!(!refused.stderr.contains("panicked"), "{refused:?}");
    }
}
