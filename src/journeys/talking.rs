//! Sending a message and being answered.

use serde_json::json;

use super::delivering::put_owed;
use super::world::{World, channel_key, lines, on_record, refusal, room};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::backend;
use crate::domain::event::Event;
use crate::domain::id::Ticket;
use crate::domain::trigger::Trigger;
use crate::ports::backend::Refused;
use crate::ports::backend::messages::Edit;
use crate::ports::backend::state::Doing;
use crate::samples::outbox_record;

#[tokio::test(start_paused = true)]
async fn an_address_that_is_granted_is_answered_in_history_and_live_in_order_after_its_drafts() {
    let world = World::with_willing_lobby().await;
    let mut watching = world.watch("lobby", None).await;

    world.say_then_pass("lobby", "Ari, are you there?", 5.0).await;

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, are you there?"), ("aria", "Hello!")]));
    let seen = watching.seen().await;
    assert_eq!(on_record(&seen), ["hello", "message", "evaluate", "decision", "respond", "statement", "message"]);
    let draft = seen.iter().position(|event| event["event"] == "draft").expect("a draft was seen");
    assert!(seen[draft]["seq"].is_null() && draft < seen.iter().position(|event| event["event"] == "statement").unwrap());
    assert_eq!((&seen[draft]["text"], &seen[draft]["whole"]), (&"Hello!".into(), &true.into()));
}

#[tokio::test(start_paused = true)]
async fn an_address_that_wakes_a_room_counts_like_any_other() {
    let world = World::with_overlay(json!({ "gate": { "addresses_per_minute": 2 } })).await;
    let rooms = ["one", "two", "three"];
    world.open_in("home", rooms.map(String::from)).await;
    world.pass(1_000.0).await;

    for id in rooms {
        world.say_then_pass(id, "Ari, are you there?", 1.0).await;
    }

    let mut refused = Vec::new();
    for id in rooms {
        let events = world.journal(&channel_key(id)).await;
        refused.push(events.iter().any(|recorded| matches!(recorded.event, Event::AddressRefused { .. })));
    }
    assert_eq!(refused, [false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_silence_is_on_record_with_the_messages_that_it_settled() {
    let world = World::with_lobby().await;

    world.say("lobby", "one").await;
    world.say_then_pass("lobby", "two", 60.0).await;

    let decisions = world.decisions("lobby").await;
    assert_eq!(decisions.len(), 1);
    assert_eq!(decisions[0]["decision"], "NO");
    assert_eq!(decisions[0]["trigger"], "lull");
    assert_eq!(decisions[0]["why"], "No.");
    assert_eq!(decisions[0]["messages"], json!(["one", "two"]));
}

#[tokio::test(start_paused = true)]
async fn a_returning_watcher_receives_what_it_missed() {
    let world = World::with_lobby().await;
    let first = world.say("lobby", "one").await;
    world.say_then_pass("lobby", "two", 60.0).await;

    let mut watching = world.watch("lobby", Some(first.0)).await;

    assert_eq!(watching.names().await, ["hello", "message", "evaluate", "decision", "silence"]);
    world.say("lobby", "three").await;
    assert_eq!(watching.names().await, ["message"]);
}

#[tokio::test(start_paused = true)]
async fn hello_contains_the_state_of_the_room() {
    let world = World::with_lobby().await;
    let last = world.say("lobby", "one").await;
    world.rest().await;

    let hello = world.watch("lobby", None).await.seen().await.remove(0);

    assert_eq!(hello["event"], "hello");
    assert!(hello["last"].as_u64().unwrap() >= last.0);
    let aria = &hello["state"]["companions"][0];
    assert_eq!(aria["id"], "aria");
    assert_eq!(aria["message_count"], 1);
    assert_eq!(aria["buffer"], json!(["one"]));
    assert!(aria["lull_at"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_reply_dropped_before_a_crash_is_not_owed_after_it() {
    let mut world = World::with_lobby().await;
    world.say_then_pass("lobby", "one", 60.0).await;
    put_owed(&world, Ticket(1_000), outbox_record(Trigger::Lull)).await;
    let before = owed(&world).await;

    world.kill(&ChannelActorKey(room("lobby").channel())).await;
    world.pass(10.0).await;

    assert_eq!((before, owed(&world).await), (vec![Ticket(1_000)], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn an_edit_and_a_deletion_are_visible_everywhere_and_a_second_deletion_changes_nothing() {
    let world = World::with_lobby().await;
    let mut watching = world.watch("lobby", None).await;
    let seq = world.say("lobby", "hallo").await;
    let lobby = room("lobby");
    let edit = || world.backend.messages.edit(&lobby, seq, Edit { text: "hello".into() });

    edit().await.unwrap();
    let edited = (world.history("lobby").await, world.state("lobby").await.companions[0].buffer.clone());
    for _ in 0..2 {
        world.backend.messages.delete(&lobby, seq).await.unwrap();
    }

    assert_eq!(edited, (lines(&[("Ana", "hello")]), vec!["hello".into()]));
    assert_eq!(world.history("lobby").await, []);
    assert!(world.state("lobby").await.companions[0].buffer.is_empty());
    assert_eq!(watching.names().await, ["hello", "message", "edited", "deleted"]);
    assert!(edit().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_is_shown_with_the_time_of_the_next_one() {
    let world = World::with_lobby().await;
    world.side.answers([Err(refusal())]);
    let mut watching = world.watch("lobby", None).await;

    world.say_then_pass("lobby", "Ari?", 5.0).await;

    let seen = watching.seen().await;
    let error = seen.iter().find(|event| event["event"] == "error").expect("the error was shown");
    let state = world.state("lobby").await;
    assert_eq!(error["error"], "refused");
    assert_eq!(state.companions[0].doing, Doing::BackOff);
    assert_eq!(error["retry_at"], json!(state.companions[0].retry_at));
    assert_eq!(error["trigger"], json!(state.companions[0].trigger));
}

#[tokio::test(start_paused = true)]
async fn a_reply_to_a_companion_addresses_it() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Me.\nYES"), Ok("Again.\nYES")]);
    world.say_then_pass("lobby", "Ari?", 5.0).await;
    let statement = world.recorded("lobby", "message").await.pop().unwrap();

    world.say_with("lobby", json!({ "from": "Ana", "text": "really", "reply_to": statement["seq"] })).await;
    world.pass(5.0).await;
    let refused = world.try_say("lobby", json!({ "from": "Ana", "text": "x", "reply_to": 999 })).await;

    assert_eq!(world.decisions("lobby").await[1]["trigger"], "direct_address");
    assert!(matches!(refused, Err(Refused::Invalid { field, .. }) if field == "reply_to"));
}

/// The replies that are on record as owed in the lobby.
async fn owed(world: &World) -> Vec<Ticket> {
    world.reader().outbox(&channel_key("lobby")).await.unwrap().into_iter().map(|(ticket, _)| ticket).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_sent_again_is_answered_once_it_is_durable() {
    let world = World::with_lobby().await;
    world.pass(1.0).await;
    let backend = backend::backend(world.context.clone(), world.store.clone());
    let say = || {
        let (backend, message) = (backend.clone(), json!({ "from": "Ana", "text": "one", "id": "a" }));
        tokio::spawn(async move { backend.messages.say(&room("lobby"), serde_json::from_value(message).unwrap()).await })
    };

    world.store.hold_in_sight();
    let first = say();
    world.pass(1.0).await;
    let again = say();
    world.pass(1.0).await;
    let answered_early = [first.is_finished(), again.is_finished()];
    world.store.release();
    let answers = (first.await.unwrap().unwrap(), again.await.unwrap().unwrap());

    assert_eq!(answered_early, [false, false]);
    assert_eq!(answers.0, answers.1);
}
