//! `tertulia history`, with and without a running server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;

use crate::harness::Premises;

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
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let verified = premises.run(&["history", "verify", "copy.backup", "--json"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(verified.object()["entries"], copied.object()["entries"]);
    let mut elsewhere = premises;
    elsewhere.set("storage.path", "elsewhere");
    let restored = elsewhere.run(&["history", "restore", "copy.backup", "--json"]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
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
async fn verify_asks_a_running_server_and_otherwise_opens_the_store() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "remember me").await;

    let online = premises.run(&["history", "verify", "--json"]).await;
    server.stop().await;
    let offline = premises.run(&["history", "verify", "--json"]).await;

    assert_eq!((online.code, offline.code), (Some(0), Some(0)), "{online:?} {offline:?}");
    assert_eq!((online.object()["sound"].clone(), offline.object()["sound"].clone()), (true.into(), true.into()));
    assert_eq!(online.object()["channels"], 1);
}

#[tokio::test]
async fn an_export_is_the_same_with_and_without_a_server() {
    let premises = Premises::new();
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("statement").await;

    let online = premises.run(&["history", "export", "--room", "lobby"]).await;
    server.stop().await;
    let offline = premises.run(&["history", "export"]).await;

    assert_eq!((online.code, offline.code), (Some(0), Some(0)), "{online:?} {offline:?}");
    assert_eq!(online.stdout, offline.stdout);
    assert!(online.stdout.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{online:?}");
    assert!(online.stdout.contains("how was your day?") && online.stdout.contains("direct_address"), "{online:?}");
}

#[tokio::test]
async fn a_room_is_exported_as_a_script_that_can_be_replayed() {
    let premises = Premises::new();
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("statement").await;

    let exported = premises.run(&["history", "export", "--room", "lobby", "--as", "replay", "--out", "night.json"]).await;
    let again = premises.run(&["history", "export", "--room", "lobby", "--as", "replay", "--out", "night.json"]).await;
    let replayed = premises.run(&["replay", "night.json", "--json"]).await;

    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("night.json exists already"), "{again:?}");
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(replayed.stdout.contains("\"decision\":\"YES\""), "{replayed:?}");
    assert_eq!((exported.stderr, replayed.stderr), (String::new(), String::new()));
    server.stop().await;
}

#[tokio::test]
async fn an_export_as_a_script_notes_where_it_differs_from_the_record() {
    let premises = Premises::new();
    let server = premises.start().await;
    let edited = server.say("lobby", "Ana", "hello").await;
    let deleted = server.say("lobby", "Ana", "never mind").await;
    let edit = serde_json::json!({ "text": "good evening" });
    server.ask(Method::PATCH, &format!("/api/rooms/lobby/messages/{edited}"), Some(edit)).await;
    server.ask(Method::DELETE, &format!("/api/rooms/lobby/messages/{deleted}"), None).await;
    let plan = serde_json::json!({ "guild": "home", "companions": ["aria", { "id": "zed", "external": true }] });
    server.ask(Method::PUT, "/api/rooms/lobby", Some(plan)).await;
    let export = ["history", "export", "--room", "lobby", "--as", "replay"];

    let online = premises.run(&export).await;
    server.stop().await;
    let offline = premises.run(&[&export[..], &["--out", "night.json"]].concat()).await;
    let replayed = premises.run(&["replay", "night.json"]).await;

    for result in [online, offline, replayed] {
        assert_eq!(result.code, Some(0), "{result:?}");
        let counted: Vec<_> =
            result.stderr.lines().filter_map(|line| line.split_once(": a script")).map(|(counted, _)| counted).collect();
        let expected = ["note: 1 edited message", "note: 1 deleted message", "note: 0 votes of zed, an external companion"];
        assert_eq!(counted, expected, "{result:?}");
    }
}

#[tokio::test]
async fn an_export_of_an_unknown_room_is_refused_and_leaves_no_file() {
    let premises = Premises::new();
    let server = premises.start().await;

    let online = premises.run(&["history", "export", "--room", "cellar", "--out", "cellar.json"]).await;
    server.stop().await;
    let offline = premises.run(&["history", "export", "--room", "cellar", "--out", "cellar.json"]).await;

    for refused in [online, offline] {
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("there is no room cellar"), "{refused:?}");
    }
    let files =
        std::fs::read_dir(premises.path()).expect("a folder").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert_eq!(files.filter(|name| name.starts_with("cellar")).count(), 0);
}

#[tokio::test]
async fn the_server_file_of_a_killed_server_is_ignored() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.kill().await;
    assert!(premises.data().join("server.json").exists());

    let verified = premises.run(&["history", "verify", "--json"]).await;

    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[tokio::test]
async fn commands_that_need_the_store_alone_are_refused_while_a_server_runs() {
    let premises = Premises::new();
    let server = premises.start().await;

    let compacted = premises.run(&["history", "compact"]).await;
    let restored = premises.run(&["history", "restore", "copy"]).await;

    for refused in [compacted, restored] {
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains(&server.url) && refused.stderr.contains("stop it first"), "{refused:?}");
    }
    server.stop().await;
    let compacted = premises.run(&["history", "compact", "--json"]).await;
    assert_eq!(compacted.code, Some(0), "{compacted:?}");
    assert_eq!(premises.run(&["history", "verify"]).await.code, Some(0));
}

#[tokio::test]
async fn a_person_can_be_forgotten_with_and_without_a_server() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "nobody should remember this").await;
    server.say("lobby", "Bob", "nor this").await;
    let forget = |person: &'static str| ["history", "forget", "--guild", "home", "--person", person, "--yes", "--json"];

    let online = premises.run(&forget("Ana")).await;
    server.stop().await;
    let offline = premises.run(&forget("Bob")).await;

    assert_eq!((online.code, offline.code), (Some(0), Some(0)), "{online:?} {offline:?}");
    assert_eq!((online.object()["messages"].clone(), offline.object()["messages"].clone()), (1.into(), 1.into()));
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, []);
    server.stop().await;
}

#[tokio::test]
async fn forgetting_a_person_needs_confirmation() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "still here").await;

    let unasked = premises.run(&["history", "forget", "--guild", "home", "--person", "Ana"]).await;

    assert_eq!(unasked.code, Some(2), "{unasked:?}");
    assert!(unasked.stderr.contains("--yes"), "{unasked:?}");
    assert_eq!(server.history("lobby").await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn commands_authenticate_with_the_token_in_the_settings() {
    let mut premises =
        Premises::new().with("server.listen", "0.0.0.0:0").with("server.admin_token", "correct-horse-battery-staple");
    let server = premises.start().await;

    let admitted = premises.run(&["history", "backup", "copy.backup"]).await;
    premises.set("server.admin_token", "something-else-altogether");
    let rejected = premises.run(&["history", "backup", "another.backup"]).await;

    assert_eq!(admitted.code, Some(0), "{admitted:?}");
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("TERTULIA__SERVER__ADMIN_TOKEN"), "{rejected:?}");
    server.stop().await;
}

#[tokio::test]
async fn reading_commands_create_no_store() {
    let premises = Premises::new();

    for command in [&["verify"][..], &["compact"], &["backup", "copy.backup"], &["export"]] {
        let refused = premises.run(&[&["history"], command].concat()).await;
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains("there is no store in data"), "{refused:?}");
    }
    assert!(!premises.data().exists());
}
