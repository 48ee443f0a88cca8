//! Recall: older messages that do not fit into a statement's prompt any more are looked up by words (docs/design/memory.md).

mod leaks;

use serde_json::{Value, json};

use super::world::{World, of_json, room};
use crate::actors::membership::opt_out::OptOutService;
use crate::domain::id::Seq;
use crate::ports::opt_out::OptOut as _;

const LOBBY: &str = "lobby";
const CAT: &str = "My cat is called Mora, and she is afraid of thunder.";
const QUESTION: &str = "Ari, which name did I give my cat?";

/// A room with short prompts, so that little of the talk fits.
async fn small() -> World {
    let world = World::with_lobby_settings(json!({ "prompt": { "statement_tokens": 1_800, "summary_after": 500 } })).await;
    world.side.answers([Ok("NO")]);
    world.main.answers([Ok("It is called Mora.")]);
    world
}

/// Ana tells something, and much is said after it.
async fn long_ago(world: &World, said: &str) -> Seq {
    let told = world.say_with(LOBBY, json!({ "from": "Ana", "text": said })).await;
    chatter(world, 60).await;
    told
}

pub(super) async fn chatter(world: &World, count: usize) {
    for number in 0..count {
        let text =
            format!("Ben talks at length about bus number {number}, which was late as on every other day of this wet week");
        world.say_with(LOBBY, json!({ "from": "Ben", "text": text })).await;
    }
    world.pass(600.0).await;
}

/// What Aria's last statement was made of.
pub(super) async fn asked(world: &World, question: &str) -> String {
    world.side.answers([Ok("They mean me.\nYES")]);
    world.say_with(LOBBY, json!({ "from": "Ana", "text": question })).await;
    world.pass(600.0).await;
    world.main.asked.lock().last().expect("she answers").user().into_owned()
}

pub(super) async fn recalled(world: &World) -> Vec<Value> {
    let messages = world.recorded(LOBBY, "message").await;
    messages.last().and_then(|message| message["recalled"].as_array().cloned()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn something_sensitive_is_looked_up_only_for_a_question_that_touches_it() {
    let world = small().await;
    world.say_with(LOBBY, json!({ "from": "Ana", "text": "Ari, the yellow bicycle of my aunt is older than I am" })).await;
    world.say_with(LOBBY, json!({ "from": "Ana", "text": "Ari, I have cancer, and the hospital in Graz is good to me" })).await;
    chatter(&world, 60).await;

    for (question, is_touched) in [
        ("Ari, what do you know about Ana?", false),
        ("Ari, whose is the yellow bicycle?", false),
        ("Ari, how do people live in Graz?", true),
        ("Ari, who of us is sick?", false),
        ("Ari, which hospital did I tell you of?", true),
    ] {
        assert_eq!(asked(&world, question).await.contains("cancer"), is_touched, "{question}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_said_long_ago_is_in_the_prompt_and_on_record() {
    let world = small().await;
    let told = long_ago(&world, CAT).await;

    let prompt = asked(&world, QUESTION).await;

    assert!(prompt.contains(CAT) && prompt.contains("found by words"), "{prompt}");
    let history = world.try_history(LOBBY).await.unwrap();
    let answer = history.messages.last().unwrap();
    assert!(answer.recalled.contains(&told), "{answer:?}");
    let why = world.why(LOBBY, Some("aria"), None).await.unwrap();
    let line = why.story.iter().find(|line| line.seq == Some(told)).expect("a line with a link");
    assert!(line.text.contains("Mora") && &*line.event == "recalled", "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_looked_up_while_all_is_shown_or_when_it_is_turned_off() {
    let world = World::with_lobby().await;
    world.main.answers([Ok("It is called Mora.")]);
    world.say_with(LOBBY, json!({ "from": "Ana", "text": CAT })).await;
    let all_shown = asked(&world, QUESTION).await;
    let world =
        World::with_lobby_settings(json!({ "prompt": { "statement_tokens": 1_800, "summary_after": 500, "recall_tokens": 0 } }))
            .await;
    world.side.answers([Ok("NO")]);
    world.main.answers([Ok("I do not know.")]);
    long_ago(&world, CAT).await;
    let turned_off = asked(&world, QUESTION).await;

    assert!(all_shown.contains(CAT) && !all_shown.contains("looked up"), "{all_shown}");
    assert!(!turned_off.contains("Mora"), "{turned_off}");
    assert_eq!(recalled(&world).await, [] as [Value; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_was_erased_or_cleared_is_not_looked_up() {
    for how in ["deleted", "edited", "cleared", "forgotten", "opted out", "deleted while it is known"] {
        let world = small().await;
        let told = long_ago(&world, CAT).await;
        if how == "deleted while it is known" {
            assert!(asked(&world, QUESTION).await.contains(CAT));
            chatter(&world, 40).await;
        }
        match how {
            "edited" => {
                let edit = of_json(json!({ "text": "Nothing of my cat is worth a name." }));
                world.backend.messages.edit(&room(LOBBY), told, edit).await.map(drop).unwrap();
            }
            "cleared" => world.backend.rooms.clear(&room(LOBBY)).await.unwrap(),
            "forgotten" => world.forget("Ana", false).await.map(drop).unwrap(),
            "opted out" => {
                assert!(OptOutService::new(world.context.clone()).ignore(&"home".into(), &"Ana".into(), true).await.unwrap());
            }
            _ => world.backend.messages.delete(&room(LOBBY), told).await.map(drop).unwrap(),
        }
        chatter(&world, 60).await;
        world.main.answers([Ok("I do not know.")]);

        let prompt = match how {
            // She is not heard any more.
            "opted out" => {
                world.side.answers([Ok("They mean me.\nYES")]);
                world.say_with(LOBBY, json!({ "from": "Ben", "text": "Ari, which name did Ana give her cat?" })).await;
                world.pass(600.0).await;
                world.main.asked.lock().last().expect("she answers").user().into_owned()
            }
            _ => asked(&world, QUESTION).await,
        };

        assert!(!prompt.contains("afraid of thunder"), "{how}: {prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_rooms_are_never_looked_through() {
    let world = small().await;
    world.open("den", &["aria"]).await;
    long_ago(&world, CAT).await;
    for number in 0..60 {
        let text =
            format!("Ben talks at length about tram number {number}, which was early as on every other day of this dry week");
        world.say_with("den", json!({ "from": "Ben", "text": text })).await;
    }
    world.pass(600.0).await;
    world.side.answers([Ok("They mean me.\nYES")]);
    world.say_with("den", json!({ "from": "Ana", "text": QUESTION })).await;
    world.pass(600.0).await;

    let prompt = world.main.asked.lock().last().expect("she answers").user().into_owned();
    assert!(!prompt.contains("Mora"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn an_edited_message_is_found_by_its_new_words_at_once() {
    let world = small().await;
    let told = long_ago(&world, CAT).await;
    assert!(asked(&world, QUESTION).await.contains(CAT));
    let dog = "My dog is called Rex, and he likes the rain.";
    world.backend.messages.edit(&room(LOBBY), told, of_json(json!({ "text": dog }))).await.map(drop).unwrap();
    chatter(&world, 40).await;

    let prompt = asked(&world, "Ari, which name did I give my dog?").await;

    assert!(prompt.contains(dog) && !prompt.contains(CAT), "{prompt}");
}
