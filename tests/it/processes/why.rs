//! `tertulia why`, with a server, without one, and over a kill.

use serde_json::{Value, json};

use crate::harness::Premises;

#[tokio::test]
async fn the_same_story_is_told_with_a_server_and_without() {
    let premises = Premises::new();
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    let seq = server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("statement").await;
    let at = lobby.event("message").await["at"].as_str().expect("a time").to_owned();
    let message = seq.to_string();
    let asked: [&[&str]; 4] = [
        &["why", "lobby", "Aria", "--at", &at],
        &["why", "lobby", "--message", &message],
        &["why", "lobby", "--message", &message, "--json"],
        &["why", "lobby", "--at", "1"],
    ];

    let mut served = Vec::new();
    for arguments in asked {
        served.push(premises.run(arguments).await);
    }
    let by_the_api = server.get(&format!("/api/why?room=lobby&message={message}")).await;
    server.stop().await;

    for (served, arguments) in served.into_iter().zip(asked) {
        let opened = premises.run(arguments).await;
        assert_eq!((served.code, opened.code), (Some(0), Some(0)), "{served:?} {opened:?}");
        assert!(served.stdout.contains("Ana named Aria, so Aria was asked at once, about one message."), "{served:?}");
        assert_eq!((&*served.stderr, &*opened.stderr), ("", ""));
        if arguments.contains(&"--json") {
            assert_eq!(served.object(), by_the_api);
            assert_eq!(opened.object(), by_the_api);
        } else {
            let from_the_store =
                format!("{}\n\nNo server is running here. This was read from the store.\n", served.stdout.trim_end());
            assert_eq!(opened.stdout, from_the_store);
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_named_with_what_is() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "hello").await;
    let asked: [(&[&str], i32, &str); 7] = [
        (&["why", "cellar"], 1, "there is lobby"),
        (&["why", "lobby", "zoe"], 1, "present: aria"),
        (&["why", "lobby", "--message", "nothing"], 1, "/api/rooms/lobby/history lists its messages"),
        (&["why", "lobby", "--at", "yesterday"], 2, "write 2026-05-01T22:14:05Z"),
        (&["why", "the lobby"], 2, "is not a room id"),
        (&["why", "discord:1234", "aria"], 1, "there is no room discord:1234: a companion is let into it on Discord"),
        (&["why", "discord:12:34"], 2, "a channel's id like discord:1234"),
    ];

    let mut served = Vec::new();
    for (arguments, ..) in asked {
        served.push(premises.run(arguments).await);
    }
    server.stop().await;

    for (served, (arguments, code, words)) in served.into_iter().zip(asked) {
        for told in [served, premises.run(arguments).await] {
            assert_eq!(told.code, Some(code), "{told:?}");
            assert!(told.stderr.contains(words) && told.stdout.is_empty(), "{told:?}");
        }
    }
}

#[tokio::test]
async fn where_nothing_has_triggered_yet_it_is_told_what_is_waited_for() {
    // Longer than any machine takes to ask.
    let premises = Premises::new().with_companion("aria", "name = \"Aria\"\ntext_lull_timeout = 600.0\n");
    let server = premises.start().await;
    server.say("lobby", "Ana", "what a day").await;

    let told = premises.run(&["why", "lobby"]).await;

    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.starts_with("Aria in lobby: no decision yet\n"), "{told:?}");
    let waits = told.stdout.replace('\n', " ");
    assert!(waits.contains("One message is unsettled. It waits for ") && waits.contains(" more messages, "), "{told:?}");
    assert!(waits.contains(" of quiet, or its name."), "{told:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_story_is_whole_though_the_server_was_killed_between_question_and_answer() {
    let mut premises = Premises::new().with("models.rehearsal.pace", "10");
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    let seq = server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("evaluate").await;
    server.kill().await;
    let in_flight = premises.run(&["why", "lobby", "aria"]).await;
    premises.set("models.rehearsal.pace", "0");
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    lobby.event("statement").await;

    let told = premises.run(&["why", "lobby", "--message", &seq.to_string(), "--json"]).await.object();

    assert!(in_flight.stdout.contains("so Aria was asked at once"), "{in_flight:?}");
    let waits = in_flight.stdout.replace('\n', " ");
    assert!(waits.contains("It waits for the server, which asks its open question again once it runs."), "{in_flight:?}");
    let story = told["story"].as_array().expect("a story");
    let events: Vec<_> = story.iter().map(|line| line["event"].clone()).collect();
    assert_eq!(json!(events), json!(["message", "evaluate", "restart", "decision", "respond", "statement"]), "{told:#}");
    assert_eq!(story[2]["text"], "The server was restarted: the open question was asked again.");
    assert_eq!(told["companions"][0]["outcome"], "answered");
    assert_eq!(told["decision"]["decision"], "YES");
    assert_eq!(told["waiting_for"], Value::Null);
    server.stop().await;
}

#[tokio::test]
async fn a_story_is_whole_though_the_server_was_killed_in_a_round() {
    let rooms = r#"[{ id = "salon", guild = "home", companions = ["aria", "bruno"] }]"#;
    let mut premises = Premises::new().with("models.rehearsal.pace", "10").with("console.rooms", rooms);
    premises.set("turn_taking.turn_delay_secs", "0.1");
    let server = premises.start().await;
    let mut salon = server.watch("salon", Some(0)).await;
    let seq = server.say("salon", "Ana", "aria, bruno, how was your day?").await.to_string();
    salon.event("evaluate").await;
    salon.event("evaluate").await;
    server.kill().await;
    let in_flight = premises.run(&["why", "salon", "bruno"]).await;
    premises.set("models.rehearsal.pace", "0");
    let server = premises.start().await;
    let mut salon = server.watch("salon", Some(0)).await;
    let selected = salon.event("round").await["selected"].as_str().expect("somebody is selected").to_owned();
    let statement = salon.event("statement").await;

    let told = premises.run(&["why", "salon", &selected, "--message", &seq, "--json"]).await.object();

    assert!(in_flight.stdout.contains("Ana named Bruno, so Bruno was asked at once"), "{in_flight:?}");
    assert!(in_flight.stdout.replace('\n', " ").contains("which asks its open question again once it runs."), "{in_flight:?}");
    let story = told["story"].as_array().expect("a story");
    let events: Vec<_> = story.iter().map(|line| line["event"].clone()).collect();
    let whole = ["message", "round_opened", "evaluate", "restart", "decision", "round", "turn", "respond", "statement"];
    assert_eq!(json!(events), json!(whole), "{told:#}");
    assert_eq!(story[3]["text"], "The server was restarted: the open question was asked again.");
    assert_eq!(statement["companion"], selected);
    assert_eq!(told["companions"][0]["outcome"], "answered");
    assert_eq!(told["decision"]["decision"], "YES");
    assert_eq!(told["waiting_for"], Value::Null);
    server.stop().await;
}
