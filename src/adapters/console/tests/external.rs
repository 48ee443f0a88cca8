//! External companions: how they join a room, vote and speak.

use serde_json::json;

use super::*;

const VOTE: &str = "/api/rooms/lobby/states";
const SPEAK: &str = "/api/rooms/lobby/statements";

fn state(change: Value) -> Value {
    let mut state =
        json!({ "from": "zed", "messageId": "7", "state": "speak", "importance": 6, "selected": false, "closing": "none" });
    for (key, value) in change.as_object().unwrap() {
        state[key] = value.clone();
    }
    state
}

/// A console with Aria and the external Zed in its lobby.
async fn world() -> World {
    let world = World::with(Server { max_text_chars: 10, ..settings() }).await;
    let zed = json!({ "id": "zed", "external": true, "name": " Zed the Bot ", "aliases": ["zeddy"] });
    let plan = json!({ "guild": "home", "companions": ["aria", zed] });
    assert_eq!(world.send(Method::PUT, "/api/rooms/lobby", plan).await.0, 200);
    world
}

#[tokio::test]
async fn an_external_companion_is_shown_with_its_names() {
    let world = world().await;

    let (_, room) = world.get("/api/rooms/lobby").await;

    let zed = json!({
        "id": "zed", "name": "Zed the Bot", "ai": true, "aliases": ["zeddy"], "external": true, "interjection": "average",
        "repetition": true, "model": { "main": "main", "side": "side" }, "paused": false,
    });
    assert_eq!(room["companions"][1], zed);
    assert_eq!(room["companions"][0]["external"], false);
    assert_eq!(world.get("/api/rooms/lobby/state").await.1["companions"][1]["external"], true);
}

#[tokio::test]
async fn the_names_of_an_external_companion_are_validated() {
    let world = world().await;
    let field = async |zed: Value| {
        let plan = json!({ "guild": "home", "companions": ["aria", zed] });
        let (status, problem) = world.send(Method::PUT, "/api/rooms/lobby", plan).await;
        (status, problem["field"].as_str().unwrap_or_default().to_owned())
    };

    assert_eq!(field(json!({ "id": "zed", "external": true, "name": "" })).await, (422, "companions[1].name".into()));
    assert_eq!(
        field(json!({ "id": "zed", "external": true, "aliases": ["ok", "a\u{202E}"] })).await,
        (422, "companions[1].aliases[1]".into())
    );
    assert_eq!(field(json!({ "id": "zed", "external": true, "name": "A\u{AD}ria" })).await, (422, "companions[1].name".into()));
    assert_eq!(field(json!({ "id": "ben", "name": "Benny" })).await, (422, "companions[1]".into()));
    assert_eq!(field(json!({ "id": "zed", "external": "yes" })).await, (422, "companions[1].external".into()));
    assert_eq!(field(json!({ "id": "zed", "external": true, "mood": 1 })).await, (422, "companions[1].mood".into()));
}

#[tokio::test]
async fn votes_and_statements_are_accepted() {
    let world = world().await;

    let voted = world.post(VOTE, state(json!({}))).await;
    let sent = world.post(SPEAK, json!({ "from": "zed", "message_id": "7", "text": "hello\r\n" })).await;
    let again = world.post(SPEAK, json!({ "from": "zed", "message_id": 7, "text": "and again" })).await;

    assert_eq!(voted.0, 202);
    assert_eq!(sent, (202, json!({ "seq": 1 })));
    assert_eq!(again, (202, json!({ "seq": 2 })));
    let history = world.get("/api/rooms/lobby/history").await.1;
    assert_eq!((&history["messages"][0]["from"], &history["messages"][0]["role"]), (&json!("zed"), &json!("companion")));
    assert_eq!(history["messages"][0]["text"], "hello\n");
}

#[tokio::test]
async fn an_invalid_vote_or_statement_is_refused_with_the_name_of_the_field() {
    let world = world().await;
    let votes = [
        (state(json!({ "from": "" })), "from"),
        (state(json!({ "from": "a b" })), "from"),
        (state(json!({ "messageId": 7 })), "messageId"),
        (state(json!({ "state": "shout" })), "state"),
        (state(json!({ "importance": 11 })), "importance"),
        (state(json!({ "importance": "6" })), "importance"),
        (state(json!({ "selected": null })), "selected"),
        (state(json!({ "closing": "soon" })), "closing"),
        (state(json!({ "mood": 1 })), "mood"),
        (state(json!({ "temper": 0.1 })), "temper"),
        (json!({ "from": "zed" }), "messageId"),
    ];
    let statements = [
        (json!({ "from": "a b", "message_id": "7", "text": "hi" }), "from"),
        (json!({ "from": "zed", "message_id": "seven", "text": "hi" }), "message_id"),
        (json!({ "from": "zed", "message_id": -7, "text": "hi" }), "message_id"),
        (json!({ "from": "zed", "message_id": "7", "text": " " }), "text"),
        (json!({ "from": "zed", "message_id": "7", "text": "12345678901" }), "text"),
        (json!({ "from": "zed", "message_id": "7" }), "text"),
        (json!({ "from": "zed", "message_id": "7", "text": "hi", "to": "Ana" }), "to"),
    ];

    let votes = votes.into_iter().map(|case| (VOTE, case));
    for (path, (body, field)) in votes.chain(statements.into_iter().map(|case| (SPEAK, case))) {
        let (status, problem) = world.post(path, body.clone()).await;
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{body}: {problem}");
    }
    let (_, problem) = world.post(VOTE, state(json!({ "state": "shout" }))).await;
    assert!(problem["detail"].as_str().unwrap().contains("\"speak\" or \"listen\""), "{problem}");
}

#[tokio::test]
async fn refused_votes_and_statements_have_a_reason() {
    let world = world().await;
    let words = |from: &str, message: &str| json!({ "from": from, "message_id": message, "text": "hi" });

    let not_external = world.post(VOTE, state(json!({ "from": "aria" }))).await;
    let other_round = world.post(VOTE, state(json!({ "messageId": "6" }))).await;
    let nobody = world.post(SPEAK, words("aria", "7")).await;
    let late = world.post(SPEAK, words("zed", "6")).await;
    let nowhere = world.post("/api/rooms/nowhere/states", state(json!({}))).await;
    let not_allowed = world.get(VOTE).await;
    let too_large = world.post_raw(SPEAK, format!("{{\"text\": \"{}\"}}", "x".repeat(100_000))).await;

    assert_eq!([not_external.0, other_round.0, nobody.0, late.0, nowhere.0], [409, 409, 409, 409, 404]);
    assert_eq!(other_round.1["detail"], "the round is about message 7");
    assert_eq!((not_allowed.0, too_large.0), (405, 413));
}
