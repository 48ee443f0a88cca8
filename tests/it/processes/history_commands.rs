//! `tertulia history`, with and without a running server.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Premises;

#[tokio::test]
async fn verify_and_an_export_say_the_same_with_and_without_a_server_and_a_script_can_be_replayed() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.exchange("lobby", "hey aria, how was your day?").await;
    let script = ["history", "export", "--room", "lobby", "--as", "replay", "--out", "night.json"];

    let verified_online = premises.run(&["history", "verify", "--json"]).await.exits_with(0);
    let online = premises.run(&["history", "export", "--room", "lobby"]).await.exits_with(0);
    let exported = premises.run(&script).await.exits_with(0);
    let again = premises.run(&script).await.exits_with(1);
    let replayed = premises.run(&["replay", "night.json", "--json"]).await.exits_with(0);
    server.stop().await;
    premises.verified_events().await;
    let offline = premises.run(&["history", "export"]).await.exits_with(0);

    let verified = verified_online.object();
    assert_eq!((&verified["sound"], &verified["channels"]), (&true.into(), &1.into()), "{verified}");
    assert_eq!(online.stdout, offline.stdout);
    assert!(online.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{online:?}");
    assert!(online.stdout.contains("how was your day?") && online.stdout.contains("direct_address"), "{online:?}");
    assert!(again.stderr.contains("night.json exists already"), "{again:?}");
    assert!(replayed.stdout.contains("\"decision\":\"YES\""), "{replayed:?}");
    assert_eq!((exported.stderr, replayed.stderr), (String::new(), String::new()));
}

#[tokio::test]
async fn a_start_deletes_the_copies_that_killed_verifications_left_and_a_verification_leaves_none() {
    let premises = Premises::new();
    premises.start().await.stop().await;
    for name in ["verify-17.backup", "verify-18.backup.part"] {
        std::fs::write(premises.data().join(name), "words").expect("written");
    }

    let server = premises.start().await;
    let copies = || {
        let names = std::fs::read_dir(premises.data()).expect("read").map(|entry| entry.expect("read").file_name());
        names.filter(|name| name.to_string_lossy().starts_with("verify-")).count()
    };
    let after_the_start = copies();
    premises.run(&["history", "verify"]).await.exits_with(0);

    assert_eq!((after_the_start, copies()), (0, 0));
    server.stop().await;
}

#[tokio::test]
async fn an_export_as_a_script_notes_where_it_differs_from_the_record() {
    let premises = Premises::new();
    let server = premises.start().await;
    let edited = server.say("lobby", "Ana", "hello").await;
    let deleted = server.say("lobby", "Ana", "never mind").await;
    let edit = json!({ "text": "good evening" });
    server.ask(Method::PATCH, &format!("/api/rooms/lobby/messages/{edited}"), Some(edit)).await;
    server.ask(Method::DELETE, &format!("/api/rooms/lobby/messages/{deleted}"), None).await;
    let plan = json!({ "guild": "home", "companions": ["aria", { "id": "zed", "external": true }] });
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
async fn a_person_can_be_forgotten_with_and_without_a_server_after_a_confirmation() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "nobody should remember this").await;
    server.say("lobby", "Bob", "nor this").await;
    let forget = |person: &'static str| ["history", "forget", "--guild", "home", "--person", person, "--yes", "--json"];

    let unconfirmed = premises.run(&forget("Ana")[..6]).await.exits_with(2);
    let kept = server.history("lobby").await.len();
    let online = premises.run(&forget("Ana")).await.exits_with(0);
    server.stop().await;
    let offline = premises.run(&forget("Bob")).await.exits_with(0);

    assert!(unconfirmed.stderr.contains("--yes") && kept == 2, "{unconfirmed:?}");
    assert_eq!((online.object()["messages"].clone(), offline.object()["messages"].clone()), (1.into(), 1.into()));
    let server = premises.start().await;
    assert_eq!(server.history("lobby").await, []);
    server.stop().await;
}

#[tokio::test]
async fn commands_use_the_token_of_the_settings_and_health_needs_none() {
    let mut premises =
        Premises::new().with("server.listen", "0.0.0.0:0").with("server.admin_token", "correct-horse-battery-staple");
    let server = premises.start().await;
    let url = server.url.replace("0.0.0.0", "127.0.0.1");

    premises.run(&["history", "backup", "copy.backup"]).await.exits_with(0);
    let usage = premises.run(&["usage", "--server", &url, "--json"]).await.exits_with(0);
    let authorized = premises.run(&["health", "--json"]).await.exits_with(0);
    premises.set("server.admin_token", "something-else-altogether");
    let rejected = premises.run(&["history", "backup", "another.backup"]).await.exits_with(1);
    let unauthorized = premises.run(&["health", "--json"]).await.exits_with(0);

    assert_eq!(usage.object()["guilds"], json!([]));
    assert!(rejected.stderr.contains("TERTULIA__SERVER__ADMIN_TOKEN"), "{rejected:?}");
    assert!(authorized.object()["parts"].is_array() && unauthorized.object()["parts"].is_null(), "{unauthorized:?}");
    server.stop().await;
}

#[tokio::test]
async fn reading_commands_create_no_store() {
    let premises = Premises::new();

    for command in [&["verify"][..], &["compact"], &["backup", "copy.backup"], &["export"]] {
        let refused = premises.run(&[&["history"], command].concat()).await.exits_with(3);
        assert!(refused.stderr.contains("there is no store in data"), "{refused:?}");
    }
    assert!(!premises.data().exists());
}
