//! Rooms with several companions, and an external companion.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Premises, Server, Watch};

const ZED: &str = "zed";

#[tokio::test]
async fn three_addressed_companions_hold_a_round_that_why_explains() {
    let premises = Premises::shipped().with("turn_taking.turn_delay_secs", "0");
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;

    let seq = server.say("lobby", "Ana", "aria, bruno, cleo: how was your day?").await;

    let opened = lobby.event("round_opened").await;
    assert_eq!((&opened["message_id"], &opened["asked"]), (&seq.into(), &json!(["aria", "bruno", "cleo"])));
    let round = lobby.event("round").await;
    let selected = round["selected"].as_str().expect("a companion is selected").to_owned();
    let statement = lobby.event("statement").await;
    assert_eq!(statement["companion"], *selected);
    let decisions = server.get("/api/decisions?room=lobby&limit=3&after=0").await;
    for decision in decisions["decisions"].as_array().expect("a list") {
        assert_eq!(decision["vote"]["messageId"], seq.to_string(), "{decision}");
        let floor = match decision["decision"].as_str() {
            Some("YES") if decision["companion"] == *selected => json!("won"),
            Some("YES") => json!("lost"),
            _ => Value::Null,
        };
        assert_eq!(decision["floor"], floor, "{decision}");
    }
    let why = server.get(&format!("/api/why?room=lobby&companion={selected}&at={seq}")).await;
    let story = why["story"].to_string();
    assert!(story.contains(" was chosen"), "{story}");
    server.stop().await;
}

#[tokio::test]
async fn an_external_companion_works_across_restarts() {
    let premises = Premises::new().with("turn_taking.turn_delay_secs", "0");
    let server = premises.start().await;
    let plan = json!({ "guild": "home", "companions": ["aria", { "id": ZED, "external": true, "aliases": ["zeddy"] }] });
    let (status, room) = server.ask(Method::PUT, "/api/rooms/lobby", Some(plan)).await;
    assert_eq!((status, &room["companions"][1]["external"]), (StatusCode::OK, &json!(true)));
    server.kill().await;
    let server = premises.start().await;
    assert_eq!(server.get("/api/rooms/lobby").await["companions"][1]["aliases"], json!(["zeddy"]));
    let mut lobby = server.watch("lobby", None).await;

    server.say("lobby", "Ana", "hey zeddy, are you there?").await;
    let message = vote(&server, &mut lobby).await;
    let respond = lobby.event("respond").await;
    let statement = json!({ "from": ZED, "message_id": message, "text": "I am, Ana." });
    let (status, accepted) = server.ask(Method::POST, "/api/rooms/lobby/statements", Some(statement.clone())).await;
    let (repeated, problem) = server.ask(Method::POST, "/api/rooms/lobby/statements", Some(statement)).await;

    assert_eq!((&respond["companion"], &respond["messages"]), (&json!(ZED), &json!(["hey zeddy, are you there?"])));
    assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
    assert_eq!(repeated, StatusCode::CONFLICT, "{problem}");
    let statement = lobby.event("statement").await;
    assert_eq!((&statement["companion"], &statement["seq"]), (&json!(ZED), &accepted["seq"]));
    // The statement triggers Aria, as those of other companions do.
    let decision = lobby.event("decision").await;
    assert_eq!((&decision["companion"], &decision["trigger"]), (&json!("aria"), &json!("turn")));
    server.stop().await;
}

/// Waits until Zed is asked, and votes that it wants to speak. Returns the id of the message that the round is about.
async fn vote(server: &Server, lobby: &mut Watch) -> Value {
    let opened = lobby.event("round_opened").await;
    assert_eq!(opened["asked"], json!([ZED]));
    let message = opened["message_id"].clone();
    let state = json!({ "from": ZED, "messageId": message.to_string(), "state": "speak", "importance": 8, "selected": false });
    server.done(Method::POST, "/api/rooms/lobby/states", Some(state)).await;
    message
}
