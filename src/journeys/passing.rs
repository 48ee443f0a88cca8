//! A main model that decides and speaks in one call.

use serde_json::json;

use super::world::{World, lines, on_record};
use crate::domain::filter::FILTERED;
use crate::ports::language_model::NoAnswer;

async fn lobby() -> World {
    let world = World::with_overlay(json!({ "gate": { "direct_address": "answer_or_pass" } })).await;
    world.open("lobby", &["aria"]).await;
    world.pass(1.0).await;
    world
}

#[tokio::test(start_paused = true)]
async fn an_address_is_answered_by_one_call_and_nothing_is_shown_before_it_is_a_statement() {
    let world = lobby().await;
    let mut watching = world.watch("lobby", None).await;

    world.say_then_pass("lobby", "Ari, are you there?", 5.0).await;

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, are you there?"), ("aria", "Hello!")]));
    assert_eq!((world.side.asked.lock().len(), world.main.asked.lock().len()), (0, 1));
    let seen = watching.seen().await;
    assert_eq!(on_record(&seen), ["hello", "message", "evaluate", "decision", "respond", "statement", "message"]);
    let at = |name: &str| seen.iter().position(|event| event["event"] == name).expect(name);
    assert!(at("decision") < at("draft") && at("draft") < at("statement"), "{seen:#?}");
    let decision = world.decisions("lobby").await.pop().expect("a decision");
    assert_eq!((&decision["decision"], &decision["reason"]), (&json!("YES"), &json!("model_yes")));
    let prompt = world.main.asked.lock()[0].user().into_owned();
    assert!(prompt.contains("write only PASS:"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn a_pass_is_a_no_with_its_reason() {
    let world = lobby().await;
    world.main.answer_by(|_| Some(Ok("PASS: They were talking about me, not to me.".to_owned())));
    let mut watching = world.watch("lobby", None).await;

    world.say_then_pass("lobby", "Ari, she said, is a nice name.", 5.0).await;

    let decision = world.decisions("lobby").await.pop().expect("a decision");
    assert_eq!((&decision["decision"], &decision["reason"]), (&json!("NO"), &json!("model_no")));
    assert_eq!(decision["why"], "They were talking about me, not to me.");
    let seen = watching.seen().await;
    assert!(seen.iter().all(|event| event["event"] != "draft"), "{seen:#?}");
    let why = world.why("lobby", Some("aria"), None).await.expect("a story");
    assert!(why.story.iter().any(|line| line.text.contains("They were talking about me")), "{:#?}", why.story);
}

#[tokio::test(start_paused = true)]
async fn what_is_neither_is_asked_about_first_and_an_error_is_one_of_the_question() {
    let world = lobby().await;
    world.main.answers([Ok("<think>What now?</think>")]);
    world.say_then_pass("lobby", "Ari, good morning!", 5.0).await;
    assert_eq!(world.side.asked.lock().len(), 1, "the side model is asked");

    let refused = NoAnswer::Filtered { endpoint: "test".into(), detail: "400".to_owned() };
    world.main.answer_by(move |_| Some(Err(refused.clone())));
    world.say_then_pass("lobby", "Ari, a grenade!", 5.0).await;

    let decision = world.decisions("lobby").await.pop().expect("a decision");
    assert_eq!((&decision["decision"], &decision["reason"]), (&json!("NO"), &json!(FILTERED)));
}

#[tokio::test(start_paused = true)]
async fn companions_that_are_asked_together_with_others_are_asked_first() {
    let world = World::with_overlay(json!({ "gate": { "direct_address": "answer_or_pass" } })).await;
    world.open("salon", &["aria", "bruno"]).await;
    world.pass(1.0).await;

    world.say_then_pass("salon", "Ari and Bruno, are you there?", 5.0).await;

    assert!(world.side.asked.lock().len() >= 2);
}
