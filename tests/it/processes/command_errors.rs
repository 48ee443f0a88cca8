//! Commands, and requests for backups, with arguments that name something missing or are invalid: they print what exists, and what to do.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Premises, Ran, program, ran};

/// The commands that name what does not exist, with their exit codes and some words of their errors.
const UNKNOWN: [(&[&str], i32, &str); 15] = [
    (
        &["history", "forget", "--guild", "nope", "--person", "Ana", "--yes"],
        1,
        "there is no guild nope: no room belongs to it, and it never used anything; there is home",
    ),
    (
        &["history", "forget", "--guild", "home", "--person", "Anna", "--yes"],
        1,
        "no message of Anna in home is on record; did you mean Ana?",
    ),
    (&["history", "export", "--guild", "nope", "--person", "Ana"], 1, "there is no guild nope"),
    (&["history", "export", "--guild", "home", "--person", "ana"], 1, "did you mean Ana?"),
    (&["history", "export", "--room", "loby"], 1, "there is no room loby; did you mean lobby?"),
    (&["history", "export", "--room", "cellar", "--out", "cellar.json"], 1, "there is no room cellar"),
    (&["usage", "--guild", "hoem"], 1, "there is no guild hoem"),
    (&["why", "loby"], 1, "there is no room loby; did you mean lobby?"),
    (&["why", "cellar"], 1, "there is lobby"),
    (&["why", "lobby", "zoe"], 1, "present: aria"),
    (&["why", "lobby", "--message", "nothing"], 1, "/api/rooms/lobby/history lists its messages"),
    (&["why", "discord:1234", "aria"], 1, "there is no room discord:1234: add a companion to it on Discord"),
    (&["why", "lobby", "--at", "tomorrow"], 2, "write 2026-05-01T22:14:05Z"),
    (&["why", "the lobby"], 1, "there is no room the lobby"),
    (&["why", "discord:12:34"], 1, "there is no room discord:12:34"),
];

#[tokio::test]
async fn what_does_not_exist_is_reported_with_what_does_with_and_without_a_server() {
    let premises = Premises::new();
    let without_store = premises.run(&["usage"]).await;
    let server = premises.start().await;
    // Nothing is decided about the message, however long the commands take.
    server.done(Method::PATCH, "/api/rooms/lobby", Some(json!({ "paused": true }))).await;
    server.say("lobby", "Ana", "hello").await;

    let mut online = Vec::new();
    for (arguments, ..) in UNKNOWN {
        online.push(premises.run(arguments).await);
    }
    let invalid_time = premises.run(&["usage", "--from", "noon"]).await;
    let unused = premises.run(&["usage"]).await;
    server.stop().await;

    for (result, (arguments, code, words)) in online.into_iter().zip(UNKNOWN) {
        for result in [result, premises.run(arguments).await] {
            assert_refused(&result, code, words);
            assert!(arguments[0] == "why" || !result.stderr.contains("PUT"), "{result:?}");
        }
    }
    let files = std::fs::read_dir(premises.path()).expect("a folder").flatten().map(|entry| entry.file_name());
    assert_eq!(files.filter(|name| name.to_string_lossy().starts_with("cellar")).count(), 0);
    assert_refused(&without_store, 3, "there is no store in data");
    assert_refused(&invalid_time, 2, "--from \"noon\" is not a time");
    assert!(unused.stdout.ends_with("Nothing was used.\n"), "{unused:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_reported_by_the_name_that_was_given() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    std::fs::write(premises.path().join("plain"), "").expect("a file");
    let in_folder = |name: &str| format!("{}/{name}", premises.path().display());
    let absent = in_folder("absent/monday.backup");
    let asked = async |to: &str| server.ask(Method::POST, "/api/backup", Some(json!({ "to": to }))).await;

    for (to, beginning, end) in [
        (&*absent, &*format!("{absent} cannot be written, there is no folder "), "/absent: create it first"),
        ("monday.backup", "", "not an absolute path"),
        (&*in_folder("monday.zip"), "", "which ends in .backup"),
        (&*in_folder("monday"), "", "which ends in .backup"),
        (&*in_folder(""), "", "which ends in .backup"),
        (&*in_folder("monday.backup/"), "", "which ends in .backup"),
    ] {
        let (status, body) = asked(to).await;
        assert_eq!((status.as_u16(), &body["field"]), (422, &json!("to")), "{body}");
        assert!(body["detail"].as_str().is_some_and(|detail| detail.starts_with(beginning) && detail.contains(end)), "{body}");
    }
    let files: Vec<_> = std::fs::read_dir(premises.path()).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert!(!files.iter().any(|file| file.to_string_lossy().contains("monday")), "{files:?}");
    let (status, body) = asked(&*in_folder("monday.backup")).await;
    assert_eq!((status.as_u16(), &body["to"]), (200, &json!(in_folder("monday.backup"))), "{body}");
    for (command, words) in [
        (
            &["history", "export", "--out", "absent/all.json"][..],
            "absent/all.json cannot be written, there is no folder absent: create it first",
        ),
        (
            &["history", "export", "--out", "plain/all.json"],
            "plain/all.json cannot be written, plain is not a folder: name another",
        ),
        (&["history", "export", "--out", "data"], "data is a folder: name a new file in it"),
        (&["history", "backup", "plain/monday.backup"], "plain is not a folder: name another"),
    ] {
        let refused = premises.run(command).await;
        assert_refused(&refused, 1, words);
        assert!(!refused.stderr.contains(".part") && !refused.stderr.contains("os error"), "{refused:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn backups_are_written_read_and_restored_only_where_that_makes_sense() {
    let premises = Premises::new().with_message("hello").await;
    std::fs::create_dir(premises.path().join("copies")).expect("a folder");

    for (to, code) in [("missing/", 2), ("missing", 2), ("missing/monday.backup", 1), ("a.backup/", 2)] {
        let Ran { stderr, .. } = premises.run(&["history", "backup", to]).await.exits_with(code);
        assert!(stderr.contains("there is no folder") && stderr.contains("create it first"), "{stderr}");
    }
    assert!(!premises.path().join("missing").exists());
    for to in ["copies", "copies/", "monday.backup"] {
        premises.run(&["history", "backup", to]).await.exits_with(0);
    }
    let copies = std::fs::read_dir(premises.path().join("copies")).expect("the folder").count();
    assert_eq!(copies, 2, "two backups within a second have different names");
    for (command, code, words) in [
        (&["backup", "monday.backup"][..], 1, &["exists already: name another"][..]),
        (
            &["restore", "monday.backup"],
            1,
            &["there is a store in data already", "move `store` and `manifest`", "TERTULIA__STORAGE__PATH="],
        ),
        (
            &["verify", "data"],
            2,
            &[
                "data is a folder, and a backup is a file: it is a data folder; `tertulia history verify` without BACKUP reads the store",
                "set TERTULIA__STORAGE__PATH=data to read this one",
            ],
        ),
        (&["verify", "."], 2, &[". is a folder, and a backup is a file: name one of the backups in it"]),
        (&["restore", "."], 2, &[". is a folder, and a backup is a file: name one of the backups in it"]),
        (
            &["verify", "friday.backup", "--json"],
            1,
            &["there is no backup friday.backup: name a file that `tertulia history backup` made"],
        ),
        (&["compact", "--server", "http://127.0.0.1:1"], 2, &["--server"]),
    ] {
        let refused = premises.run(&[&["history"], command].concat()).await;
        words.iter().for_each(|words| assert_refused(&refused, code, words));
    }
    for command in ["compact", "restore", "verify", "expire"] {
        let help = premises.run(&["history", command, "--help"]).await.exits_with(0);
        assert!(!help.stdout.contains("--server"), "{command} works on the data folder: {help:?}");
    }
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
    premises.run(&["history", "compact"]).await.exits_with(0);
    let file = std::fs::read(premises.data().join("store/db")).expect("the store");
    assert!(!String::from_utf8_lossy(&file).contains("zebra"));
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, []);
    server.say("lobby", "Ana", "hello").await;
    server.stop().await;
    premises.run(&["history", "verify"]).await.exits_with(0);
}

#[tokio::test]
async fn too_low_a_limit_of_open_files_is_reported_without_a_panic() {
    for files in [5, 8, 10, 14, 20] {
        let premises = Premises::new();
        let limited = format!("ulimit -n {files}; exec \"$0\"");

        let refused = ran(premises.command_of(&["sh", "-c", &limited, &program()])).await.exits_with(1);

        assert!(refused.stderr.contains(&format!("tertulia: {files} files may be open at once (`ulimit -n`)")), "{refused:?}");
        assert!(!refused.stderr.contains("panicked"), "{refused:?}");
    }
}

fn assert_refused(refused: &Ran, code: i32, words: &str) {
    assert_eq!((refused.code, &*refused.stdout), (Some(code), ""), "{refused:?}");
    assert!(refused.stderr.contains(words), "{words:?} is missing: {refused:?}");
}
