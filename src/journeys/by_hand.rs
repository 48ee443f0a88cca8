//! Who speaks next by hand, and everybody once (docs/design/turn-taking.md T-24, T-25).

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, asking_companion, lines, room};
use crate::ports::backend::Refused;
use crate::ports::backend::messages::Chosen;

const SALON: &str = "salon";

async fn choose(world: &World, choice: Value) -> Result<Chosen, Refused> {
    world.backend.messages.choose(&room(SALON), serde_json::from_value(choice).unwrap()).await
}

async fn conflict(world: &World, choice: Value) -> String {
    let before = world.history(SALON).await;
    let Err(Refused::Conflict(detail)) = choose(world, choice).await else { panic!("it is not refused") };
    world.pass(60.0).await;
    assert_eq!(world.history(SALON).await, before, "what is refused changes nothing");
    detail.to_string()
}

/// A room of three companions, in which nobody wants to speak, and each says its name if it must.
async fn quiet_room(overlay: Value) -> World {
    let world = World::with_salon(overlay).await;
    world.side.answers([Ok("Not mine.\nNO")]);
    world.main.answer_by(|request| Some(Ok(format!("I am {}.", asking_companion(request)))));
    world
}

#[tokio::test(start_paused = true)]
async fn the_chosen_companion_speaks_without_a_vote_and_the_record_says_who_chose_it() {
    let world = quiet_room(json!({})).await;
    world.say(SALON, "Hm.").await;

    choose(&world, json!({ "companion": "bruno", "by": "Ana" })).await.unwrap();
    world.pass(5.0).await;

    assert_eq!(world.history(SALON).await, lines(&[("Ana", "Hm."), ("bruno", "I am bruno.")]));
    assert_eq!(world.recorded(SALON, "respond").await[0]["trigger"], "chosen");
    assert_eq!(world.main.asked.lock()[0].user().matches("Somebody asked you to speak next.").count(), 1);
    let why = world.why(SALON, Some("bruno"), None).await.unwrap();
    assert!(why.story.iter().any(|line| line.text.contains("Ana chose Bruno to speak next")), "{:#?}", why.story);

    world.forget("Ana", false).await.unwrap();

    assert_eq!(world.recorded(SALON, "chosen").await[0]["from"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_forbids_a_companion_to_speak_is_said_and_holds() {
    let world = quiet_room(json!({ "gate": { "guild_statements_per_day": 1 } })).await;
    world.patch(SALON, json!({ "companions": { "cleo": { "paused": true } } })).await.unwrap();
    world.say(SALON, "Hm.").await;

    let paused = conflict(&world, json!({ "companion": "cleo" })).await;
    let neither = choose(&world, json!({})).await;
    let unknown = choose(&world, json!({ "companion": "nobody" })).await;
    let everybody = choose(&world, json!({ "everybody": true })).await.unwrap();
    world.pass(60.0).await;
    let over = conflict(&world, json!({ "companion": "bruno" })).await;
    let used_up = world.state(SALON).await.used_up.map(|used_up| used_up.budget);

    assert!(paused.contains("is paused"), "{paused}");
    assert!(matches!(neither, Err(Refused::Invalid { .. })), "{neither:?}");
    assert!(matches!(unknown, Err(Refused::NotFound(_))), "{unknown:?}");
    assert_eq!(everybody.left_out.iter().map(|left| left.companion.as_str()).collect::<Vec<_>>(), ["cleo"]);
    assert!(over.contains("used up a limit") && used_up == Some("guild_statements"), "{over} {used_up:?}");
    assert_eq!(world.history(SALON).await, lines(&[("Ana", "Hm."), ("aria", "I am aria.")]));
}

#[tokio::test(start_paused = true)]
async fn a_choice_counts_as_an_address_of_the_person() {
    let world = quiet_room(json!({ "gate": { "addresses_per_minute": 1 } })).await;
    world.main.set_delay(Duration::from_secs(20));
    world.say(SALON, "Hm.").await;
    let choice = json!({ "companion": "bruno", "by": "Ana" });

    let first = choose(&world, choice.clone()).await;
    world.pass(5.0).await;
    let second = choose(&world, json!({ "companion": "cleo", "by": "Ana" })).await;
    let other = choose(&world, json!({ "companion": "cleo", "by": "Ben" })).await;
    world.pass(100.0).await;
    let later = choose(&world, choice).await;

    assert!(
        first.is_ok() && matches!(second, Err(Refused::Conflict(_))) && other.is_ok() && later.is_ok(),
        "{second:?} {later:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn everybody_once_goes_on_after_a_restart_in_its_middle() {
    let world = quiet_room(json!({})).await;
    world.main.set_delay(Duration::from_secs(5));
    world.say(SALON, "What do you all think?").await;

    choose(&world, json!({ "everybody": true })).await.unwrap();
    world.pass(7.0).await;
    let world = world.crash().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.main.answer_by(|request| Some(Ok(format!("I am {}.", asking_companion(request)))));
    world.pass(600.0).await;

    let said = [("Ana", "What do you all think?"), ("aria", "I am aria."), ("bruno", "I am bruno."), ("cleo", "I am cleo.")];
    assert_eq!(world.history(SALON).await, lines(&said), "each speaks once, and then they wait for people");
    assert_eq!(world.recorded(SALON, "respond").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_who_is_chosen_during_everybody_once_speaks_next_also_after_a_message_ends_that() {
    let world = quiet_room(json!({})).await;
    world.main.set_delay(Duration::from_secs(5));
    world.say(SALON, "What do you all think?").await;
    choose(&world, json!({ "everybody": true })).await.unwrap();
    world.pass(2.0).await;

    choose(&world, json!({ "companion": "cleo" })).await.unwrap();
    world.say_with(SALON, json!({ "from": "Ben", "text": "Bruno is out." })).await;
    world.pass(600.0).await;

    let owed = world.recorded(SALON, "respond").await;
    let speakers: Vec<_> = owed.iter().map(|reply| reply["companion"].as_str().unwrap()).collect();
    assert_eq!(speakers, ["aria", "cleo"]);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_may_be_at_risk_is_not_answered_by_hand() {
    let world = quiet_room(json!({})).await;
    world.say(SALON, "I want to kill myself.").await;

    let before = conflict(&world, json!({ "companion": "bruno" })).await;
    world.pass(120.0).await;
    let after = conflict(&world, json!({ "companion": "bruno" })).await;

    assert!(before.contains("may be at risk") && after == before, "{before} {after}");
}
