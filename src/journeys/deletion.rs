//! Questions, turns and replies about messages that are deleted.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, asking_companion, ballot, channel_key, lines, newest, room};
use crate::backend;
use crate::domain::event::{Call, Event};
use crate::domain::id::Seq;
use crate::ports::backend::decisions::{Outcome, Why, WhyAt};
use crate::ports::backend::state::Doing;

const LOBBY: &str = "lobby";
const SALON: &str = "salon";

/// Ana's message is asked about, for three more seconds.
async fn asked() -> (World, Seq) {
    let world = World::with_willing_lobby().await;
    world.side.set_delay(Duration::from_secs(5));
    let seq = world.say_then_pass(LOBBY, "Ari, are you there?", 2.0).await;
    (world, seq)
}

/// Ana's message is being answered, for more than ten more seconds.
async fn answered() -> (World, Seq) {
    let world = World::with_willing_lobby().await;
    world.main.set_delay(Duration::from_secs(20));
    let seq = world.say_then_pass(LOBBY, "Ari, are you there?", 5.0).await;
    (world, seq)
}

/// Aria and Bruno want to speak, Aria more. `secs` pass, and Bruno's model takes `brunos` seconds longer.
async fn salon(secs: f64, brunos: u64) -> (World, Seq) {
    let world = World::with_salon(json!({})).await;
    world.side.answer_by(|request| {
        let importance = if asking_companion(request) == "aria" { 8 } else { 4 };
        Some(Ok(ballot("YES", importance, "none")))
    });
    world.side.set_delay_for("bruno", Duration::from_secs(brunos));
    let seq = world.say_then_pass(SALON, "Ari and Bruno, what of it?", secs).await;
    (world, seq)
}

async fn delete(world: &World, id: &str, seq: Seq) {
    world.backend.messages.delete(&room(id), seq).await.unwrap();
    world.rest().await;
}

async fn doing(world: &World, id: &str) -> Vec<Doing> {
    world.state(id).await.companions.iter().map(|companion| companion.doing).collect()
}

async fn owed(world: &World) -> usize {
    world.reader().outbox(&channel_key(LOBBY)).await.unwrap().len()
}

async fn why(world: &World, at: WhyAt) -> Why {
    world.why(LOBBY, Some("aria"), Some(at)).await.unwrap()
}

/// The names of these events, as seen, in order.
fn only<'a>(seen: &'a [Value], names: &[&str]) -> Vec<&'a str> {
    seen.iter().filter_map(|event| event["event"].as_str()).filter(|name| names.contains(name)).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_about_messages_deleted_while_they_were_asked_about() {
    let (world, seq) = asked().await;
    let mut watching = world.watch(LOBBY, Some(0)).await;

    delete(&world, LOBBY, seq).await;
    let at_once = doing(&world, LOBBY).await;
    world.pass(1_000.0).await;

    assert_eq!(at_once, [Doing::Asked], "the question continues with what it has read");
    assert_eq!(world.history(LOBBY).await, lines(&[]));
    assert_eq!(world.decisions(LOBBY).await[0]["decision"], "YES");
    assert_eq!((world.turn_outcomes(), owed(&world).await), (vec!["failed".to_owned()], 0));
    assert_eq!(world.main.asked.lock().len(), 0, "the main model is not called");
    let seen = watching.seen().await;
    assert_eq!(only(&seen, &["evaluate", "decision", "respond", "failed"]), ["evaluate", "decision", "respond", "failed"]);
    assert_eq!(newest(&seen, "failed")["error"], "deleted");
    let yes = newest(&seen, "decision")["seq"].as_u64().unwrap();
    let decision = why(&world, WhyAt::Event(Seq(yes))).await;
    let [.., got, said] = &decision.story[..] else { panic!("{decision:#?}") };
    assert!(got.text.ends_with("nothing left to answer."), "{decision:#?}");
    assert!(said.text.contains("were deleted, so Aria said nothing"), "{decision:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_keeps_the_answers_of_models_that_were_not_shown_the_message() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("For me.\nYES")]);
    let mut said = Vec::new();
    for number in 0..6 {
        said.push(world.say_then_pass(LOBBY, &format!("Ari, {number}"), 60.0).await);
    }

    delete(&world, LOBBY, said[0]).await;

    let journal = world.journal(&channel_key(LOBBY)).await;
    let calls = journal.iter().filter_map(|recorded| match &recorded.event {
        Event::Decided(decided) => decided.call.as_deref(),
        _ => None,
    });
    // A prompt shows five messages up to Ana's last one, and Aria's answer to that.
    assert_eq!(calls.map(|call| call.answer.is_empty()).collect::<Vec<_>>(), [true, true, true, true, false, false]);
    assert!(Call::default().showed(&[said[0]].into()), "an older record does not say what was shown");
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_dropped_with_the_last_message_that_it_answers() {
    let world = World::with_willing_lobby().await;
    world.main.set_delay(Duration::from_secs(20));
    let one = world.say_with(LOBBY, json!({ "from": "Ben", "text": "good morning" })).await;
    let other = world.say_then_pass(LOBBY, "Ari, are you there?", 5.0).await;
    let mut watching = world.watch(LOBBY, None).await;

    delete(&world, LOBBY, other).await;
    let with_one_left = (doing(&world, LOBBY).await, owed(&world).await);
    delete(&world, LOBBY, one).await;
    let at_once = (doing(&world, LOBBY).await, owed(&world).await);
    world.pass(1_000.0).await;

    assert_eq!(with_one_left, (vec![Doing::Speaking], 1));
    assert_eq!(at_once, (vec![Doing::Listening], 0));
    assert_eq!(world.history(LOBBY).await, lines(&[]));
    assert_eq!(world.turn_outcomes(), ["cancelled"]);
    assert_eq!(only(&watching.seen().await, &["dropped", "failed", "statement"]), ["dropped"]);
}

#[tokio::test(start_paused = true)]
async fn why_tells_that_nothing_was_said_because_of_a_deletion() {
    let (world, seq) = answered().await;
    delete(&world, LOBBY, seq).await;
    let yes = world.decisions(LOBBY).await[0]["seq"].as_u64().unwrap();

    let message = why(&world, WhyAt::Message(seq.to_string().into())).await;
    let decision = why(&world, WhyAt::Event(Seq(yes))).await;

    assert_eq!(message.companions[0].outcome, Some(Outcome::Deleted), "{message:#?}");
    assert!(message.companions[0].text.contains("about to answer"), "{message:#?}");
    let last = decision.story.last().unwrap();
    assert_eq!(&*last.event, "dropped", "{decision:#?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_speaks_in_a_round_about_deleted_messages() {
    let (world, seq) = salon(2.0, 5).await;
    let before = doing(&world, SALON).await;

    delete(&world, SALON, seq).await;
    let at_once = doing(&world, SALON).await;
    world.pass(1_000.0).await;

    assert_eq!(before, [Doing::WantsToSpeak, Doing::Asked, Doing::Listening]);
    assert_eq!(at_once, [Doing::Listening, Doing::Asked, Doing::Listening]);
    assert_eq!(world.recorded(SALON, "round").await.iter().map(|round| &round["selected"]).collect::<Vec<_>>(), ["bruno"]);
    assert_eq!(world.recorded(SALON, "failed").await[0]["error"], "deleted");
    assert_eq!(world.history(SALON).await, lines(&[]));
    let yes = world.decisions(SALON).await[0]["seq"].as_u64().unwrap();
    let events = world.why(SALON, Some("aria"), Some(WhyAt::Event(Seq(yes)))).await.unwrap();
    let events: Vec<_> = events.story.iter().map(|line| &*line.event).collect();
    assert_eq!(events.iter().filter(|event| **event == "round").count(), 1, "{events:#?}");
    assert_eq!(events.iter().filter(|event| **event == "dropped").count(), 1, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_companion_selected_to_speak_about_deleted_messages_says_nothing() {
    let (world, seq) = salon(2.0, 1).await;
    let before = doing(&world, SALON).await;
    let mut watching = world.watch(SALON, None).await;

    delete(&world, SALON, seq).await;
    let at_once = doing(&world, SALON).await;
    world.pass(1_000.0).await;

    assert_eq!(before[0], Doing::WaitingItsTurn);
    assert_eq!(at_once, [Doing::Listening; 3]);
    assert_eq!(world.history(SALON).await, lines(&[]));
    assert_eq!(world.turn_outcomes(), ["cancelled"]);
    assert_eq!(only(&watching.seen().await, &["dropped", "respond"]), ["dropped"]);
}

#[tokio::test(start_paused = true)]
async fn why_tells_that_nothing_was_said_when_answer_and_deletion_cross() {
    let (world, seq) = asked().await;
    world.store.hold();
    let (context, store) = (world.context.clone(), world.store.clone());
    let deletion = tokio::spawn(async move { backend::backend(context, store).messages.delete(&room(LOBBY), seq).await });
    world.pass(0.1).await;
    assert!(world.store.commit_next(), "the start of the deletion is noted");
    // The answer arrives before the channel receives the deletion that is being committed.
    world.pass(4.0).await;

    world.store.release();
    deletion.await.unwrap().unwrap();
    world.pass(1_000.0).await;

    assert_eq!(world.history(LOBBY).await, lines(&[]));
    let events = [world.recorded(LOBBY, "deleted").await, world.recorded(LOBBY, "decision").await];
    assert!(events[0][0]["seq"].as_u64() < events[1][0]["seq"].as_u64(), "they crossed: {events:#?}");
    let decision = why(&world, WhyAt::Event(Seq(events[1][0]["seq"].as_u64().unwrap()))).await;
    let events: Vec<_> = decision.story.iter().map(|line| &*line.event).collect();
    assert_eq!(events[events.len() - 3..], ["decision", "respond", "dropped"], "{decision:#?}");
    let brief = world.why(LOBBY, None, None).await.unwrap();
    assert!(format!("{brief:?}").contains("were deleted, so Aria said nothing"), "{brief:#?}");
}
