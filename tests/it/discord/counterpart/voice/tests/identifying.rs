//! IDENTIFY, the selection of a protocol, and what is refused.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::super::{Ended, Mode, Rules, VoiceServer};
use super::client::{Socket, identify};
use super::{ANA, BO, CHANNEL, GUILD, start};
use crate::discord::counterpart::Id;

/// The close code after a payload that follows these steps.
async fn refused(voice: &VoiceServer, steps: usize, op: u64, data: serde_json::Value) -> Option<u16> {
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let mut socket = Socket::open(&grant.endpoint).await;
    if steps > 0 {
        socket.send(0, identify(&grant)).await;
        socket.op(2).await;
    }
    socket.send(op, data).await;
    socket.closed().await
}

#[tokio::test]
async fn wrong_credentials_are_refused() {
    let voice = start();
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let with = |field: &str, value: serde_json::Value| {
        let mut data = identify(&grant);
        data[field] = value;
        data
    };
    let cases = [
        (with("token", json!("another")), 4004),
        (with("session_id", json!("another")), 4006),
        (with("user_id", json!(BO)), 4006),
        (with("server_id", json!(Id(5))), 4006),
        (with("server_id", json!(7)), 4002),
        (with("max_dave_protocol_version", json!(0)), 4017),
    ];
    for (data, code) in cases {
        let mut socket = Socket::open(&grant.endpoint).await;
        socket.send(0, data.clone()).await;
        assert_eq!(socket.closed().await, Some(code), "{data}");
    }
    voice.grant(GUILD, CHANNEL, ANA);
    let mut socket = Socket::open(&grant.endpoint).await;
    socket.send(0, identify(&grant)).await;
    assert_eq!(socket.closed().await, Some(4006), "the token was replaced");
}

#[tokio::test]
async fn wrong_payloads_are_refused() {
    let voice = start();
    let of =
        |protocol: &str, mode: &str| json!({ "protocol": protocol, "data": { "address": "127.0.0.1", "port": 1, "mode": mode } });
    assert_eq!(refused(&voice, 0, 5, json!({ "speaking": 1, "delay": 0, "ssrc": 1 })).await, Some(4003));
    assert_eq!(refused(&voice, 1, 99, json!({})).await, Some(4001));
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    assert_eq!(refused(&voice, 1, 0, identify(&grant)).await, Some(4005));
    assert_eq!(refused(&voice, 1, 1, of("webrtc", Mode::Aes256Gcm.name())).await, Some(4012));
    assert_eq!(refused(&voice, 1, 1, of("udp", "xsalsa20_poly1305")).await, Some(4016));
    assert_eq!(refused(&voice, 1, 1, json!({ "protocol": "udp", "data": {} })).await, Some(4020));
    assert_eq!(refused(&voice, 1, 5, json!({ "speaking": 1, "delay": 0, "ssrc": 1 })).await, Some(4020));
    assert_eq!(refused(&voice, 1, 3, json!(5)).await, Some(4020));
    let mut socket = Socket::open(&grant.endpoint).await;
    socket.send_raw(Message::text("{")).await;
    assert_eq!(socket.closed().await, Some(4002));
    let ended = voice.until("the ends", |voice| (voice.journal.ended.len() >= 9).then(|| voice.journal.ended.clone())).await;
    assert!(ended.contains(&(Some(ANA), Ended::Here(4016, "Unknown encryption mode."))));
}

#[tokio::test]
async fn too_many_payloads_are_refused() {
    let voice = VoiceServer::start(Rules { sends: 3, ..Rules::quick() });
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let (mut socket, ..) = Socket::described(&grant).await;

    socket.send(3, json!({ "t": 1, "seq_ack": 1 })).await;
    socket.send(3, json!({ "t": 2, "seq_ack": 1 })).await;

    assert_eq!(socket.closed().await, Some(4021));
}

#[tokio::test]
async fn a_client_without_heartbeats_is_timed_out() {
    let tolerance = std::time::Duration::ZERO;
    let voice = VoiceServer::start(Rules { heartbeat_tolerance: tolerance, ..Rules::quick() });
    let grant = voice.grant(GUILD, CHANNEL, ANA);

    let (mut socket, ..) = Socket::described(&grant).await;

    assert_eq!(socket.closed().await, Some(4009));
    let mut socket = Socket::open(&grant.endpoint).await;
    socket.resume(&grant, 1).await;
    assert_eq!(socket.closed().await, Some(4006));
}
