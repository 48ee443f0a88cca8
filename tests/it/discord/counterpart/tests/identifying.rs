//! How a connection begins, which payloads are invalid, and what ends it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::super::{Closed, Connects, Counterpart, Intents, Rules};
use super::client::{INTENTS, Rest, Socket};

/// Identifies with these values and returns the close code.
async fn refused(discord: &Counterpart, intents: Intents, shard: Value) -> Option<u16> {
    let mut socket = Socket::open(discord).await;
    socket.identify(&discord.token(), intents, shard).await;
    socket.closed().await
}

#[tokio::test]
async fn ready_names_guilds_that_then_become_available_on_their_shard() {
    let discord = Counterpart::start().await;
    let guilds = ["One", "Two", "Three", "Four"].map(|name| discord.guild(name));
    discord.set_outage(guilds[3], true);
    discord.with(|state| state.rules.max_concurrency = 2);

    for shard in 0..2 {
        let mut socket = Socket::open(&discord).await;
        socket.identify(&discord.token(), INTENTS, json!([shard, 2])).await;

        let ready = socket.event("READY").await;
        let guilds_of_shard: Vec<_> = guilds.iter().filter(|guild| guild.shard(2) == shard).collect();
        let unavailable: Vec<Value> = guilds_of_shard.iter().map(|id| json!({ "id": id, "unavailable": true })).collect();
        assert_eq!(ready["guilds"], json!(unavailable));
        assert_eq!(ready["shard"], json!([shard, 2]));
        assert_eq!(ready["resume_gateway_url"], format!("{}/resume", discord.gateway_url()));
        for guild in guilds_of_shard.iter().filter(|guild| ***guild != guilds[3]) {
            assert_eq!(socket.event("GUILD_CREATE").await["id"], json!(guild));
        }
    }
    // A guild with an outage becomes available when the outage is over.
    assert_eq!(guilds.map(|guild| guild.shard(2)), [1, 0, 1, 0]);
}

#[tokio::test]
async fn no_guild_events_are_sent_without_the_intent() {
    let discord = Counterpart::start().await;
    let guild = discord.guild("Home");
    let (mut socket, _) = Socket::ready(&discord, INTENTS & !Intents::GUILDS).await;

    let channel = discord.channel(guild, "general");
    discord.say(discord.member(guild, "Ana"), channel, "hi");

    assert_eq!(socket.names_until("MESSAGE_CREATE").await, ["MESSAGE_CREATE"]);
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
    assert_eq!(discord.look(|state| state.gateway.sessions.len()), 0);
}

#[tokio::test]
async fn a_session_with_too_many_guilds_must_be_sharded() {
    let discord = Counterpart::with_rules(Rules { guilds_per_shard: 2, max_concurrency: 2, ..Rules::quick() }).await;
    for name in ["One", "Two", "Three"] {
        discord.guild(name);
    }

    assert_eq!(refused(&discord, INTENTS, json!([0, 1])).await, Some(4011));
    let mut socket = Socket::open(&discord).await;
    socket.identify(&discord.token(), INTENTS, json!([1, 2])).await;
    assert_eq!(socket.event("READY").await["guilds"].as_array().map(Vec::len), Some(2));
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
async fn a_token_that_was_reset_works_nowhere() {
    let discord = Counterpart::start().await;
    let (mut socket, ready) = Socket::ready(&discord, INTENTS).await;
    let old = Rest::new(&discord);

    let token = discord.reset_token();

    assert_eq!(socket.closed().await, Some(4004));
    assert_eq!(old.get("/users/@me").await.status, 401);
    let mut again = Socket::open(&discord).await;
    again.resume(&token, &ready["session_id"], 1).await;
    assert_eq!(again.op().await["op"], 9, "its sessions are gone");
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
async fn heartbeats_are_acknowledged_and_requested() {
    let discord = Counterpart::start().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    socket.send(&json!({ "op": 1, "d": 1 })).await;
    assert_eq!(socket.op().await["op"], 11);
    discord.ask_for_heartbeat(0);
    assert_eq!(socket.op().await["op"], 1);
    assert_eq!(discord.look(|state| state.gateway.sessions.values().map(|session| session.acknowledged).max()), Some(1));

    discord.stop_acknowledging(0);
    socket.send(&json!({ "op": 1, "d": 1 })).await;
    discord.send_text(0, r#"{"op":1,"d":null}"#);
    assert_eq!(socket.op().await["op"], 1, "nothing was sent before it");
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

#[tokio::test]
async fn connections_can_be_refused_mute_or_of_an_old_version() {
    let discord = Counterpart::start().await;
    let url = discord.gateway_url();

    let mut old = Socket::connect(&format!("{url}/?v=5&encoding=json")).await;
    assert_eq!(old.closed().await, Some(4012));
    for unknown in ["v=10&encoding=etf", "v=10&encoding=json&compress=zstd-stream"] {
        assert!(tokio_tungstenite::connect_async(format!("{url}/?{unknown}")).await.is_err());
    }
    let unsupported = discord.with(|state| std::mem::take(&mut state.journal.unsupported));
    assert_eq!(unsupported, ["encoding=etf", "transport compression by zstd"]);
    discord.set_connects(Connects::Refused);
    assert!(tokio_tungstenite::connect_async(format!("{url}/?v=10&encoding=json")).await.is_err());
    discord.set_resume_connects(Connects::Mute);
    let mut mute = Socket::connect(&format!("{url}/resume/?v=10&encoding=json")).await;
    mute.send(&json!({ "op": 1, "d": null })).await;
    assert_eq!(mute.op().await["op"], 11, "no HELLO was sent before it");
    discord.set_connects(Connects::Hanging);
    let hanging = tokio::spawn(tokio_tungstenite::connect_async(format!("{url}/?v=10&encoding=json")));
    discord.set_connects(Connects::Well);
    assert!(hanging.await.expect("the task ends").is_ok());
}

#[tokio::test]
async fn a_test_can_send_any_gateway_frame() {
    let discord = Counterpart::start().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    discord.send_text(0, "{");
    discord.send_bytes(0, b"\xff");
    discord.close(0, 4009, "Session timed out.");

    assert_eq!(socket.read().await, Some(Message::text("{")));
    assert_eq!(socket.read().await, Some(Message::binary(b"\xff".to_vec())));
    assert_eq!(socket.closed().await, Some(4009));
    let (closed, sessions) = discord.look(|state| (state.journal.closed_here(), state.gateway.sessions.len()));
    assert_eq!((closed, sessions), (vec![(4009, "Session timed out.".to_owned())], 0));
}

#[tokio::test]
async fn a_normal_close_code_ends_the_session() {
    for (code, sessions) in [(1000, 0), (1001, 0), (4000, 1)] {
        let discord = Counterpart::start().await;
        let (socket, _) = Socket::ready(&discord, INTENTS).await;

        socket.close(code).await;

        let closed = discord.until("the end", |state| state.journal.connections[0].closed.clone()).await;
        assert_eq!(closed, Closed::Client(Some(code)));
        assert_eq!(discord.look(|state| state.gateway.sessions.len()), sessions, "{code}");
    }
}
