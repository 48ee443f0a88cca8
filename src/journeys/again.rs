//! Replace this answer: another statement in the place of the newest one (docs/design/speaking.md S-17).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, lines, room};
use crate::domain::id::Seq;
use crate::ports::backend::Refused;
use crate::ports::chat_platform::NotSent;
use crate::ports::chat_platform::fake::{FakePlatform, Fate};

const LOBBY: &str = "lobby";
const YES: &str = "They mean me.\nYES";
const QUESTION: &str = "Ari, how far is it?";

/// Ana's question has been answered, and the room has come to rest.
async fn answered(overlay: Value) -> (World, Seq) {
    let world = World::with_lobby_settings(overlay).await;
    world.side.answers([Ok(YES)]);
    world.main.answers([Ok("It is far."), Ok("It is an hour by train.")]);
    world.say_then_pass(LOBBY, QUESTION, 1_000.0).await;
    let statement = newest(&world).await;
    (world, statement)
}

async fn newest(world: &World) -> Seq {
    let messages = world.recorded(LOBBY, "message").await;
    Seq(messages.last().and_then(|message| message["seq"].as_u64()).expect("a message"))
}

async fn try_again(world: &World, statement: Seq) -> Result<(), Refused> {
    world.backend.messages.try_again(&room(LOBBY), statement, None).await
}

async fn refused(world: &World, statement: Seq) -> String {
    let before = world.history(LOBBY).await;
    let Err(Refused::Conflict(detail)) = try_again(world, statement).await else { panic!("it is not refused") };
    world.pass(60.0).await;
    assert_eq!(world.history(LOBBY).await, before, "what is refused changes nothing");
    detail.to_string()
}

#[tokio::test(start_paused = true)]
async fn another_statement_takes_the_place_of_the_newest_one() {
    let (world, statement) = answered(json!({})).await;

    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]));
    assert_eq!(world.decisions(LOBBY).await.len(), 1, "nobody is asked");
    let responds = world.recorded(LOBBY, "respond").await;
    assert_eq!((&responds[1]["again"], &responds[1]["messages"]), (&json!(statement), &json!([QUESTION])));
    let prompt = world.main.asked.lock()[1].user().into_owned();
    assert!(prompt.contains(QUESTION) && !prompt.contains("It is far."), "{prompt}");
    let why = world.why(LOBBY, Some("aria"), None).await.unwrap();
    let story: Vec<_> = why.story.iter().map(|line| &*line.text).collect();
    assert!(story.iter().any(|text| text.contains("pressed “Replace this answer”")), "{story:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_tried_again_is_not_deleted() {
    let (world, statement) = answered(json!({})).await;

    let messages = world.recorded(LOBBY, "message").await;
    let of_person = refused(&world, Seq(messages[0]["seq"].as_u64().unwrap())).await;
    world.patch(LOBBY, json!({ "paused": true })).await.unwrap();
    let paused = refused(&world, statement).await;
    world.patch(LOBBY, json!({ "paused": false })).await.unwrap();
    world.say_then_pass(LOBBY, "I take the train.", 1_000.0).await;
    let not_newest = refused(&world, statement).await;
    let unknown = try_again(&world, Seq(9_999)).await;

    assert!(paused.contains("is paused"), "{paused}");
    for detail in [of_person, not_newest] {
        assert!(detail.starts_with("only a companion’s message after which nobody has said more"), "{detail}");
    }
    assert!(matches!(unknown, Err(Refused::NotFound(_))), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_press_survives_a_crash_and_is_answered_once() {
    let (world, statement) = answered(json!({})).await;
    world.main.set_delay(Duration::from_secs(20));

    try_again(&world, statement).await.unwrap();
    let world = world.crash().await;
    world.main.answers([Ok("It is an hour by train.")]);
    world.pass(60.0).await;

    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]));
    assert_eq!(world.recorded(LOBBY, "respond").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn over_the_budget_it_stays_and_may_be_tried_again_later() {
    let (world, statement) = answered(json!({ "gate": { "guild_statements_per_day": 1 } })).await;

    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is far.")]));
    assert_eq!(world.recorded(LOBBY, "deleted").await, [Value::Null; 0]);
    assert!(try_again(&world, statement).await.is_ok());
    assert_eq!(world.recorded(LOBBY, "failed").await[0]["error"], "budget");
    assert_eq!(world.main.asked.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn on_another_platform_the_former_statement_is_deleted_in_all_its_parts() {
    for crashes in [false, true] {
        let (platform, world, statement) = answered_on_platform().await;
        platform.takes_at_most(2_000);
        world.main.set_delay(Duration::from_secs(20));

        try_again(&world, statement).await.unwrap();
        let world = if crashes { world.crash().await } else { world };
        world.main.answers([Ok("It is an hour by train.")]);
        world.pass(60.0).await;

        assert_eq!(platform.posted(), lines(&[("Aria", "It is an hour by train.")]));
        assert_eq!(world.history(LOBBY).await, lines(&[("Ana", QUESTION), ("aria", "It is an hour by train.")]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_the_platform_keeps_stays_on_record() {
    let (platform, world, statement) = answered_on_platform().await;
    platform.takes_at_most(2_000);
    platform.will([Fate::Fails(NotSent::Refused("for a test".into()))]);
    world.main.answers([Ok("It is an hour by train.")]);

    try_again(&world, statement).await.unwrap();
    world.pass(60.0).await;

    let texts: Vec<_> = world.history(LOBBY).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [QUESTION, "It is very far. It takes a whole day.", "It is an hour by train."]);
    assert_eq!(platform.posted().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn only_who_was_answered_may_ask_for_another_answer() {
    let (world, statement) = answered(json!({})).await;
    let by = async |person: &str| world.backend.messages.try_again(&room(LOBBY), statement, Some(&person.into())).await;

    let Err(Refused::Conflict(detail)) = by("Ben").await else { panic!("it is not refused") };
    let answered = by("Ana").await;

    assert!(detail.to_string().starts_with("that answer is to others"), "{detail}");
    assert!(answered.is_ok(), "{answered:?}");
}

/// Ana's question has been answered on a platform, in two parts.
async fn answered_on_platform() -> (Arc<FakePlatform>, World, Seq) {
    let platform = Arc::new(FakePlatform::default());
    let world = World::with_platform(platform.clone()).await;
    platform.takes_at_most(32);
    world.side.answers([Ok(YES)]);
    world.main.answers([Ok("It is very far. It takes a whole day.")]);
    world.say_then_pass(LOBBY, QUESTION, 1_000.0).await;
    assert_eq!(platform.posted().len(), 2);
    let statement = newest(&world).await;
    (platform, world, statement)
}
