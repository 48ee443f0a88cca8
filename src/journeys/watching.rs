//! Watching all rooms at once.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use serde_json::Value;

use super::world::{World, channel_key, room};
use crate::actors::runtime::hub::{Live, TOTAL_BACKLOG};

fn names_and_channels(events: &[Value]) -> Vec<(&str, &str)> {
    events.iter().map(|event| (event["event"].as_str().unwrap(), event["channel"].as_str().unwrap_or_default())).collect()
}

/// The texts of the messages, with their rooms.
fn messages(events: &[Value]) -> Vec<(&str, &str)> {
    let messages = events.iter().filter(|event| event["event"] == "message");
    messages.map(|event| (event["channel"].as_str().unwrap(), event["text"].as_str().unwrap())).collect()
}

async fn two_rooms() -> World {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    world
}

#[tokio::test(start_paused = true)]
async fn the_states_of_all_rooms_come_first_and_then_their_events() {
    let world = two_rooms().await;
    let said = world.say("den", "before").await;

    let mut watching = world.watch_rooms("").await;
    let begin = watching.seen().await;
    let (lobby, den) = (world.say("lobby", "one").await, world.say("den", "two").await);
    let seen = watching.seen().await;

    assert_eq!(names_and_channels(&begin), [("hello", "console:den"), ("hello", "console:lobby"), ("complete", "")]);
    assert!(begin[0]["last"].as_u64() >= Some(said.0), "{begin:?}");
    assert_eq!(begin[0]["state"]["companions"][0]["buffer"], serde_json::json!(["before"]));
    assert_eq!(messages(&seen), [("console:lobby", "one"), ("console:den", "two")]);
    let numbers = seen.iter().filter(|event| event["event"] == "message").map(|event| event["seq"].as_u64());
    assert_eq!(numbers.collect::<Vec<_>>(), [Some(lobby.0), Some(den.0)], "each room has numbers of its own");
}

#[tokio::test(start_paused = true)]
async fn drafts_and_states_of_any_room_are_shown() {
    let world = World::with_salon(serde_json::json!({})).await;
    world.side.answer_by(|_| Some(Ok(r#"{"reason": "Me.", "decision": "YES"}"#.to_owned())));
    let mut watching = world.watch_rooms("").await;
    watching.seen().await;

    world.say_then_pass("salon", "Aria, Bruno: hello?", 20.0).await;

    let seen = watching.seen().await;
    for name in ["round_opened", "state", "round", "draft", "statement"] {
        assert!(seen.iter().any(|event| event["event"] == name), "{name}: {seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rooms_come_and_go_while_they_are_watched() {
    let world = World::with_lobby().await;
    let mut watching = world.watch_rooms("").await;
    watching.seen().await;

    world.open("den", &["bruno"]).await;
    world.say("den", "one").await;
    let created = watching.seen().await;
    world.backend.rooms.delete(&room("den")).await.unwrap();
    let deleted = watching.seen().await;
    world.pass(60.0).await;
    world.rest().await;
    world.open("den", &["bruno"]).await;
    world.say("den", "two").await;
    let created_again = watching.seen().await;

    assert_eq!(names_and_channels(&created)[..2], [("hello", "console:den"), ("joined", "console:den")]);
    assert_eq!(messages(&created), [("console:den", "one")]);
    assert_eq!(names_and_channels(&deleted), [("closed", "console:den")]);
    assert_eq!(names_and_channels(&created_again)[..2], [("hello", "console:den"), ("joined", "console:den")]);
    assert_eq!(messages(&created_again), [("console:den", "two")]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_resumes_each_room_after_its_own_number() {
    let world = two_rooms().await;
    world.open("attic", &["bruno"]).await;
    let mut numbers = BTreeMap::new();
    for text in ["one", "two", "three"] {
        for id in ["attic", "den", "lobby"] {
            numbers.insert((id, text), world.say(id, text).await);
        }
    }

    let cursor = format!("den.{},gone.7,lobby.{}", numbers[&("den", "two")], numbers[&("lobby", "one")]);
    let mut watching = world.watch_rooms(&cursor).await;
    let seen = watching.seen().await;

    assert_eq!(messages(&seen), [("console:den", "three"), ("console:lobby", "two"), ("console:lobby", "three")]);
    let others: Vec<_> =
        names_and_channels(&seen).into_iter().filter(|(name, _)| ["hello", "closed", "complete"].contains(name)).collect();
    let expected = [
        ("hello", "console:den"),
        ("closed", "console:gone"),
        ("hello", "console:lobby"),
        ("hello", "console:attic"),
        ("complete", ""),
    ];
    assert_eq!(others, expected);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_falls_behind_resumes_without_a_gap() {
    let world = two_rooms().await;
    let mut watching = world.watch_rooms("").await;
    let mut seen = watching.seen().await;
    world.say("lobby", "one").await;
    seen.extend(watching.seen().await);
    world.say("den", "two").await;
    let (key, mut of_room) = (channel_key("lobby"), world.watch("lobby", None).await);
    for _ in 0..=TOTAL_BACKLOG {
        world.context.hub.publish(&key, Live::Note("{}".into()));
    }

    while of_room.stream.next().await.is_some_and(|live| live.is_ok()) {}
    let missed_of_room = world.total("tertulia_live_missed_total", &[]);
    let lagged = watching.stream.next().await.unwrap().unwrap_err();
    let ended = watching.stream.next().await.is_none();
    world.say("lobby", "three").await;
    let cursor = lagged.after.as_str().unwrap().to_owned();
    let mut again = world.watch_rooms(&cursor).await;
    let after = again.seen().await;

    assert!(ended && missed_of_room > 0 && world.total("tertulia_live_missed_total", &[]) > missed_of_room);
    assert_eq!(messages(&seen), [("console:lobby", "one")]);
    assert_eq!(messages(&after), [("console:den", "two"), ("console:lobby", "three")], "{cursor}");
}
