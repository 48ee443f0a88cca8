//! Malformed frames.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::super::client::{Client, ReceivedEvent};
use super::super::counterpart::{Counterpart, Id, Rules};
use super::super::home::Home;
use super::{Scene, ended_by};

const ROUNDS: usize = 25;
const FRAMES_A_ROUND: usize = 40;

/// A frame that a correct gateway does not send.
#[derive(Clone, Debug)]
enum MalformedFrame {
    Text(String),
    Bytes(Vec<u8>),
}

#[tokio::test]
async fn the_next_message_arrives_after_any_malformed_frames() {
    let rules = Rules { heartbeat_tolerance: Duration::from_millis(500), resume_buffer: 10_000, ..Rules::quick() };
    let Scene { home: Home { discord, general, ana, .. }, mut client } = Scene::with(rules, |_| {}).await;
    // The same frames in every run.
    let mut runner = TestRunner::deterministic();
    let any_frame = malformed_frame();

    for round in 0..ROUNDS {
        for _ in 0..FRAMES_A_ROUND {
            match any_frame.new_tree(&mut runner).expect("a frame").current() {
                MalformedFrame::Text(text) => discord.send_text(0, &text),
                MalformedFrame::Bytes(bytes) => discord.send_bytes(0, &bytes),
            }
        }
        speak_until_received(&discord, &client, general, ana, round).await;
    }

    assert!(client.total("tertulia_discord_frames_unreadable_total", &[("error_type", "malformed")]) > 100.0);
    // The connection still runs: `stop` panics if it has ended.
    client.stop().await;
}

#[tokio::test]
async fn a_heartbeat_interval_of_zero_or_a_malformed_compression_stream_ends_one_connection_and_not_the_process() {
    for frame in [&br#"{"op":10,"d":{"heartbeat_interval":0}}"#[..], &[0xff; 64]] {
        let Scene { home: Home { discord, general, ana, .. }, client } = Scene::new().await;

        match std::str::from_utf8(frame) {
            Ok(text) => discord.send_text(0, text),
            Err(_) => discord.send_bytes(0, frame),
        }
        discord.resumes(1).await;
        speak_until_received(&discord, &client, general, ana, 0).await;

        assert_eq!(ended_by(&client, "confused"), 1.0, "{frame:?}");
    }
}

#[tokio::test]
async fn an_unreadable_ready_leads_to_a_resume() {
    let Scene { home: Home { discord, .. }, client } = Scene::new().await;

    discord.send_text(0, r#"{"op":0,"s":2,"t":"READY","d":{"session_id":7}}"#);
    discord.resumes(1).await;
    client.inbox.until_kind("RESUMED", 1).await;

    assert_eq!(discord.identifies(), 1);
}

/// Sends a message until it is received. A message between two sessions reaches neither of them, and after a frame with a wrong sequence
/// number the client continues from that number.
async fn speak_until_received(discord: &Counterpart, client: &Client, general: Id, ana: Id, round: usize) {
    let handshakes =
        |events: &[ReceivedEvent]| events.iter().filter(|event| ["READY", "RESUMED"].contains(&&*event.kind)).count();
    loop {
        let text = format!("round {round}");
        let before = handshakes(&client.inbox.events());
        discord.say(ana, general, &text);
        let is_received = |events: &[ReceivedEvent]| events.iter().any(|event| event.data["content"] == text);
        let events = client.inbox.until(|events| is_received(events) || handshakes(events) > before).await;
        if is_received(&events) {
            return;
        }
    }
}

fn malformed_frame() -> impl Strategy<Value = MalformedFrame> {
    prop_oneof![
        4 => ".{0,80}".prop_map(MalformedFrame::Text),
        4 => (frame(), any::<prop::sample::Index>()).prop_map(|(frame, at)| MalformedFrame::Text(cut(&frame, at.index(frame.len() + 1)))),
        8 => frame().prop_map(MalformedFrame::Text),
        1 => (1_000_usize..50_000).prop_map(|depth| {
            MalformedFrame::Text(format!(r#"{{"op":0,"s":5,"t":"DEEP","d":{}{}}}"#, "[".repeat(depth), "]".repeat(depth)))
        }),
        1 => (1_000_usize..500_000).prop_map(|length| MalformedFrame::Text("x".repeat(length))),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(MalformedFrame::Bytes),
    ]
}

/// A frame of the right shape with random, often invalid, parts.
fn frame() -> impl Strategy<Value = String> {
    let select = |values: &'static [&'static str]| prop::sample::select(values);
    let op = prop_oneof![
        // Frames that end a connection are rare, so that the others are received.
        30 => select(&["0", "0", "0", "11", "2", "99", "-1", "\"0\"", "null", "1e99", "0.5", "184467440737095516160", "[]"]),
        1 => select(&["1", "7", "9", "10"]),
    ];
    let sequence = select(&["1", "2", "0", "-1", "18446744073709551615", "18446744073709551616", "null", "\"3\"", "1e400", "{}"]);
    let kind = prop_oneof![
        10 => select(&["\"MESSAGE_CREATE\"", "\"\"", "null", "7", "\"\\u0000\"", "\"RESUMED\"", "\"X\\\"Y\"", "{\"t\":\"READY\"}"]),
        1 => select(&["\"READY\""]),
    ];
    let data = select(&[
        "{}",
        "null",
        "true",
        "[[[[]]]]",
        "\"d\"",
        "{\"id\":\"99999999999999999999999999\"}",
        "{\"heartbeat_interval\":0}",
        "{\"heartbeat_interval\":1}",
        "{\"heartbeat_interval\":18446744073709551615}",
        "{\"session_id\":\"x\",\"resume_gateway_url\":\"ws://[\",\"user\":{\"id\":\"5\"}}",
        "{\"session_id\":\"x\",\"resume_gateway_url\":7,\"user\":{\"id\":\"5\"}}",
        "{\"session_id\":\"x\",\"user\":{\"id\":\"0\"}}",
        "1e999999",
        "\"\\ud800\"",
        "",
    ]);
    (op, sequence, kind, data).prop_map(|(op, s, t, d)| format!(r#"{{"t":{t},"s":{s},"op":{op},"d":{d}}}"#))
}

fn cut(text: &str, at: usize) -> String {
    text.char_indices().take_while(|(index, _)| *index < at).map(|(_, c)| c).collect()
}
