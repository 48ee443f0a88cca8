//! What Discord refuses on the gateway. Tests of the client rely on it: what the double accepts anyway, they would not notice.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::super::{Closed, Counterpart, Intents, Rules};
use super::client::{INTENTS, Rest, Socket};

/// Identifies with these values and returns the close code.
async fn refused(discord: &Counterpart, intents: Intents, shard: Value) -> Option<u16> {
    let mut socket = Socket::open(discord).await;
    socket.identify(&discord.token(), intents, shard).await;
    socket.closed().await
}

#[tokio::test]
async fn invalid_identifies_are_closed_with_the_documented_codes() {
    let discord = Counterpart::start().await;
    discord.with(|state| state.rules.shard_multiple = 2);

    let mut socket = Socket::open(&discord).await;
    socket.identify("wrong", INTENTS, json!([0, 2])).await;
    assert_eq!(socket.closed().await, Some(4004));
    for shard in [json!([2, 2]), json!([0, 0]), json!([0, 3])] {
        assert_eq!(refused(&discord, INTENTS, shard).await, Some(4010));
    }
    assert_eq!(refused(&discord, Intents::from_bits_retain(1 << 40), json!([0, 2])).await, Some(4013));
    assert_eq!(refused(&discord, Intents::GUILD_MEMBERS, json!([0, 2])).await, Some(4014));
    let mut socket = Socket::open(&discord).await;
    socket.send(&json!({ "op": 2, "d": { "token": discord.token(), "intents": 1 } })).await;
    assert_eq!(socket.closed().await, Some(4001));
    discord.guild("Home");
    discord.with(|state| (state.rules.guilds_per_shard, state.rules.shard_multiple) = (0, 1));
    assert_eq!(refused(&discord, INTENTS, json!([0, 1])).await, Some(4011));
    assert_eq!(discord.look(|state| state.gateway.sessions.len()), 0);
}

#[tokio::test]
async fn a_session_is_resumed_with_its_token_and_sequence_until_it_ends() {
    for (token, ahead, leaves_with, answer) in [
        (None, 0, None, Ok("RESUMED")),
        (Some("wrong"), 0, None, Err(4004)),
        (None, 1, None, Err(4007)),
        (None, 0, Some(1000), Ok("")),
    ] {
        let discord = Counterpart::start().await;
        let (socket, ready) = Socket::ready(&discord, INTENTS).await;
        let sequence = socket.sequence + ahead;
        match leaves_with {
            None => discord.cut(0),
            Some(code) => {
                socket.close(code).await;
                let closed = discord.until("the end", |state| state.journal.connections[0].closed.clone()).await;
                assert_eq!(closed, Closed::Client(Some(code)));
            }
        }

        let mut again = Socket::open(&discord).await;
        again.resume(token.unwrap_or(&discord.token()), &ready["session_id"], sequence).await;

        match answer {
            // Without the session, it is invalid for good.
            Ok("") => assert_eq!(again.op().await, json!({ "op": 9, "d": false, "s": null, "t": null })),
            Ok(event) => drop(again.event(event).await),
            Err(code) => assert_eq!(again.closed().await, Some(code)),
        }
    }
}

#[tokio::test]
async fn identifies_of_one_key_that_come_too_soon_get_an_invalid_session() {
    let rules = Rules { identify_window: Duration::from_secs(60), max_concurrency: 2, ..Rules::quick() };
    let discord = Counterpart::with_rules(rules).await;

    for (shard, key_is_free) in [(0, true), (1, true), (2, false), (3, false)] {
        let mut socket = Socket::open(&discord).await;
        socket.identify(&discord.token(), INTENTS, json!([shard, 4])).await;
        let answer = socket.op().await;
        if key_is_free {
            assert_eq!(answer["t"], "READY");
        } else {
            assert_eq!((&answer["op"], &answer["d"]), (&json!(9), &json!(false)));
        }
    }
}

#[tokio::test]
async fn every_identify_counts_and_one_too_many_resets_the_token() {
    let rules = Rules { session_starts: 2, identify_window: Duration::ZERO, ..Rules::quick() };
    let discord = Counterpart::with_rules(rules).await;
    let rest = Rest::new(&discord);
    let budget = async || rest.get("/gateway/bot").await.body["session_start_limit"]["remaining"].clone();
    assert_eq!(budget().await, 2);

    let (mut first, _) = Socket::ready(&discord, INTENTS).await;
    assert_eq!(budget().await, 1);
    let (_second, _) = Socket::ready(&discord, INTENTS).await;
    assert_eq!(budget().await, 0);
    let mut third = Socket::open(&discord).await;
    third.identify(&discord.token(), INTENTS, json!([0, 1])).await;

    assert_eq!(third.closed().await, Some(4004));
    assert_eq!(first.closed().await, Some(4003));
    assert_eq!(rest.get("/users/@me").await.status, 401);
    assert_eq!(discord.look(|state| (state.journal.token_resets, state.gateway.sessions.len())), (1, 0));
}

#[tokio::test]
async fn invalid_payloads_end_the_connection() {
    let discord = Counterpart::start().await;
    let text = |text: &str| Message::text(text.to_owned());
    let before = [
        (text("no json"), 4002),
        (text(r#"{"d":1}"#), 4002),
        (text(&json!({ "op": 1, "d": "x".repeat(4_096) }).to_string()), 4002),
        (Message::binary(b"{\"op\":1,\"d\":null}".to_vec()), 4002),
        (text(r#"{"op":3,"d":{}}"#), 4003),
        (text(r#"{"op":99,"d":{}}"#), 4001),
    ];
    for (message, code) in before {
        let mut socket = Socket::open(&discord).await;
        let shown = format!("{message:?}");
        socket.send_raw(message).await;
        assert_eq!(socket.closed().await, Some(code), "{shown}");
    }

    let (mut socket, ready) = Socket::ready(&discord, INTENTS).await;
    socket.identify(&discord.token(), INTENTS, json!([0, 1])).await;
    assert_eq!(socket.closed().await, Some(4005));
    // After such a close code the session can be resumed.
    let mut again = Socket::open(&discord).await;
    again.resume(&discord.token(), &ready["session_id"], 1).await;
    again.event("RESUMED").await;
}

#[tokio::test]
async fn too_many_payloads_in_a_minute_end_the_connection() {
    let discord = Counterpart::start().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    for _ in 0..120 {
        socket.send(&json!({ "op": 1, "d": null })).await;
    }

    assert_eq!(socket.closed().await, Some(4008));
}

#[tokio::test]
async fn a_client_without_a_heartbeat_is_disconnected() {
    let discord = Counterpart::start().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    discord.with(|state| state.rules.heartbeat_tolerance = Duration::ZERO);
    socket.send(&json!({ "op": 1, "d": 1 })).await;

    assert_eq!(socket.closed().await, Some(4000));
    assert_eq!(discord.look(|state| state.gateway.sessions.len()), 1, "it can be resumed");
}
