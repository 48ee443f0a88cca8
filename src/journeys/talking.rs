//! Saying something, being heard, being answered.

use super::world::{World, room, said};
use crate::domain::id::Seq;
use crate::ports::house::House;
use crate::ports::house::messages::Edit;

#[tokio::test(start_paused = true)]
async fn an_address_that_is_granted_is_answered_in_history_and_live_in_order() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    let mut watching = world.watch("lobby", None).await;

    world.say("lobby", "Ari, are you there?").await;
    world.pass(5.0).await;

    assert_eq!(world.history("lobby").await, said(&[("Ana", "Ari, are you there?"), ("aria", "Hello!")]));
    let names = watching.names().await;
    assert_eq!(names, ["hello", "message", "evaluate", "decision", "respond", "statement", "message"]);
}

#[tokio::test(start_paused = true)]
async fn a_silence_is_on_record_with_what_it_settled() {
    let world = World::with_lobby().await;

    world.say("lobby", "one").await;
    world.say("lobby", "two").await;
    world.pass(60.0).await;

    let decisions = world.decisions("lobby").await;
    assert_eq!(decisions.len(), 1);
    assert_eq!(decisions[0]["decision"], "NO");
    assert_eq!(decisions[0]["trigger"], "lull");
    assert_eq!(decisions[0]["why"], "No.");
    assert_eq!(decisions[0]["messages"], serde_json::json!(["one", "two"]));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_who_comes_back_is_told_what_it_missed() {
    let world = World::with_lobby().await;
    let first = world.say("lobby", "one").await;
    world.say("lobby", "two").await;
    world.pass(60.0).await;

    let mut watching = world.watch("lobby", Some(first.0)).await;

    assert_eq!(watching.names().await, ["hello", "message", "evaluate", "decision", "silence"]);
    world.say("lobby", "three").await;
    assert_eq!(watching.names().await, ["message"]);
}

#[tokio::test(start_paused = true)]
async fn hello_says_how_the_room_stands() {
    let world = World::with_lobby().await;
    let last = world.say("lobby", "one").await;
    world.rest().await;

    let hello = world.watch("lobby", None).await.seen().await.remove(0);

    assert_eq!(hello["event"], "hello");
    assert!(hello["last"].as_u64().unwrap() >= last.0);
    let aria = &hello["state"]["companions"][0];
    assert_eq!(aria["id"], "aria");
    assert_eq!(aria["message_count"], 1);
    assert_eq!(aria["buffer"], serde_json::json!(["one"]));
    assert!(aria["lull_at"].is_string());
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_read_everywhere() {
    let world = World::with_lobby().await;
    let mut watching = world.watch("lobby", None).await;
    let seq = world.say("lobby", "hallo").await;

    world.house.edit(&room("lobby"), seq, Edit { text: "hello".into() }).await.unwrap();

    assert_eq!(world.history("lobby").await, said(&[("Ana", "hello")]));
    let state = world.house.state(&room("lobby")).await.unwrap();
    assert_eq!(state.companions[0].buffer, ["hello".into()]);
    assert_eq!(watching.names().await, ["hello", "message", "edited"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_back_is_gone_and_taking_it_back_again_changes_nothing() {
    let world = World::with_lobby().await;
    let mut watching = world.watch("lobby", None).await;
    let seq = world.say("lobby", "secret").await;

    world.house.unsay(&room("lobby"), seq).await.unwrap();
    world.house.unsay(&room("lobby"), seq).await.unwrap();

    assert_eq!(world.history("lobby").await, []);
    let state = world.house.state(&room("lobby")).await.unwrap();
    assert!(state.companions[0].buffer.is_empty());
    assert_eq!(watching.names().await, ["hello", "message", "deleted"]);
    assert!(world.house.edit(&room("lobby"), Seq(seq.0), Edit { text: "x".into() }).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn clearing_drops_what_is_considered_and_keeps_the_history() {
    let world = World::with_lobby().await;
    world.say("lobby", "Ari?").await;
    world.rest().await;

    world.house.clear(&room("lobby")).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.decisions("lobby").await, Vec::<serde_json::Value>::new());
    assert_eq!(world.history("lobby").await, said(&[("Ana", "Ari?")]));
}

#[tokio::test(start_paused = true)]
async fn a_room_that_slept_answers_as_before() {
    let world = World::with_lobby().await;
    world.say("lobby", "one").await;
    world.pass(1_000.0).await;
    let asleep = world.kit.directory.find(&crate::actors::places::ChannelPlace(room("lobby").channel())).is_none();
    world.side.answers([Ok("Me.\nYES")]);

    world.say("lobby", "Ari?").await;
    world.pass(5.0).await;

    assert!(asleep);
    assert_eq!(world.history("lobby").await, said(&[("Ana", "one"), ("Ana", "Ari?"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn the_same_id_again_is_the_same_message() {
    let world = World::with_lobby().await;

    let first = world.say_with("lobby", serde_json::json!({ "from": "Ana", "text": "one", "id": "x" })).await;
    let again = world.say_with("lobby", serde_json::json!({ "from": "Ana", "text": "two", "id": "x" })).await;

    assert_eq!(first, again);
    assert_eq!(world.history("lobby").await, said(&[("Ana", "one")]));
}
