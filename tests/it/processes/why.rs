//! `tertulia why`, with and without a running server, and after a kill.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Premises;

#[tokio::test]
async fn why_tells_the_same_story_with_and_without_a_server() {
    let premises = Premises::new();
    let server = premises.start().await;
    let (mut lobby, seq) = server.exchange("lobby", "hey aria, how was your day?").await;
    let at = lobby.event("message").await["at"].as_str().expect("a time").to_owned();
    let message = seq.to_string();
    let commands: [&[&str]; 4] = [
        &["why", "lobby", "Aria", "--at", &at],
        &["why", "lobby", "--message", &message],
        &["why", "lobby", "--message", &message, "--json"],
        &["why", "lobby", "--at", "1"],
    ];

    let mut online = Vec::new();
    for arguments in commands {
        online.push(premises.run(arguments).await);
    }
    let by_the_api = server.get(&format!("/api/why?room=lobby&message={message}")).await;
    server.stop().await;

    for (online, arguments) in online.into_iter().zip(commands) {
        let offline = premises.run(arguments).await;
        assert_eq!((online.code, offline.code), (Some(0), Some(0)), "{online:?} {offline:?}");
        assert!(online.stdout.contains("Ana called Aria by name, so Aria thought about an answer."), "{online:?}");
        assert_eq!((&*online.stderr, &*offline.stderr), ("", ""));
        if arguments.contains(&"--json") {
            assert_eq!(online.object(), by_the_api);
            assert_eq!(offline.object(), by_the_api);
        } else {
            let from_the_store =
                format!("{}\n\nNo server is running here. This was read from the store.\n", online.stdout.trim_end());
            assert_eq!(offline.stdout, from_the_store);
        }
    }
}

#[tokio::test]
async fn why_takes_the_title_of_a_room_or_a_part_of_it_and_calls_the_room_by_it() {
    let premises = Premises::new();
    let server = premises.start().await;
    let kitchen = json!({ "title": "Großmutters Küche", "guild": "home", "companions": ["aria"] });
    let kitchen = server.done(Method::POST, "/api/rooms", Some(kitchen)).await;
    server.exchange("grossmutters-kuche", "hey aria, how was your day?").await.0.event("message").await;
    let titled = ["Großmutters Küche", "großmutters küche", "grossmutters-kuche"];

    let mut said = Vec::new();
    for room in titled {
        said.push(premises.run(&["why", room, "aria"]).await.exits_with(0).stdout);
    }
    let unknown = premises.run(&["why", "cellar"]).await.exits_with(1);
    let exported = premises.run(&["history", "export", "--room", "Großmutters Küche", "--as", "markdown"]).await.exits_with(0);
    server.stop().await;
    said.push(premises.run(&["why", "Großmutters Küche", "aria"]).await.exits_with(0).stdout);
    let offline = premises.run(&["history", "export", "--room", "Großmutters Küche", "--as", "markdown"]).await.exits_with(0);

    assert_eq!(kitchen["id"], "grossmutters-kuche");
    for said in said {
        assert!(said.starts_with("Aria in Großmutters Küche, decision "), "{said}");
    }
    assert!(unknown.stderr.contains("there are Großmutters Küche (grossmutters-kuche), lobby"), "{unknown:?}");
    for exported in [exported.stdout, offline.stdout] {
        assert!(exported.starts_with("# Großmutters Küche\n\nExported on "), "{exported}");
        assert!(exported.contains("\n> hey aria, how was your day?  \n") && exported.contains("**Aria** · "), "{exported}");
    }
}

#[tokio::test]
async fn before_the_first_trigger_why_says_what_is_awaited() {
    // The lull timeout is longer than the test takes on any machine.
    let premises = Premises::new().with_companion("aria", "name = \"Aria\"\ntext_lull_timeout = 600.0\n");
    let server = premises.start().await;
    server.say("lobby", "Ana", "what a day").await;

    let result = premises.run(&["why", "lobby"]).await.exits_with(0);
    let later = premises.run(&["why", "lobby", "aria", "--at", "999"]).await.exits_with(0);

    assert!(result.stdout.starts_with("Aria in lobby: no decision yet\n"), "{result:?}");
    assert!(later.stdout.starts_with("Aria in lobby: no decision at that time\n"), "{later:?}");
    let on_one_line = result.stdout.replace('\n', " ");
    assert!(on_one_line.contains("Aria thinks about an answer after "), "{result:?}");
    assert!(on_one_line.contains(" of silence, or when somebody speaks to Aria. (messages that wait: 1)"), "{result:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_story_is_complete_after_a_kill_between_question_and_answer() {
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

    let result = premises.run(&["why", "lobby", "--message", &seq.to_string(), "--json"]).await.object();

    assert!(in_flight.stdout.replace('\n', " ").contains("so Aria thought about an answer."), "{in_flight:?}");
    let on_one_line = in_flight.stdout.replace('\n', " ");
    assert!(on_one_line.contains("Aria thinks about an answer once the server runs."), "{in_flight:?}");
    let story = result["story"].as_array().expect("a story");
    let events: Vec<_> = story.iter().map(|line| line["event"].clone()).collect();
    assert_eq!(json!(events), json!(["message", "evaluate", "restart", "decision", "respond", "statement"]), "{result:#}");
    assert_eq!(story[2]["text"], "The server was restarted, and Aria began to think again.");
    assert_eq!(result["companions"][0]["outcome"], "answered");
    assert_eq!(result["decision"]["decision"], "YES");
    assert_eq!(result["waiting_for"], Value::Null);
    server.stop().await;
}

#[tokio::test]
async fn a_story_is_complete_after_a_kill_in_a_round() {
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

    let result = premises.run(&["why", "salon", &selected, "--message", &seq, "--json"]).await.object();

    let on_one_line = in_flight.stdout.replace('\n', " ");
    assert!(on_one_line.contains("Bruno thinks about an answer once the server runs."), "{in_flight:?}");
    let story = result["story"].as_array().expect("a story");
    let events: Vec<_> = story.iter().map(|line| line["event"].clone()).collect();
    let whole = ["message", "evaluate", "restart", "decision", "round", "turn", "respond", "statement"];
    assert_eq!(json!(events), json!(whole), "{result:#}");
    assert!(story[2]["text"].as_str().is_some_and(|text| text.ends_with("began to think again.")), "{result:#}");
    assert_eq!(statement["companion"], selected);
    assert_eq!(result["companions"][0]["outcome"], "answered");
    assert_eq!(result["decision"]["decision"], "YES");
    assert_eq!(result["waiting_for"], Value::Null);
    server.stop().await;
}
