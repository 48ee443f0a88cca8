//! Words that are deleted or edited while a request that would hold them waits for a model, or for its repetition: they are not sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::world::{Scripted, World, asking_companion, of_json, purpose, room};
use crate::domain::id::Seq;
use crate::domain::question_context::Purpose;
use crate::ports::language_model::{NoAnswer, Request};

const LOBBY: &str = "lobby";

/// How words are erased.
const WAYS: [&str; 5] = ["deleted", "edited", "forgotten", "cleared", "with the room"];

async fn erase(how: &str, seq: Seq, world: &World) {
    let messages = &world.backend.messages;
    match how {
        "deleted" => drop(messages.delete(&room(LOBBY), seq).await.unwrap()),
        "edited" => drop(messages.edit(&room(LOBBY), seq, of_json(json!({ "text": "Ari, a giraffe" }))).await.unwrap()),
        "forgotten" => drop(world.forget("Zoe", false).await.unwrap()),
        "cleared" => world.backend.rooms.clear(&room(LOBBY)).await.unwrap(),
        _ => drop(world.backend.rooms.delete(&room(LOBBY)).await.unwrap()),
    }
}

async fn zoe_says(text: &str, world: &World) -> Seq {
    world.say_with(LOBBY, json!({ "from": "Zoe", "text": text })).await
}

/// How many requests of this kind were sent, and how many of them hold a word.
fn sent(model: &Scripted, is_kind: impl Fn(&Request) -> bool, word: &str) -> (usize, usize) {
    let asked = model.asked.lock();
    let of_kind: Vec<_> = asked.iter().filter(|request| is_kind(request)).collect();
    (of_kind.len(), of_kind.iter().filter(|request| format!("{request:?}").contains(word)).count())
}

/// The first request of a kind is refused, and may be repeated after ten seconds.
fn refuse_first(model: &Scripted, is_kind: impl Fn(&Request) -> bool + Send + 'static) {
    let is_first = AtomicBool::new(true);
    model.answer_by(move |request| {
        let is_refused = is_kind(request) && is_first.swap(false, Ordering::Relaxed);
        let retry_after = Some(Duration::from_secs(10));
        is_refused.then(|| Err(NoAnswer::Overloaded { endpoint: "scripted".into(), detail: "busy".into(), retry_after }))
    });
}

fn is_arias_question(request: &Request) -> bool {
    asking_companion(request) == "aria" && matches!(purpose(request), Purpose::Vote { .. })
}

#[tokio::test(start_paused = true)]
async fn a_question_that_waits_for_a_place_is_asked_without_words_that_were_erased() {
    for how in WAYS {
        let world = World::with_overlay(json!({ "models": { "side": { "max_concurrent": 1 } } })).await;
        world.open("den", &["bruno"]).await;
        world.open(LOBBY, &["aria"]).await;
        world.side.set_delay(Duration::from_secs(8));
        world.say_then_pass("den", "Bruno, are you there?", 1.0).await;
        let seq = zoe_says("Ari, a zebra", &world).await;
        world.pass(1.0).await;
        assert_eq!(sent(&world.side, |_| true, "zebra"), (1, 0), "{how}: one is asked, and one waits");

        erase(how, seq, &world).await;
        world.pass(60.0).await;

        assert_eq!(sent(&world.side, |_| true, "zebra").1, 0, "{how}");
        assert_eq!(sent(&world.side, is_arias_question, "giraffe").1 > 0, how == "edited", "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_repeated_without_words_that_were_erased() {
    for how in WAYS {
        let world = World::with_lobby().await;
        refuse_first(&world.side, is_arias_question);
        let seq = zoe_says("Ari, a zebra", &world).await;
        world.pass(2.0).await;
        assert_eq!(sent(&world.side, |_| true, "zebra"), (1, 1), "{how}: it was asked once");

        erase(how, seq, &world).await;
        world.pass(60.0).await;

        assert_eq!(sent(&world.side, |_| true, "zebra").1, 1, "{how}");
        assert_eq!(sent(&world.side, is_arias_question, "giraffe").1 > 0, how == "edited", "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_answer_was_unreadable_is_repeated_without_words_that_were_erased() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Perhaps."), Ok("No.\nNO")]);
    let seq = zoe_says("Ari, a zebra", &world).await;
    world.pass(0.5).await;

    erase("edited", seq, &world).await;
    world.pass(60.0).await;

    assert_eq!(
        (sent(&world.side, is_arias_question, "zebra"), sent(&world.side, is_arias_question, "giraffe")),
        ((2, 1), (2, 1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_statement_is_repeated_without_words_that_were_erased() {
    for how in WAYS {
        let world = World::with_lobby().await;
        world.side.answers([Ok("No.\nNO"), Ok("Me.\nYES")]);
        refuse_first(&world.main, |_| true);
        // It is not answered, but shown.
        let seq = zoe_says("a zebra", &world).await;
        world.pass(30.0).await;
        world.say_then_pass(LOBBY, "Ari, what now?", 3.0).await;
        assert_eq!(sent(&world.main, |_| true, "zebra"), (1, 1), "{how}: it was asked for once");

        erase(how, seq, &world).await;
        world.pass(60.0).await;

        assert_eq!(sent(&world.main, |_| true, "zebra").1, 1, "{how}");
        let is_still_owed = !matches!(how, "cleared" | "with the room");
        assert_eq!(sent(&world.main, |_| true, "what now?").0, 1 + usize::from(is_still_owed), "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_waits_for_a_place_is_asked_for_without_words_that_were_erased() {
    let world = World::with_overlay(json!({ "models": { "main": { "max_concurrent": 1 } } })).await;
    world.open("den", &["bruno"]).await;
    world.open(LOBBY, &["aria"]).await;
    // It is not answered, but shown.
    let seq = zoe_says("a zebra", &world).await;
    world.pass(30.0).await;
    world.side.answers([Ok("Me.\nYES")]);
    world.main.set_delay(Duration::from_secs(20));
    world.say_then_pass("den", "Bruno, are you there?", 3.0).await;
    world.say_then_pass(LOBBY, "Ari, what now?", 3.0).await;
    assert_eq!(sent(&world.main, |_| true, "zebra"), (1, 0), "one is asked for, and one waits");

    erase("deleted", seq, &world).await;
    world.pass(60.0).await;

    assert_eq!((sent(&world.main, |_| true, "zebra"), sent(&world.main, |_| true, "what now?").1), ((2, 0), 1));
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_repeated_without_words_that_were_erased() {
    let is_summary = |request: &Request| *purpose(request) == Purpose::Summary;
    let world = World::with_overlay(json!({ "prompt": { "summary_after": 5 } })).await;
    world.open(LOBBY, &["aria"]).await;
    refuse_first(&world.side, is_summary);
    let seq = zoe_says("a zebra", &world).await;
    for number in 0..12 {
        world.say(LOBBY, &format!("well {number}")).await;
    }
    while sent(&world.side, is_summary, "zebra").0 == 0 {
        world.pass(1.0).await;
    }

    erase("deleted", seq, &world).await;
    world.pass(60.0).await;

    let (asked, with_words) = sent(&world.side, is_summary, "zebra");
    assert!(asked > 1 && with_words == 1, "{with_words} of {asked}");
}

#[tokio::test(start_paused = true)]
async fn a_judgement_of_repetition_is_repeated_with_the_words_of_the_edit() {
    let is_judgement = |request: &Request| *purpose(request) == Purpose::Judgement;
    let gate = json!({ "skip_when_other_addressed": false });
    let world = World::with_salon(json!({ "repetition": { "judge": "model" }, "gate": gate })).await;
    world.side.answers([Ok("Me.\nYES")]);
    world.main.answers([Ok("A zebra. Well?")]);
    refuse_first(&world.side, is_judgement);
    world.say("salon", "Ari, what now?").await;
    while sent(&world.side, is_judgement, "zebra").0 == 0 {
        world.pass(1.0).await;
    }
    let history = world.try_history("salon").await.unwrap();
    let statements = history.messages.iter().filter(|message| &*message.text == "A zebra. Well?").map(|message| message.seq);

    for seq in statements {
        world.backend.messages.edit(&room("salon"), seq, of_json(json!({ "text": "A giraffe. Well?" }))).await.unwrap();
    }
    world.pass(12.0).await;

    let (asked, with_words) = sent(&world.side, is_judgement, "zebra");
    assert!(asked > 1 && with_words == 1, "{with_words} of {asked}");
}
