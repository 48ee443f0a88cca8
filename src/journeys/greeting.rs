//! The first word in a room: one of a companion's greetings (docs/design/speaking.md S-20).

use serde_json::json;

use super::world::{World, lines, room};
use crate::domain::id::Seq;
use crate::ports::backend::Refused;
use crate::ports::backend::messages::Greeting;

const LOBBY: &str = "lobby";
const SOUP: &str = "Sit down, the soup is hot.";

/// An empty room, in which Aria may say this first.
async fn empty() -> World {
    let world = World::new().await;
    world.open(LOBBY, &["aria", "bruno"]).await;
    world.reload_companion(json!({ "id": "aria", "greetings": [SOUP, "Who are you?"] }));
    world
}

async fn greet(world: &World, companion: &str, text: &str) -> Result<Seq, Refused> {
    world.backend.messages.greet(&room(LOBBY), Greeting { companion: companion.into(), text: text.into(), anyway: false }).await
}

#[tokio::test(start_paused = true)]
async fn a_greeting_is_said_word_for_word_and_the_others_are_asked_about_it() {
    let world = empty().await;
    world.side.answers([Ok("I like soup.\nYES"), Ok("No.\nNO")]);
    world.main.answers([Ok("Soup, at last.")]);

    let [first, second] = [greet(&world, "aria", SOUP).await, greet(&world, "aria", SOUP).await];
    world.pass(600.0).await;

    let history = world.history(LOBBY).await;
    assert!(first.is_ok() && matches!(second, Err(Refused::Conflict(_))), "{first:?} {second:?}");
    assert_eq!(history[..2], lines(&[("aria", SOUP), ("bruno", "Soup, at last.")]));
    assert!(world.side.asked.lock().iter().all(|request| request.user().contains(SOUP)));
    assert!(world.main.asked.lock()[0].user().contains(SOUP), "who answers has read it");
}

#[tokio::test(start_paused = true)]
async fn a_greeting_is_the_first_word_of_somebody_who_has_it() {
    let world = empty().await;
    let not_hers = greet(&world, "aria", "Buy my book.").await;
    let not_here = greet(&world, "nobody", SOUP).await;
    world.patch(LOBBY, json!({ "companions": { "aria": { "paused": true } } })).await.unwrap();
    let paused = greet(&world, "aria", SOUP).await;
    world.patch(LOBBY, json!({ "companions": { "aria": { "paused": null } } })).await.unwrap();
    let said = world.say_then_pass(LOBBY, "Is anybody there?", 1_000.0).await;
    let late = greet(&world, "aria", SOUP).await;

    assert!(matches!(&not_hers, Err(Refused::Invalid { field, .. }) if field == "text"), "{not_hers:?}");
    assert!(matches!(not_here, Err(Refused::NotFound(_))), "{not_here:?}");
    for refused in [paused, late] {
        assert!(matches!(refused, Err(Refused::Conflict(_))), "{refused:?}");
    }
    assert!(world.history(LOBBY).await.iter().all(|line| !format!("{line:?}").contains(SOUP)), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_greeting_is_there_after_a_crash_and_is_answered_once() {
    let world = empty().await;
    world.side.answers([Ok("No.\nNO")]);
    greet(&world, "aria", SOUP).await.unwrap();

    let world = world.crash().await;
    world.say_then_pass(LOBBY, "Aria, what is in it?", 1_000.0).await;

    let history = world.history(LOBBY).await;
    assert_eq!(history[0], lines(&[("aria", SOUP)])[0]);
    assert_eq!(history.iter().filter(|line| **line == lines(&[("aria", SOUP)])[0]).count(), 1);
}
