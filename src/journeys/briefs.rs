//! Long personas: decisions see their briefs, which the side model makes once.

use serde_json::{Value, json};

use super::world::{World, purpose};
use crate::actors::companion::brief_writing;
use crate::backend::loading;
use crate::domain::question_context::Purpose;
use crate::journal::key;
use crate::ports::backend::usage::UsageQuery;
use crate::ports::language_model::{NoAnswer, Request};
use crate::ports::store::Store as _;

const BRIEF: &str = "You collect clocks.";

/// Settings with a side model, and this persona for all companions.
fn settings(persona: &str) -> Value {
    json!({
        "models": { "side": { "base_url": "http://127.0.0.1:1/v1", "model": "m" } },
        "companion_defaults": { "persona": persona },
        "gate": { "addresses_per_minute": 1000 },
    })
}

fn long_persona() -> String {
    (0..400).map(|n| format!("You own clock number {n}. ")).collect()
}

/// A lobby whose side model says YES, and makes briefs of this kind.
async fn world(persona: &str, brief: Result<&'static str, NoAnswer>) -> World {
    let world = World::with_lobby_settings(settings(persona)).await;
    answer(&world, brief);
    world
}

fn answer(world: &World, brief: Result<&'static str, NoAnswer>) {
    world.side.answer_by(move |request: &Request| {
        Some(if *purpose(request) == Purpose::Brief { brief.clone().map(str::to_owned) } else { Ok("Me.\nYES".to_owned()) })
    });
}

fn asked_for_briefs(world: &World) -> usize {
    world.side.asked.lock().iter().filter(|request| *purpose(request) == Purpose::Brief).count()
}

/// The instructions of the newest decision.
fn newest_decision(world: &World) -> String {
    let asked = world.side.asked.lock();
    let newest = asked.iter().rev().find(|request| matches!(purpose(request), Purpose::Vote { .. }));
    newest.expect("a decision was asked for").messages[0].words().into_owned()
}

async fn stored(world: &World) -> usize {
    world.store.scan(key::briefs(), key::briefs().end(), false, 10).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn a_brief_is_made_once_and_known_after_a_restart() {
    let persona = long_persona();
    let world = world(&persona, Ok("<think>Short.</think>\nYou collect clocks.\n")).await;

    world.say_then_pass("lobby", "Ari, are you there?", 0.5).await;
    let first = newest_decision(&world);
    world.pass(10.0).await;
    world.say_then_pass("lobby", "Ari, and now?", 10.0).await;

    assert!(first.contains("You own clock number 1.") && first.contains("characters left out]"), "{first}");
    let second = newest_decision(&world);
    assert!(second.contains(BRIEF) && !second.contains("You own clock"), "{second}");
    let stated = world.main.asked.lock().last().unwrap().messages[0].words().into_owned();
    assert!(stated.contains(persona.trim()));
    assert_eq!((asked_for_briefs(&world), stored(&world).await), (1, 1));
    let usage = world.backend.records.usage(UsageQuery::default()).await.unwrap();
    // Two decisions, two statements and the brief.
    assert_eq!(usage.total.calls.calls, 5, "{usage:?}");

    let world = world.crash().await;
    answer(&world, Ok("never asked for"));
    world.say_then_pass("lobby", "Ari, still?", 10.0).await;

    assert!(newest_decision(&world).contains(BRIEF));
    assert_eq!(asked_for_briefs(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn a_companion_whose_side_model_makes_no_brief_keeps_the_beginning_and_asks_again_after_a_back_off() {
    let world = world(&long_persona(), Err(NoAnswer::Refused { endpoint: "m".into(), detail: "no".into() })).await;

    for _ in 0..5 {
        world.say_then_pass("lobby", "Ari, are you there?", 8.0).await;
        assert!(newest_decision(&world).contains("You own clock number 1."));
    }
    let asked_before = asked_for_briefs(&world);
    world.pass(60.0).await;
    answer(&world, Ok(BRIEF));
    for _ in 0..2 {
        world.say_then_pass("lobby", "Ari, are you there?", 8.0).await;
    }

    assert_eq!((asked_before, asked_for_briefs(&world)), (1, 2));
    assert!(newest_decision(&world).contains(BRIEF));
    assert_eq!(world.decisions("lobby").await.iter().filter(|decision| decision["decision"] == "YES").count(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_brief_of_a_former_persona_is_removed() {
    let world = world(&long_persona(), Ok(BRIEF)).await;
    world.say_then_pass("lobby", "Ari, are you there?", 10.0).await;
    assert_eq!(stored(&world).await, 1);

    let mut companions = (*world.context.memberships.companions()).clone();
    for companion in companions.values_mut() {
        companion.persona = long_persona().replace("clock", "watch").into();
    }
    loading::reload_companions(&world.context, companions).unwrap();
    brief_writing::load(&world.context).await.unwrap();
    assert_eq!(stored(&world).await, 0);
    world.say_then_pass("lobby", "Ari, what do you own?", 0.5).await;

    assert!(newest_decision(&world).contains("You own watch number 1."));
    world.pass(10.0).await;
    assert_eq!((asked_for_briefs(&world), stored(&world).await), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn no_brief_is_made_where_none_is_needed() {
    let written = json!({ "id": "aria", "aliases": ["ari"], "persona": long_persona(), "brief": "You have a shelf." });
    let world = world("You collect clocks.", Ok("never")).await;
    world.say_then_pass("lobby", "Ari, are you there?", 10.0).await;
    world.reload_companion(written);
    world.say_then_pass("lobby", "Ari, and now?", 10.0).await;

    assert!(newest_decision(&world).contains("You have a shelf."));
    assert_eq!((asked_for_briefs(&world), stored(&world).await), (0, 0));
}
