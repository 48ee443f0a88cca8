//! What goes on about messages that are taken back.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, asker, room, said};
use crate::actors::erasure::deletion::append_deletion;
use crate::actors::service::ActorBackend;
use crate::domain::id::Seq;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Reader;
use crate::ports::backend::Backend;
use crate::ports::backend::decisions::{Outcome, Why, WhyAt, WhyQuery};
use crate::ports::backend::keeping::Forget;
use crate::ports::backend::state::Doing;
use crate::ports::language_model::NoAnswer;
use crate::telemetry::memory::attribute;

const LOBBY: &str = "lobby";
const SALON: &str = "salon";
const YES: &str = "They mean me.\nYES";

/// Ana's message is asked about, for three seconds more.
async fn asked() -> (World, Seq) {
    let world = World::with_lobby().await;
    world.side.answers([Ok(YES)]);
    world.side.takes(Duration::from_secs(5));
    let seq = world.say(LOBBY, "Ari, are you there?").await;
    world.pass(2.0).await;
    (world, seq)
}

/// Ana's message is answered, for more than ten seconds more.
async fn answered() -> (World, Seq) {
    let world = World::with_lobby().await;
    world.side.answers([Ok(YES)]);
    world.main.takes(Duration::from_secs(20));
    let seq = world.say(LOBBY, "Ari, are you there?").await;
    world.pass(5.0).await;
    (world, seq)
}

/// Aria and Bruno want to speak, Aria more; after so many seconds, so many later with Bruno.
async fn salon(secs: f64, brunos: u64) -> (World, Seq) {
    let world = World::with_salon(json!({})).await;
    world.side.follows(|request| {
        let importance = if asker(request) == "aria" { 8 } else { 4 };
        let vote = json!({ "reason": "So.", "decision": "YES", "importance": importance, "selected": false, "closing": "none" });
        Some(Ok(vote.to_string()))
    });
    world.side.takes_for("bruno", Duration::from_secs(brunos));
    let seq = world.say(SALON, "Ari and Bruno, what of it?").await;
    world.pass(secs).await;
    (world, seq)
}

async fn delete(world: &World, id: &str, seq: Seq) {
    world.backend.delete_message(&room(id), seq).await.unwrap();
    world.rest().await;
}

async fn doing(world: &World, id: &str) -> Vec<Doing> {
    world.backend.state(&room(id)).await.unwrap().companions.iter().map(|companion| companion.doing).collect()
}

async fn owed(world: &World) -> usize {
    let channel_key = ChannelKey { guild: "home".into(), channel: room(LOBBY).channel() };
    Reader::new(&*world.store).outbox(&channel_key).await.unwrap().len()
}

async fn why(world: &World, at: WhyAt) -> Why {
    world.backend.why(WhyQuery { room: room(LOBBY), companion: Some("aria".into()), at: Some(at) }).await.unwrap()
}

fn outcomes(world: &World) -> Vec<String> {
    world.spans.named("conversation.turn").iter().filter_map(|turn| attribute(turn, "turn.outcome")).collect()
}

fn newest<'a>(seen: &'a [Value], name: &str) -> &'a Value {
    seen.iter().rev().find(|event| event["event"] == name).unwrap_or_else(|| panic!("no {name} in {seen:#?}"))
}

/// The names of these events, as seen, in order.
fn only<'a>(seen: &'a [Value], names: &[&str]) -> Vec<&'a str> {
    seen.iter().filter_map(|event| event["event"].as_str()).filter(|name| names.contains(name)).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_about_what_was_taken_back_while_it_was_asked_about() {
    let (world, seq) = asked().await;
    let mut watching = world.watch(LOBBY, Some(0)).await;

    delete(&world, LOBBY, seq).await;
    let at_once = doing(&world, LOBBY).await;
    world.pass(1_000.0).await;

    assert_eq!(at_once, [Doing::Asked], "it goes on with what it has read");
    assert_eq!(world.history(LOBBY).await, said(&[]));
    assert_eq!(world.decisions(LOBBY).await[0]["decision"], "YES");
    assert_eq!((outcomes(&world), owed(&world).await), (vec!["failed".to_owned()], 0));
    assert_eq!(world.main.asked.lock().unwrap().len(), 0, "nobody is asked for words");
    let seen = watching.seen().await;
    assert_eq!(only(&seen, &["evaluate", "decision", "respond", "failed"]), ["evaluate", "decision", "respond", "failed"]);
    assert_eq!(newest(&seen, "failed")["error"], "taken_back");
    let yes = newest(&seen, "decision")["seq"].as_u64().unwrap();
    let decision = why(&world, WhyAt::Event(Seq(yes))).await;
    assert!(decision.story.last().unwrap().text.contains("were deleted, so nothing was said"), "{decision:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_came_meanwhile_is_answered_though_the_rest_was_taken_back() {
    let (world, seq) = asked().await;
    world.say_with(LOBBY, json!({ "from": "Ben", "text": "Ari, and what of me?" })).await;

    delete(&world, LOBBY, seq).await;
    world.pass(60.0).await;

    assert_eq!(world.told(LOBBY, "respond").await[0]["messages"], json!(["Ari, and what of me?"]));
    assert_eq!(world.history(LOBBY).await, said(&[("Ben", "Ari, and what of me?"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_on_as_long_as_anything_is_left_of_what_it_is_about() {
    let world = World::with_lobby().await;
    world.side.answers([Ok(YES)]);
    world.side.takes(Duration::from_secs(5));
    world.say_with(LOBBY, json!({ "from": "Ben", "text": "good morning" })).await;
    let seq = world.say(LOBBY, "Ari, are you there?").await;
    world.pass(2.0).await;

    delete(&world, LOBBY, seq).await;
    world.pass(60.0).await;

    assert_eq!(world.history(LOBBY).await, said(&[("Ben", "good morning"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_again_about_what_was_taken_back_meanwhile() {
    let world = World::with_lobby().await;
    let refused = NoAnswer::Refused { endpoint: "scripted".into(), detail: "no".into() };
    world.side.answers([Err(refused), Ok(YES)]);
    let seq = world.say(LOBBY, "Ari, are you there?").await;
    world.pass(2.0).await;
    let before = doing(&world, LOBBY).await;

    delete(&world, LOBBY, seq).await;
    world.pass(1_000.0).await;

    assert_eq!(before, [Doing::BackOff]);
    assert_eq!(world.history(LOBBY).await, said(&[]));
    assert_eq!(world.decisions(LOBBY).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_reply_goes_with_the_last_message_that_it_answers() {
    let world = World::with_lobby().await;
    world.side.answers([Ok(YES)]);
    world.main.takes(Duration::from_secs(20));
    let one = world.say_with(LOBBY, json!({ "from": "Ben", "text": "good morning" })).await;
    let other = world.say(LOBBY, "Ari, are you there?").await;
    world.pass(5.0).await;
    let mut watching = world.watch(LOBBY, None).await;

    delete(&world, LOBBY, other).await;
    let with_one_left = (doing(&world, LOBBY).await, owed(&world).await);
    delete(&world, LOBBY, one).await;
    let at_once = (doing(&world, LOBBY).await, owed(&world).await);
    world.pass(1_000.0).await;

    assert_eq!(with_one_left, (vec![Doing::Speaking], 1));
    assert_eq!(at_once, (vec![Doing::Listening], 0));
    assert_eq!(world.history(LOBBY).await, said(&[]));
    assert_eq!(outcomes(&world), ["cancelled"]);
    assert_eq!(only(&watching.seen().await, &["dropped", "failed", "statement"]), ["dropped"]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_dropped_is_not_made_after_a_crash_either() {
    let (world, seq) = answered().await;
    delete(&world, LOBBY, seq).await;

    let world = world.crash().await;
    world.pass(1_000.0).await;

    assert_eq!(world.history(LOBBY).await, said(&[]));
    assert_eq!(owed(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_forgotten_is_not_answered_any_more() {
    let (world, _) = answered().await;

    world.backend.forget(Forget { guild: "home".into(), person: "Ana".into(), answers: false }).await.unwrap();
    world.pass(1_000.0).await;

    assert_eq!(world.history(LOBBY).await, said(&[]));
}

#[tokio::test(start_paused = true)]
async fn it_is_told_why_nothing_was_said() {
    let (world, seq) = answered().await;
    delete(&world, LOBBY, seq).await;
    let yes = world.decisions(LOBBY).await[0]["seq"].as_u64().unwrap();

    let message = why(&world, WhyAt::Message(seq.to_string().into())).await;
    let decision = why(&world, WhyAt::Event(Seq(yes))).await;

    assert_eq!(message.companions[0].outcome, Some(Outcome::Deleted), "{message:#?}");
    assert!(message.companions[0].text.contains("about to answer it"), "{message:#?}");
    let last = decision.story.last().unwrap();
    assert_eq!(&*last.event, "dropped", "{decision:#?}");
}

#[tokio::test(start_paused = true)]
async fn in_a_round_about_what_was_taken_back_nobody_speaks() {
    let (world, seq) = salon(2.0, 5).await;
    let before = doing(&world, SALON).await;

    delete(&world, SALON, seq).await;
    let at_once = doing(&world, SALON).await;
    world.pass(1_000.0).await;

    assert_eq!(before, [Doing::WantsToSpeak, Doing::Asked, Doing::Listening]);
    assert_eq!(at_once, [Doing::Listening, Doing::Asked, Doing::Listening]);
    assert_eq!(world.told(SALON, "round").await.iter().map(|round| &round["selected"]).collect::<Vec<_>>(), ["bruno"]);
    assert_eq!(world.told(SALON, "failed").await[0]["error"], "taken_back");
    assert_eq!(world.history(SALON).await, said(&[]));
    let yes = world.decisions(SALON).await[0]["seq"].as_u64().unwrap();
    let query = WhyQuery { room: room(SALON), companion: Some("aria".into()), at: Some(WhyAt::Event(Seq(yes))) };
    let told = world.backend.why(query).await.unwrap();
    let events: Vec<_> = told.story.iter().map(|line| &*line.event).collect();
    assert_eq!(events.iter().filter(|event| **event == "round").count(), 1, "{told:#?}");
    assert_eq!(events.iter().filter(|event| **event == "dropped").count(), 1, "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_was_selected_to_speak_of_what_was_taken_back_says_nothing() {
    let (world, seq) = salon(2.0, 1).await;
    let before = doing(&world, SALON).await;
    let mut watching = world.watch(SALON, None).await;

    delete(&world, SALON, seq).await;
    let at_once = doing(&world, SALON).await;
    world.pass(1_000.0).await;

    assert_eq!(before[0], Doing::WaitingItsTurn);
    assert_eq!(at_once, [Doing::Listening; 3]);
    assert_eq!(world.history(SALON).await, said(&[]));
    assert_eq!(outcomes(&world), ["cancelled"]);
    assert_eq!(only(&watching.seen().await, &["dropped", "respond"]), ["dropped"]);
}

#[tokio::test(start_paused = true)]
async fn taking_back_again_what_is_gone_changes_nothing_of_a_turn_about_nothing() {
    let (world, seq) = salon(2.0, 5).await;
    delete(&world, SALON, seq).await;
    world.pass(4.0).await;
    let before = doing(&world, SALON).await;
    let mut watching = world.watch(SALON, None).await;

    // As a start does that does not know how far the one before it came.
    let channel_key = ChannelKey { guild: "home".into(), channel: room(SALON).channel() };
    append_deletion(&world.context, &channel_key, &BTreeSet::from([seq])).await.unwrap();
    let at_once = doing(&world, SALON).await;
    world.pass(1_000.0).await;

    assert_eq!((before[1], at_once[1]), (Doing::WaitingItsTurn, Doing::WaitingItsTurn));
    let seen = watching.seen().await;
    assert_eq!(only(&seen, &["dropped", "respond", "failed"]), ["respond", "failed"]);
    assert_eq!(newest(&seen, "failed")["error"], "taken_back");
    assert_eq!(world.history(SALON).await, said(&[]));
}

#[tokio::test(start_paused = true)]
async fn it_is_told_why_nothing_was_said_though_the_answer_crossed_the_taking_back() {
    let (world, seq) = asked().await;
    world.store.hold();
    let (context, store) = (world.context.clone(), world.store.clone());
    let deletion = tokio::spawn(async move { ActorBackend::new(context, store).delete_message(&room(LOBBY), seq).await });
    world.pass(0.1).await;
    assert!(world.store.commit_next(), "it is noted that it is taken back");
    // The answer comes before the channel hears of what is being put on record.
    world.pass(4.0).await;

    world.store.release();
    deletion.await.unwrap().unwrap();
    world.pass(1_000.0).await;

    assert_eq!(world.history(LOBBY).await, said(&[]));
    let told = [world.told(LOBBY, "deleted").await, world.told(LOBBY, "decision").await];
    assert!(told[0][0]["seq"].as_u64() < told[1][0]["seq"].as_u64(), "they crossed: {told:#?}");
    let decision = why(&world, WhyAt::Event(Seq(told[1][0]["seq"].as_u64().unwrap()))).await;
    let events: Vec<_> = decision.story.iter().map(|line| &*line.event).collect();
    assert_eq!(events[events.len() - 3..], ["decision", "respond", "dropped"], "{decision:#?}");
    let brief = world.backend.why(WhyQuery { room: room(LOBBY), companion: None, at: None }).await.unwrap();
    assert!(format!("{brief:?}").contains("had not said yet"), "{brief:#?}");
}
