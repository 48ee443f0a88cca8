//! Sending a message and being answered.

use std::time::Duration;

use super::world::{World, channel_key, lines, purpose, refusal, room};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{OutboxWrite, Record, WriterMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, WriterKey};
use crate::actors::service;
use crate::domain::event::Event;
use crate::domain::id::{Seq, Ticket};
use crate::domain::question_context::Purpose;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::Refused;
use crate::ports::backend::messages::{Edit, NewMessage};
use crate::ports::backend::state::Doing;
use crate::samples::outbox_record;

#[tokio::test(start_paused = true)]
async fn an_address_that_is_granted_is_answered_in_history_and_live_in_order() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    let mut watching = world.watch("lobby", None).await;

    world.say("lobby", "Ari, are you there?").await;
    world.pass(5.0).await;

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, are you there?"), ("aria", "Hello!")]));
    let names = watching.names().await;
    assert_eq!(names, ["hello", "message", "evaluate", "decision", "respond", "statement", "message"]);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_wakes_a_room_counts_like_any_other() {
    let world = World::with_overlay(serde_json::json!({ "gate": { "addresses_per_minute": 2 } })).await;
    let rooms = ["one", "two", "three"];
    world.open_in("home", rooms.map(String::from)).await;
    world.pass(1_000.0).await;

    for id in rooms {
        world.say(id, "Ari, are you there?").await;
        world.pass(1.0).await;
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
async fn a_returning_watcher_receives_what_it_missed() {
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
    assert_eq!(aria["buffer"], serde_json::json!(["one"]));
    assert!(aria["lull_at"].is_string());
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_visible_everywhere() {
    let world = World::with_lobby().await;
    let mut watching = world.watch("lobby", None).await;
    let seq = world.say("lobby", "hallo").await;

    world.backend.messages.edit(&room("lobby"), seq, Edit { text: "hello".into() }).await.unwrap();

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "hello")]));
    let state = world.backend.rooms.state(&room("lobby")).await.unwrap();
    assert_eq!(state.companions[0].buffer, ["hello".into()]);
    assert_eq!(watching.names().await, ["hello", "message", "edited"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_message_is_gone_and_a_second_deletion_changes_nothing() {
    let world = World::with_lobby().await;
    let mut watching = world.watch("lobby", None).await;
    let seq = world.say("lobby", "secret").await;

    world.backend.messages.delete(&room("lobby"), seq).await.unwrap();
    world.backend.messages.delete(&room("lobby"), seq).await.unwrap();

    assert_eq!(world.history("lobby").await, []);
    let state = world.backend.rooms.state(&room("lobby")).await.unwrap();
    assert!(state.companions[0].buffer.is_empty());
    assert_eq!(watching.names().await, ["hello", "message", "deleted"]);
    assert!(world.backend.messages.edit(&room("lobby"), Seq(seq.0), Edit { text: "x".into() }).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn clearing_drops_the_buffers_and_keeps_the_history() {
    let world = World::with_lobby().await;
    world.say("lobby", "Ari?").await;
    world.rest().await;

    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.decisions("lobby").await, Vec::<serde_json::Value>::new());
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari?")]));
}

#[tokio::test(start_paused = true)]
async fn a_room_that_slept_answers_as_before() {
    let world = World::with_lobby().await;
    world.say("lobby", "one").await;
    world.pass(1_000.0).await;
    let asleep =
        world.context.directory.find(&crate::actors::runtime::actor_keys::ChannelActorKey(room("lobby").channel())).is_none();
    world.side.answers([Ok("Me.\nYES")]);

    world.say("lobby", "Ari?").await;
    world.pass(5.0).await;

    assert!(asleep);
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "one"), ("Ana", "Ari?"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn the_same_id_again_is_the_same_message() {
    let world = World::with_lobby().await;

    let first = world.say_with("lobby", serde_json::json!({ "from": "Ana", "text": "one", "id": "x" })).await;
    let again = world.say_with("lobby", serde_json::json!({ "from": "Ana", "text": "two", "id": "x" })).await;

    assert_eq!(first, again);
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "one")]));
}

#[tokio::test(start_paused = true)]
async fn clearing_while_a_companion_speaks_drops_its_statement() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.main.set_delay(Duration::from_secs(10));
    world.say("lobby", "Ari?").await;
    world.pass(3.0).await;
    let speaking = world.backend.rooms.state(&room("lobby")).await.unwrap();

    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(speaking.companions[0].doing, Doing::Speaking);
    assert!(speaking.floor.is_some() && speaking.companions[0].since.is_some());
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari?")]));
    assert_eq!(owed(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_reply_dropped_before_a_crash_is_not_owed_after_it() {
    let mut world = World::with_lobby().await;
    world.say("lobby", "one").await;
    world.pass(60.0).await;
    let (channel_key, channel) = (ChannelKey { guild: "home".into(), channel: room("lobby").channel() }, room("lobby").channel());
    let dropped = outbox_record(Trigger::Lull);
    let (reply, committed) = Reply::awaited();
    let outbox = vec![OutboxWrite::Put(Ticket(1_000), dropped)];
    let record = Record { outbox, ..Record::new(channel_key, world.context.clock.now(), reply) };
    world.context.directory.find(&WriterKey()).unwrap().cast(WriterMessage::Record(record)).unwrap();
    committed.await.unwrap().unwrap();
    let before = owed(&world).await;

    world.kill(&ChannelActorKey(channel)).await;
    world.pass(10.0).await;

    assert_eq!((before, owed(&world).await), (vec![Ticket(1_000)], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn drafts_are_seen_before_the_statement() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Me.\nYES")]);
    let mut watching = world.watch("lobby", None).await;

    world.say("lobby", "Ari?").await;
    world.pass(5.0).await;

    let seen = watching.seen().await;
    let draft = seen.iter().position(|event| event["event"] == "draft").expect("a draft was seen");
    let statement = seen.iter().position(|event| event["event"] == "statement").expect("a statement was seen");
    assert!(draft < statement);
    assert!(seen[draft]["seq"].is_null());
    assert_eq!((&seen[draft]["text"], &seen[draft]["whole"]), (&"Hello!".into(), &true.into()));
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_is_shown_with_the_time_of_the_next_one() {
    let world = World::with_lobby().await;
    world.side.answers([Err(refusal())]);
    let mut watching = world.watch("lobby", None).await;

    world.say("lobby", "Ari?").await;
    world.pass(5.0).await;

    let seen = watching.seen().await;
    let error = seen.iter().find(|event| event["event"] == "error").expect("the error was shown");
    let state = world.backend.rooms.state(&room("lobby")).await.unwrap();
    assert_eq!(error["error"], "refused");
    assert_eq!(state.companions[0].doing, Doing::BackOff);
    assert_eq!(error["retry_at"], serde_json::json!(state.companions[0].retry_at));
    assert_eq!(error["trigger"], serde_json::json!(state.companions[0].trigger));
}

#[tokio::test(start_paused = true)]
async fn a_reply_to_a_companion_addresses_it() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Me.\nYES"), Ok("Again.\nYES")]);
    world.say("lobby", "Ari?").await;
    world.pass(5.0).await;
    let statement =
        world.watch("lobby", Some(0)).await.seen().await.into_iter().rfind(|event| event["event"] == "message").unwrap();

    world.say_with("lobby", serde_json::json!({ "from": "Ana", "text": "really", "reply_to": statement["seq"] })).await;
    world.pass(5.0).await;
    let unknown: NewMessage = serde_json::from_value(serde_json::json!({ "from": "Ana", "text": "x", "reply_to": 999 })).unwrap();
    let refused = world.backend.messages.say(&room("lobby"), unknown).await;

    assert_eq!(world.decisions("lobby").await[1]["trigger"], "direct_address");
    assert!(matches!(refused, Err(Refused::Invalid { field, .. }) if field == "reply_to"));
}

#[tokio::test(start_paused = true)]
async fn the_rolling_summary_is_refreshed_in_the_background_and_shown_in_later_prompts() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("They talked of nets and tar.\nNO")]);

    for number in 0..45 {
        world.say("lobby", &format!("remark {number}")).await;
        world.pass(3.0).await;
    }
    world.pass(60.0).await;
    world.say("lobby", "and one more").await;
    world.pass(60.0).await;

    let asked = world.side.asked.lock().unwrap();
    let summaries: Vec<_> = asked.iter().filter(|request| *purpose(request) == Purpose::Summary).collect();
    assert_eq!(summaries.len(), 1, "once for forty settled messages");
    assert!(summaries[0].user().contains("remark 0"));
    let last = asked.last().unwrap();
    assert!(matches!(purpose(last), Purpose::Vote { .. }));
    assert!(last.user().contains("They talked of nets and tar."), "{}", last.user());
}

/// The replies that are on record as owed in the lobby.
async fn owed(world: &World) -> Vec<Ticket> {
    let channel_key = ChannelKey { guild: "home".into(), channel: room("lobby").channel() };
    world.reader().outbox(&channel_key).await.unwrap().into_iter().map(|(ticket, _)| ticket).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_sent_again_is_answered_once_it_is_durable() {
    let world = World::with_lobby().await;
    world.pass(1.0).await;
    let backend = service::backend(world.context.clone(), world.store.clone());
    let say = || {
        let (backend, message) = (backend.clone(), serde_json::json!({ "from": "Ana", "text": "one", "id": "a" }));
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
