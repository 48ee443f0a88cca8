//! What people say while a statement is being made: it is begun again or cancelled, and others are asked and speak meanwhile.

use std::time::Duration;

use serde_json::json;

use super::world::{World, ballot, lines, purpose};
use crate::domain::question_context::Purpose;
use crate::domain::trigger::Trigger;
use crate::ports::language_model::Request;

const ROME: &str = "Ari, what do you think of Rome?";
const FILM: &str = "I mean the film, not the city.";
const OVEN: &str = "Bruno, is the oven off?!";

/// Whoever is addressed wants to speak, and nobody else does.
fn vote(request: &Request) -> String {
    let Purpose::Vote { trigger } = purpose(request) else { return "0".into() };
    let decision = if *trigger == Trigger::DirectAddress { "YES" } else { "NO" };
    ballot(decision, 5, "none")
}

/// The rooms, in which Aria writes for so long.
async fn slow(companions: &[&str], writes: Duration, overlay: serde_json::Value) -> World {
    let world = World::with_overlay(overlay).await;
    world.open("lobby", companions).await;
    follow_the_script(&world, writes);
    world
}

fn follow_the_script(world: &World, writes: Duration) {
    world.side.answer_by(|request| Some(Ok(vote(request))));
    world.main.set_delay_for("aria", writes);
}

async fn owed(world: &World) -> usize {
    world.reader().owing(&"home".into()).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn what_is_added_while_a_statement_is_being_made_is_answered_with_it() {
    let world = slow(&["aria"], Duration::from_secs(5), json!({})).await;
    let mut watching = world.watch("lobby", None).await;

    world.say_then_pass("lobby", ROME, 2.0).await;
    world.say_then_pass("lobby", FILM, 20.0).await;

    assert_eq!(world.history("lobby").await, lines(&[("Ana", ROME), ("Ana", FILM), ("aria", "Hello!")]));
    let names = watching.names().await;
    let expected =
        ["hello", "message", "evaluate", "decision", "respond", "message", "replanning", "replanned", "statement", "message"];
    assert_eq!(names, expected);
    let prompts: Vec<_> = world.main.asked.lock().iter().map(|request| request.user().to_string()).collect();
    assert_eq!(prompts.len(), 2);
    assert!(!prompts[0].contains(FILM) && prompts[1].contains(ROME) && prompts[1].contains(FILM));
    assert_eq!(owed(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_statement_is_begun_again_once_although_the_server_dies_in_between() {
    for before in [0.0, 0.5, 1.5] {
        let world = slow(&["aria"], Duration::from_secs(5), json!({})).await;
        world.say_then_pass("lobby", ROME, 2.0).await;
        world.say_then_pass("lobby", FILM, before).await;

        let world = world.crash().await;
        world.pass(20.0).await;

        assert_eq!(world.history("lobby").await, lines(&[("Ana", ROME), ("Ana", FILM), ("aria", "Hello!")]), "{before} s");
        let answered = world.main.asked.lock().last().unwrap().user().to_string();
        assert!(answered.contains(ROME) && answered.contains(FILM), "{before} s: {answered}");
        assert_eq!(owed(&world).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_phrase_cancels_the_call_and_nobody_is_asked_about_it() {
    for is_crashed in [false, true] {
        let mut world = slow(&["aria"], Duration::from_secs(30), json!({})).await;
        world.say_then_pass("lobby", ROME, 3.0).await;
        world.say("lobby", "Never mind, Ari!").await;
        if is_crashed {
            world = world.crash().await;
        }
        world.pass(60.0).await;

        assert_eq!(world.history("lobby").await, lines(&[("Ana", ROME), ("Ana", "Never mind, Ari!")]));
        let failed = world.recorded("lobby", "failed").await;
        assert_eq!(failed.len(), 1);
        assert_eq!((failed[0]["error"].as_str(), failed[0]["companion"].as_str()), (Some("cancelled"), Some("aria")));
        let last = world.decisions("lobby").await.pop().unwrap();
        assert_eq!((&last["decision"], &last["reason"]), (&json!("NO"), &json!("cancelled")));
        assert_eq!((world.calls().await, owed(&world).await), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_of_another_companion_is_asked_about_at_once_and_answered_when_the_floor_is_free() {
    for crash_at in [None, Some(0.1), Some(1.2)] {
        let mut world = slow(&["aria", "bruno"], Duration::from_secs(15), json!({})).await;
        world.say_then_pass("lobby", ROME, 6.0).await;
        world.say("lobby", OVEN).await;
        world.rest().await;
        let asked = world.side.asked_for("bruno");
        if let Some(secs) = crash_at {
            world.pass(secs).await;
            world = world.crash().await;
            follow_the_script(&world, Duration::from_secs(15));
        }
        world.pass(60.0).await;

        assert_eq!(asked, 1, "at once");
        let expected = lines(&[("Ana", ROME), ("Ana", OVEN), ("aria", "Hello!"), ("bruno", "Hello!")]);
        assert_eq!(world.history("lobby").await, expected, "{crash_at:?}");
        assert_eq!(owed(&world).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_companion_that_writes_for_too_long_speaks_later_and_loses_no_word() {
    let overlay = json!({ "turn_taking": { "floor_timeout_secs": 10 } });
    for crash_at in [None, Some(11.0), Some(14.0)] {
        let mut world = slow(&["aria", "bruno"], Duration::from_secs(40), overlay.clone()).await;
        world.say_then_pass("lobby", ROME, 8.0).await;
        world.say("lobby", OVEN).await;
        if let Some(secs) = crash_at {
            world.pass(secs - 8.0).await;
            world = world.crash().await;
            follow_the_script(&world, Duration::from_secs(40));
        }
        world.pass(10.0).await;
        let state = world.state("lobby").await;
        world.pass(90.0).await;

        assert_eq!(state.late.iter().map(|late| late.companion.as_str()).collect::<Vec<_>>(), ["aria"], "{crash_at:?}");
        let expected = lines(&[("Ana", ROME), ("Ana", OVEN), ("bruno", "Hello!"), ("aria", "Hello!")]);
        assert_eq!(world.history("lobby").await, expected, "{crash_at:?}");
        assert_eq!(owed(&world).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_companion_that_leaves_or_is_paused_says_nothing() {
    let overlay = json!({ "turn_taking": { "floor_timeout_secs": 10 } });
    for leaves in [false, true] {
        let world = slow(&["aria", "bruno"], Duration::from_secs(40), overlay.clone()).await;
        world.say_then_pass("lobby", ROME, 20.0).await;

        if leaves {
            world.open("lobby", &["bruno"]).await;
        } else {
            world.patch("lobby", json!({ "paused": true })).await.unwrap();
        }
        world.pass(60.0).await;

        assert_eq!(world.history("lobby").await, lines(&[("Ana", ROME)]));
        let failed = world.recorded("lobby", "failed").await;
        assert_eq!(failed.iter().map(|failed| failed["error"].as_str()).collect::<Vec<_>>(), [Some("closed")]);
        assert_eq!((world.calls().await, owed(&world).await), (0, 0));
    }
}
