//! `tertulia history`, with a server and without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;

use crate::harness::Premises;

#[tokio::test]
async fn a_backup_made_under_load_is_whole_and_restores_elsewhere() {
    let premises = Premises::new().with("gate.addresses_per_minute", "1000000");
    let server = Arc::new(premises.start().await);
    for number in 0..50 {
        server.say("lobby", "Ana", &format!("before {number}")).await;
    }
    let before = server.history("lobby").await;
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = ["Bob", "Cleo"]
        .map(|name| {
            let (server, is_over) = (server.clone(), is_over.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    server.say("lobby", name, &format!("aria, number {number}?")).await;
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                }
            })
        })
        .into();

    let copied = premises.run(&["history", "backup", "copy.backup", "--json"]).await;

    is_over.store(true, Ordering::SeqCst);
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
    let twin = elsewhere.start().await;
    let (original, copy) = (server.history("lobby").await, twin.history("lobby").await);
    assert_eq!(copy[..before.len()], before);
    let people =
        |history: &[(u64, String, String)]| -> Vec<_> { history.iter().filter(|said| said.1 != "aria").cloned().collect() };
    let (original, copy) = (people(&original), people(&copy));
    assert_eq!(copy[..], original[..copy.len()]);
    twin.stop().await;
    Arc::into_inner(server).expect("the writers are gone").stop().await;
}

#[tokio::test]
async fn a_running_server_is_asked_and_the_store_is_opened_when_none_runs() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "remember me").await;

    let asked = premises.run(&["history", "verify", "--json"]).await;
    server.stop().await;
    let opened = premises.run(&["history", "verify", "--json"]).await;

    assert_eq!((asked.code, opened.code), (Some(0), Some(0)), "{asked:?} {opened:?}");
    assert_eq!((asked.object()["sound"].clone(), opened.object()["sound"].clone()), (true.into(), true.into()));
    assert_eq!(asked.object()["channels"], 1);
}

#[tokio::test]
async fn what_is_exported_is_the_same_with_a_server_and_without() {
    let premises = Premises::new();
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("statement").await;

    let asked = premises.run(&["history", "export", "--room", "lobby"]).await;
    server.stop().await;
    let opened = premises.run(&["history", "export"]).await;

    assert_eq!((asked.code, opened.code), (Some(0), Some(0)), "{asked:?} {opened:?}");
    assert_eq!(asked.stdout, opened.stdout);
    assert!(asked.stdout.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{asked:?}");
    assert!(asked.stdout.contains("how was your day?") && asked.stdout.contains("direct_address"), "{asked:?}");
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
async fn what_a_script_does_not_tell_as_it_was_is_said() {
    let premises = Premises::new();
    let server = premises.start().await;
    let kept = server.say("lobby", "Ana", "hello").await;
    let gone = server.say("lobby", "Ana", "never mind").await;
    let edit = serde_json::json!({ "text": "good evening" });
    server.ask(Method::PATCH, &format!("/api/rooms/lobby/messages/{kept}"), Some(edit)).await;
    server.ask(Method::DELETE, &format!("/api/rooms/lobby/messages/{gone}"), None).await;
    let plan = serde_json::json!({ "guild": "home", "companions": ["aria", { "id": "zed", "external": true }] });
    server.ask(Method::PUT, "/api/rooms/lobby", Some(plan)).await;
    let export = ["history", "export", "--room", "lobby", "--as", "replay"];

    let asked = premises.run(&export).await;
    server.stop().await;
    let opened = premises.run(&[&export[..], &["--out", "night.json"]].concat()).await;
    let replayed = premises.run(&["replay", "night.json"]).await;

    for told in [asked, opened, replayed] {
        assert_eq!(told.code, Some(0), "{told:?}");
        let counted: Vec<_> =
            told.stderr.lines().filter_map(|line| line.split_once(": a script")).map(|(counted, _)| counted).collect();
        let expected = ["note: 1 edited message", "note: 1 deleted message", "note: 0 votes of zed, an external companion"];
        assert_eq!(counted, expected, "{told:?}");
    }
}

#[tokio::test]
async fn a_room_that_is_not_there_is_told_and_leaves_no_file() {
    let premises = Premises::new();
    let server = premises.start().await;

    let asked = premises.run(&["history", "export", "--room", "cellar", "--out", "cellar.json"]).await;
    server.stop().await;
    let opened = premises.run(&["history", "export", "--room", "cellar", "--out", "cellar.json"]).await;

    for refused in [asked, opened] {
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("there is no room cellar"), "{refused:?}");
    }
    let left =
        std::fs::read_dir(premises.path()).expect("a folder").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert_eq!(left.filter(|name| name.starts_with("cellar")).count(), 0);
}

#[tokio::test]
async fn a_note_that_a_killed_server_left_misleads_nobody() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.kill().await;
    assert!(premises.data().join("server.json").exists());

    let verified = premises.run(&["history", "verify", "--json"]).await;

    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[tokio::test]
async fn what_needs_the_store_alone_is_refused_while_a_server_runs() {
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
async fn a_person_is_forgotten_with_a_server_and_without() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "nobody should remember this").await;
    server.say("lobby", "Bob", "nor this").await;
    let forget = |person: &'static str| ["history", "forget", "--guild", "home", "--person", person, "--yes", "--json"];

    let asked = premises.run(&forget("Ana")).await;
    server.stop().await;
    let opened = premises.run(&forget("Bob")).await;

    assert_eq!((asked.code, opened.code), (Some(0), Some(0)), "{asked:?} {opened:?}");
    assert_eq!((asked.object()["messages"].clone(), opened.object()["messages"].clone()), (1.into(), 1.into()));
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, []);
    server.stop().await;
}

#[tokio::test]
async fn nobody_is_forgotten_unasked() {
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
async fn commands_show_the_token_of_the_settings_to_the_server() {
    let mut premises =
        Premises::new().with("server.listen", "0.0.0.0:0").with("server.admin_token", "correct-horse-battery-staple");
    let server = premises.start().await;

    let admitted = premises.run(&["history", "backup", "copy.backup"]).await;
    premises.set("server.admin_token", "something-else-altogether");
    let turned_away = premises.run(&["history", "backup", "another.backup"]).await;

    assert_eq!(admitted.code, Some(0), "{admitted:?}");
    assert_eq!(turned_away.code, Some(1), "{turned_away:?}");
    assert!(turned_away.stderr.contains("TERTULIA__SERVER__ADMIN_TOKEN"), "{turned_away:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_folder_without_a_store_gets_none_by_being_asked() {
    let premises = Premises::new();

    for command in [&["verify"][..], &["compact"], &["backup", "copy.backup"], &["export"]] {
        let refused = premises.run(&[&["history"], command].concat()).await;
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains("there is no store in data"), "{refused:?}");
    }
    assert!(!premises.data().exists());
}
