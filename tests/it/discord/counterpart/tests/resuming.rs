//! Resuming: a session outlives its connections.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Counterpart, Id, Rules};
use super::client::{INTENTS, Socket};

/// A connected session in a guild with a channel and a person, after GUILD_CREATE.
async fn session(discord: &Counterpart) -> (Socket, Value, Id, Id) {
    let guild = discord.guild("Home");
    let (channel, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let (mut socket, ready) = Socket::ready(discord, INTENTS).await;
    socket.event("GUILD_CREATE").await;
    (socket, ready["session_id"].clone(), channel, ana)
}

async fn resume(discord: &Counterpart, session: &Value, sequence: u64) -> Socket {
    let mut socket = Socket::open(discord).await;
    socket.resume(&discord.token(), session, sequence).await;
    socket
}

#[tokio::test]
async fn a_resume_replays_only_missed_events() {
    let discord = Counterpart::start().await;
    let (mut socket, session, channel, ana) = session(&discord).await;
    let received = discord.say(ana, channel, "received");
    assert_eq!(socket.event("MESSAGE_CREATE").await["id"], json!(received));
    let sequence = socket.sequence;

    discord.cut(0);
    let missed = ["one", "two"].map(|text| discord.say(ana, channel, text));
    let mut again = resume(&discord, &session, sequence).await;

    for id in missed {
        let replayed = again.op().await;
        assert_eq!((&replayed["t"], &replayed["d"]["id"]), (&json!("MESSAGE_CREATE"), &json!(id)));
    }
    assert_eq!(again.op().await["t"], "RESUMED");
    let (replayed, delivered, identifies) =
        discord.look(|state| (state.journal.resumes[0].replayed, state.journal.delivered(), state.journal.identifies.len()));
    assert_eq!((replayed, identifies), (Some(2), 1));
    assert_eq!(delivered.into_iter().collect::<Vec<_>>(), [(received, 1), (missed[0], 1), (missed[1], 1)]);
}

#[tokio::test]
async fn a_replayed_event_is_identical() {
    let discord = Counterpart::start().await;
    let (mut socket, session, channel, ana) = session(&discord).await;
    let message = discord.say(ana, channel, "hello");
    let first = socket.op().await;

    discord.cut(0);
    let mut again = resume(&discord, &session, socket.sequence - 1).await;

    assert_eq!(again.op().await, first);
    again.event("RESUMED").await;
    let sent = discord.look(|state| {
        let delivery = state.journal.deliveries.iter().find(|delivery| delivery.message == Some(message));
        delivery.map(|delivery| (delivery.sequence, delivery.sent.clone()))
    });
    assert_eq!(sent, Some((first["s"].as_u64().expect("a number"), vec![0, 1])));
}

#[tokio::test]
async fn a_resume_replays_what_a_silent_connection_missed() {
    let discord = Counterpart::start().await;
    let (mut socket, session, channel, ana) = session(&discord).await;

    discord.silence(0);
    discord.say(ana, channel, "into the void");
    socket.send(&json!({ "op": 1, "d": socket.sequence })).await;
    let mut again = resume(&discord, &session, socket.sequence).await;

    assert_eq!(again.event("MESSAGE_CREATE").await["content"], "into the void");
    assert_eq!(socket.next().await, None, "the old connection is cut, and received nothing");
}

#[tokio::test]
async fn expired_and_unknown_sessions_cannot_be_resumed() {
    let discord = Counterpart::with_rules(Rules { resume_window: Duration::ZERO, ..Rules::quick() }).await;
    let (socket, session, ..) = session(&discord).await;
    discord.cut(0);

    for session in [session, json!("no such session")] {
        let mut again = resume(&discord, &session, socket.sequence).await;
        let answer = again.op().await;
        assert_eq!((&answer["op"], &answer["d"]), (&json!(9), &json!(false)));
    }
}

#[tokio::test]
async fn a_session_cannot_be_resumed_from_before_its_buffer() {
    let discord = Counterpart::with_rules(Rules { resume_buffer: 2, ..Rules::quick() }).await;
    let (socket, session, channel, ana) = session(&discord).await;
    discord.cut(0);
    for text in ["one", "two", "three"] {
        discord.say(ana, channel, text);
    }

    let mut again = resume(&discord, &session, socket.sequence).await;

    assert_eq!(again.op().await["op"], 9);
}

#[tokio::test]
async fn a_wrong_token_or_sequence_ends_a_resume() {
    let discord = Counterpart::start().await;
    let (socket, session, ..) = session(&discord).await;
    discord.cut(0);

    let mut stranger = Socket::open(&discord).await;
    stranger.resume("wrong", &session, socket.sequence).await;
    assert_eq!(stranger.closed().await, Some(4004));
    let mut ahead = resume(&discord, &session, socket.sequence + 1).await;
    assert_eq!(ahead.closed().await, Some(4007));
    let mut late = resume(&discord, &session, socket.sequence).await;
    assert_eq!(late.op().await["op"], 9, "that session is over");
}

#[tokio::test]
async fn a_reconnect_is_announced_and_then_enforced() {
    let discord = Counterpart::start().await;
    let (mut socket, session, ..) = session(&discord).await;

    discord.ask_to_reconnect(0);

    assert_eq!(socket.op().await["op"], 7);
    assert_eq!(socket.closed().await, Some(4000));
    resume(&discord, &session, socket.sequence).await.event("RESUMED").await;
    discord.resumes(1).await;
}

#[tokio::test]
async fn an_invalid_session_ends_unless_it_is_marked_resumable() {
    for resumable in [true, false] {
        let discord = Counterpart::start().await;
        let (mut socket, session, ..) = session(&discord).await;

        discord.invalidate(0, resumable);

        assert_eq!(socket.op().await, json!({ "op": 9, "d": resumable, "s": null, "t": null }));
        let answer = resume(&discord, &session, socket.sequence).await.op().await;
        assert_eq!(answer["t"] == "RESUMED", resumable, "{answer}");
    }
}

#[tokio::test]
async fn handshakes_can_be_made_to_fail() {
    let discord = Counterpart::start().await;
    let (socket, session, ..) = session(&discord).await;
    discord.cut(0);

    discord.fail_resumes(1, true);
    assert_eq!(resume(&discord, &session, socket.sequence).await.op().await["d"], true);
    resume(&discord, &session, socket.sequence).await.event("RESUMED").await;
    discord.cut(0);
    discord.forget_left_sessions();
    assert_eq!(resume(&discord, &session, socket.sequence).await.op().await["d"], false);
    discord.with(|state| state.gateway.keys.clear());
    discord.fail_identifies(1);
    let mut again = Socket::open(&discord).await;
    again.identify(&discord.token(), INTENTS, json!([0, 1])).await;
    assert_eq!(again.op().await["op"], 9);
    discord.with(|state| state.gateway.keys.clear());
    again.identify(&discord.token(), INTENTS, json!([0, 1])).await;
    again.event("READY").await;
    let made: Vec<bool> = discord.look(|state| state.journal.identifies.iter().map(|one| one.session.is_some()).collect());
    assert_eq!(made, [true, false, true]);
}

#[tokio::test]
async fn every_message_arrives_once_and_in_order_through_cuts_and_silence() {
    let discord = Counterpart::start().await;
    let (mut socket, session, channel, ana) = session(&discord).await;
    let (mut sent, mut received, mut sequence) = (Vec::new(), Vec::new(), socket.sequence);

    for round in 0..60_u64 {
        sent.extend((0..round % 4).map(|number| discord.say(ana, channel, &format!("{round}.{number}"))));
        // The connection breaks before, between or after the reads of this round's messages. Now and then it goes silent.
        for _ in 0..(round % 3).min(round % 4) {
            let event = socket.event("MESSAGE_CREATE").await;
            received.push(Id::read(&event["id"]).expect("an id"));
            sequence = socket.sequence;
        }
        if round % 5 == 0 {
            discord.silence(0);
            sent.push(discord.say(ana, channel, "into the void"));
        }
        discord.cut(0);
        sent.push(discord.say(ana, channel, "while away"));
        socket = resume(&discord, &session, sequence).await;
        loop {
            let event = socket.op().await;
            sequence = event["s"].as_u64().expect("a number");
            if event["t"] == "RESUMED" {
                break;
            }
            received.extend(Id::read(&event["d"]["id"]).filter(|_| event["t"] == "MESSAGE_CREATE"));
        }
    }

    assert_eq!(received, sent);
    let delivered = discord.look(|state| state.journal.delivered());
    assert!(delivered.values().all(|events| *events == 1));
    assert_eq!(delivered.into_keys().collect::<Vec<_>>(), sent);
    assert_eq!(discord.identifies(), 1);
}
