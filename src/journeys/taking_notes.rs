//! Notes: made by the side model or at a person's request, used in prompts, and erased with their sources (docs/design/memory.md).

use serde_json::json;

use super::recalling::{asked, chatter, recalled};
use super::world::{World, channel_key, of_json, purpose, room};
use crate::actors::erasure::note_switches::switch;
use crate::domain::id::Seq;
use crate::domain::question_context::Purpose;

const LOBBY: &str = "lobby";
const CAT: &str = "Mora is afraid of thunder.";
const NOTE: &str = "Ana's cat is called Mora.";
const QUESTION: &str = "Ari, which cat does Ana have?";

/// A room with short prompts, in which notes are taken.
async fn noting() -> World {
    let settings = json!({ "prompt": { "statement_tokens": 1_800, "summary_after": 500 }, "memory": { "notes_after": 10 } });
    let world = World::with_lobby_settings(settings).await;
    turn(&world, true).await;
    script(&world);
    world
}

/// The side model notes Ana's cat.
fn script(world: &World) {
    world.side.answer_by(|request| {
        let number = |line: &str| line.contains("My cat Mora").then(|| line.split(' ').next()?.parse::<u64>().ok()).flatten();
        let from: Option<u64> = request.user().lines().find_map(number);
        let note = from.map(|from| json!({ "about": "Ana", "text": NOTE, "from": [from] }).to_string());
        (*purpose(request) == Purpose::Notes).then(|| Ok(note.unwrap_or_default()))
    });
    world.side.answers([Ok("NO")]);
    world.main.answers([Ok("Mora.")]);
}

async fn turn(world: &World, on: bool) {
    switch(&world.context, &"home".into(), None, on).await.unwrap();
}

async fn notes(world: &World) -> Vec<String> {
    let notes = world.reader().notes(&channel_key(LOBBY), Seq::NONE).await.unwrap();
    notes.into_iter().map(|(_, note)| note.text.to_string()).collect()
}

async fn say(world: &World, from: &str, text: &str) -> Seq {
    world.say_with(LOBBY, json!({ "from": from, "text": text })).await
}

#[tokio::test(start_paused = true)]
async fn a_note_is_made_used_and_told() {
    let world = noting().await;
    say(&world, "Ana", &format!("My cat Mora is two years old. {CAT}")).await;
    chatter(&world, 80).await;

    assert_eq!(notes(&world).await, [NOTE]);
    let prompt = asked(&world, QUESTION).await;
    assert!(prompt.contains(&format!("Ana, noted: \"{NOTE}\"")), "{prompt}");
    let why = world.why(LOBBY, Some("aria"), None).await.unwrap();
    let used = recalled(&world).await;
    let line =
        why.story.iter().find(|line| &*line.event == "noted" && used.contains(&json!(line.seq))).expect("a line with a link");
    assert!(line.text.contains(NOTE), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_noted_about_a_person_who_takes_part_needs_no_common_word() {
    let world = noting().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    say(&world, "Ana", "Ari, remember that I collect stamps").await;
    say(&world, "Ana", "Ari, remember that my boyfriend is Tom").await;
    say(&world, "Zoe", "Ari, remember that I play chess").await;
    world.side.answers([Ok("NO")]);
    chatter(&world, 80).await;

    let prompt = asked(&world, "Ari, good morning!").await;

    let known = prompt.split("<people>").nth(1).and_then(|rest| rest.split("</people>").next()).unwrap_or_default();
    assert!(known.contains("I collect stamps") && !known.contains("Tom") && !known.contains("chess"), "{prompt}");
    assert!(!prompt.contains("older-messages"), "a greeting looks nothing up: {prompt}");
}

#[tokio::test(start_paused = true)]
async fn what_a_person_asks_to_remember_needs_no_model() {
    let world = noting().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    say(&world, "Ana", "Ari, remember that I am allergic to walnuts").await;
    world.pass(60.0).await;

    assert_eq!(notes(&world).await, ["I am allergic to walnuts"]);
    chatter(&world, 80).await;
    let prompt = asked(&world, "Ari, may I eat walnuts?").await;
    assert!(prompt.contains("Ana, noted: \"I am allergic to walnuts\""), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn why_a_request_to_remember_is_refused_is_told() {
    let world = noting().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    switch(&world.context, &"home".into(), Some(&"Cleo".into()), false).await.unwrap();
    say(&world, "Ana", "Ari, remember that my password is hunter2").await;
    say(&world, "Cleo", "Ari, remember that I play chess").await;
    say(&world, "Ana", "Ari, remember that I collect stamps").await;
    chatter(&world, 40).await;

    assert_eq!(notes(&world).await, ["I collect stamps"]);
    let taken = world.backend.memory.notes(&room(LOBBY)).await.unwrap().taken;
    let refused: Vec<_> =
        taken.iter().filter(|taken| taken.messages == 0).flat_map(|taken| taken.dropped.keys().map(|why| &**why)).collect();
    assert_eq!(refused, ["secret", "subject"]);
    assert!(taken.iter().any(|taken| taken.messages > 0), "notes are taken after that: {taken:?}");
}

#[tokio::test(start_paused = true)]
async fn notes_are_taken_in_a_pause_and_after_a_restart() {
    let world = noting().await;
    say(&world, "Ana", "My cat Mora is two years old.").await;
    for _ in 0..7 {
        say(&world, "Ben", "The bus was late again.").await;
    }
    world.pass(60.0).await;
    assert_eq!(notes(&world).await, [""; 0]);

    let world = world.crash().await;
    script(&world);
    world.pass(1_900.0).await;

    assert_eq!(notes(&world).await, [NOTE]);
}

#[tokio::test(start_paused = true)]
async fn without_a_switch_nothing_is_noted_or_shown() {
    let world = noting().await;
    say(&world, "Ana", "My cat Mora is two years old.").await;
    chatter(&world, 80).await;
    turn(&world, false).await;
    say(&world, "Ana", "Ari, remember that I play the cello").await;
    chatter(&world, 80).await;

    let prompt = asked(&world, QUESTION).await;

    assert!(!prompt.contains("noted:"), "{prompt}");
    assert_eq!(notes(&world).await, [NOTE]);
}

#[tokio::test(start_paused = true)]
async fn a_note_goes_with_its_source() {
    for how in ["deleted", "edited", "forgotten", "turned off"] {
        let world = noting().await;
        let told = say(&world, "Ana", "My cat Mora is two years old.").await;
        chatter(&world, 80).await;
        assert!(asked(&world, QUESTION).await.contains(NOTE));

        match how {
            "deleted" => world.backend.messages.delete(&room(LOBBY), told).await.map(drop).unwrap(),
            "edited" => {
                let edit = of_json(json!({ "text": "I have no cat." }));
                world.backend.messages.edit(&room(LOBBY), told, edit).await.map(drop).unwrap();
            }
            "forgotten" => world.forget("Ana", false).await.map(drop).unwrap(),
            _ => world.backend.memory.switch_notes("home".into(), Some("Ana".into()), false).await.unwrap(),
        }

        assert_eq!(notes(&world).await, [""; 0], "{how}");
        chatter(&world, 60).await;
        world.main.answers([Ok("I do not know.")]);
        assert!(!asked(&world, QUESTION).await.contains("noted:"), "{how}");
    }
}
