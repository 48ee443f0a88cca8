//! Why a companion spoke, or did not: the story of every row, every rule, every round, and every message.

mod fates;
mod long_ago;
mod rules;

use std::time::Duration;

use serde_json::json;

use super::world::{World, asking_companion, ballot, refusal};
use crate::domain::id::Seq;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{Brief, Outcome, Why, WhyAt};

/// The newest story of a companion, and what it waits for.
async fn why(world: &World, id: &str, companion: &str) -> Why {
    world.why(id, Some(companion), None).await.unwrap()
}

/// The outcome of a message, for every companion.
async fn fates(world: &World, id: &str, message: &str) -> Vec<Brief> {
    world.why(id, None, Some(WhyAt::Message(message.into()))).await.unwrap().companions
}

/// The lines of a story, one sentence each.
fn texts(why: &Why) -> String {
    why.story.iter().map(|line| format!("{}: {}\n", line.event, line.text)).collect()
}

/// The text of the only step with this name.
fn step<'a>(why: &'a Why, event: &str) -> &'a str {
    let mut steps = why.story.iter().filter(|line| &*line.event == event);
    match (steps.next(), steps.next()) {
        (Some(step), None) => &step.text,
        _ => panic!("not one {event} in\n{}", texts(why)),
    }
}

/// What an operator may change because of the only step with this name.
fn setting<'a>(why: &'a Why, event: &str) -> &'a str {
    step(why, event);
    why.story.iter().find(|line| &*line.event == event).and_then(|line| line.setting.as_deref()).unwrap_or_default()
}

/// The only step with this name contains these words.
fn assert_tells(why: &Why, event: &str, words: &str) {
    assert!(step(why, event).contains(words), "{words} is not told: {}", texts(why));
}

#[tokio::test(start_paused = true)]
async fn the_row_that_applied_is_shown_with_its_numbers() {
    let world = World::with_lobby().await;

    world.say_then_pass("lobby", "what a day", 15.0).await;
    let lull = why(&world, "lobby", "aria").await;
    for number in 2..=9 {
        world.say("lobby", &format!("message {number}")).await;
    }
    world.pass(2.0).await;
    let interjection = why(&world, "lobby", "aria").await;
    for number in 1..=6 {
        world.say("lobby", &format!("and {number}")).await;
    }
    world.pass(2.0).await;
    let sooner = why(&world, "lobby", "aria").await;
    world.side.answers([Ok("Me.\nYES"), Ok("No.\nNO")]);
    world.say_then_pass("lobby", "ARI?", 5.0).await;
    let named = why(&world, "lobby", "aria").await;
    let statement = named.story.last().and_then(|line| line.seq).unwrap();
    world.say_with("lobby", json!({ "from": "Ben", "text": "why?", "reply_to": statement })).await;
    world.pass(5.0).await;
    let answered = why(&world, "lobby", "aria").await;
    world.say_with("lobby", json!({ "from": "Ben", "text": "hm", "mentions": ["aria"] })).await;
    world.pass(5.0).await;
    let mentioned = why(&world, "lobby", "aria").await;

    let so = "so Aria thought about an answer.";
    assert_eq!(step(&lull, "evaluate"), format!("It had been quiet for 10 seconds, {so}"));
    assert_eq!(step(&interjection, "evaluate"), "9 messages had been written without Aria, so Aria thought about joining in.");
    assert_eq!(step(&sooner, "evaluate"), "15 messages had been written without Aria, so Aria thought about joining in.");
    assert_eq!(step(&named, "evaluate"), format!("Ana called Aria by name, {so}"));
    assert_eq!(step(&answered, "evaluate"), "Ben replied to something that Aria had said, so Aria thought about an answer.");
    assert_eq!(step(&mentioned, "evaluate"), format!("Ben spoke to Aria, {so}"));
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_is_shown_with_the_one_after_it() {
    let world = World::with_lobby().await;
    world.side.answers([Err(refusal()), Ok("Not mine.\nNO")]);

    let seq = world.say_then_pass("lobby", "Ari, there?", 5.0).await;
    let tried = why(&world, "lobby", "aria").await;
    let waits = fates(&world, "lobby", &seq.to_string()).await.remove(0);
    world.pass(30.0).await;
    let explanation = why(&world, "lobby", "aria").await;

    assert_eq!(step(&tried, "message"), "Ana said to Aria: “Ari, there?”");
    assert_eq!(
        step(&tried, "error"),
        "The AI service did not accept the request, or its answer could not be used; `tertulia health` says why. Aria was to try again after 10 seconds."
    );
    assert!(waits.text.starts_with("The AI service did not accept the request, or"), "{}", waits.text);
    assert!(waits.text.ends_with("Aria tries again in 6 seconds."), "{}", waits.text);
    assert_eq!(step(&explanation, "error"), step(&tried, "error"));
    assert_tells(&explanation, "evaluate", "Aria had tried that before, but no answer had come.");
}

#[tokio::test(start_paused = true)]
async fn a_companion_that_lost_the_floor_is_told_the_outcome_of_its_wish() {
    let world = World::with_salon(json!({ "turn_taking": { "max_companion_streak": 2 } })).await;
    world.side.answer_by(|request| {
        Some(Ok(match asking_companion(request) {
            "bruno" => ballot("YES", 8, "none"),
            "cleo" => ballot("NO", 0, "none"),
            _ => ballot("YES", 4, "none"),
        }))
    });

    world.say_then_pass("salon", "Ari and Bruno, what of it?", 2.5).await;
    let losing = why(&world, "salon", "aria").await;
    world.pass(60.0).await;
    let lost = world.why("salon", Some("aria"), Some(WhyAt::Event(losing.decision.as_ref().unwrap().seq))).await.unwrap();

    assert_eq!(step(&losing, "floor_lost"), "Somebody else spoke first, and Aria still had it in mind.");
    assert_eq!(losing.waiting_for.unwrap().text, "Bruno speaks first, and then Aria may think about an answer.");
    assert_tells(&lost, "next", "Aria decided about it again later (decision ");
    assert_eq!(
        step(&lost, "round"),
        "Aria (4 of 10) and Bruno (8 of 10) wanted to speak. Bruno was chosen, because it mattered most to Bruno."
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_shows_who_had_spoken() {
    let world = World::with_salon(json!({})).await;
    world.side.answer_by(|request| {
        let speaks = asking_companion(request) == "bruno" && !request.user().contains("Hello!");
        Some(Ok(ballot(if speaks { "YES" } else { "NO" }, 5, "none")))
    });

    world.say_then_pass("salon", "what a day", 30.0).await;
    let turn = why(&world, "salon", "cleo").await;

    assert_tells(&turn, "evaluate", "Bruno had just spoken");
    assert_eq!(step(&turn, "message"), "Bruno said: “Hello!”");
}

#[tokio::test(start_paused = true)]
async fn without_a_name_all_companions_are_shown_in_short() {
    let world = World::with_salon(json!({})).await;
    world.say_then_pass("salon", "Ari, are you there?", 3.0).await;
    let noon = world.context.clock.now();
    world.say_then_pass("salon", "Bruno?", 3.0).await;

    let now = world.why("salon", None, None).await.unwrap();
    let then = world.why("salon", None, Some(WhyAt::Moment(noon))).await.unwrap();

    let explanation: Vec<_> =
        now.companions.iter().map(|brief| (&*brief.name, brief.seq.is_some(), brief.waiting_for.is_some())).collect();
    assert_eq!(explanation, [("Aria", true, true), ("Bruno", true, true), ("Cleo", false, true)]);
    let explanation: Vec<_> =
        then.companions.iter().map(|brief| (&*brief.name, brief.seq.is_some(), brief.waiting_for.is_some())).collect();
    assert_eq!(explanation, [("Aria", true, false), ("Bruno", false, false), ("Cleo", false, false)]);
    assert!(now.companions[0].text.contains("decided to stay silent"), "{}", now.companions[0].text);
    assert_eq!(now.companion, None);
}

#[tokio::test(start_paused = true)]
async fn a_companion_is_found_by_any_of_its_names_and_an_unknown_one_lists_the_members() {
    let world = World::with_salon(json!({})).await;
    world.say_then_pass("salon", "Ari?", 3.0).await;

    for name in ["aria", "Aria", "ARI"] {
        assert_eq!(world.why("salon", Some(name), None).await.unwrap().companion, Some("aria".into()), "{name}");
    }
    let unknown = world.why("salon", Some("zoe"), None).await.unwrap_err();
    let cellar = world.why("cellar", None, None).await.unwrap_err();
    let message = world.why("salon", None, Some(WhyAt::Message("99".into()))).await.unwrap_err();

    assert_eq!(unknown.to_string(), "zoe is not in room salon, and has no history there; present: aria, bruno, cleo");
    assert_eq!(cellar.to_string(), "there is no room cellar; there is salon");
    assert!(message.to_string().contains("\"99\" is not the number or id of a message"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_decision_of_one_companion_is_found_by_its_number_alone() {
    let world = World::with_salon(json!({})).await;
    world.say_then_pass("salon", "Bruno?", 3.0).await;
    let seq = why(&world, "salon", "bruno").await.decision.unwrap().seq;

    let explanation = world.why("salon", None, Some(WhyAt::Event(seq))).await.unwrap();
    let beyond = world.why("salon", None, Some(WhyAt::Event(Seq(seq.0 + 50)))).await.unwrap_err();

    assert_eq!((explanation.companion, explanation.decision.unwrap().seq), (Some("bruno".into()), seq));
    assert!(matches!(beyond, Refused::NotFound(_)), "{beyond}");
}

#[tokio::test(start_paused = true)]
async fn a_new_conversation_is_shown_as_one() {
    let world = World::with_lobby().await;
    world.say_then_pass("lobby", "good night", 12_000.0).await;
    let over = why(&world, "lobby", "aria").await;

    world.say_then_pass("lobby", "good morning", 2.0).await;
    let begun = why(&world, "lobby", "aria").await;
    world.pass(18.0).await;
    let explanation = why(&world, "lobby", "aria").await;

    assert_eq!(step(&over, "episode"), "The conversation was over after 30 minutes of silence.");
    assert_tells(&begun, "episode", "nothing has been decided in it yet");
    assert_eq!(step(&explanation, "episode"), "A new conversation began after 3 hours of silence.");
    assert_eq!(step(&explanation, "message"), "Ana said: “good morning”");
}

#[tokio::test(start_paused = true)]
async fn waiting_shows_how_long_a_turn_is_still_delayed() {
    let world = World::with_salon(json!({})).await;
    world.side.answer_by(|_| Some(Ok(ballot("YES", 5, "none"))));
    world.side.set_delay(Duration::from_secs(1));

    world.say_then_pass("salon", "Bruno?", 1.5).await;
    let explanation = why(&world, "salon", "bruno").await;

    assert_tells(&explanation, "turn", "Bruno gave the others 2 seconds");
    assert_eq!(explanation.waiting_for.unwrap().text, "Bruno speaks in 1.5 seconds.");
}

#[tokio::test(start_paused = true)]
async fn a_statement_in_the_making_over_a_restart_is_shown_as_started_again() {
    let world = World::with_willing_lobby().await;
    world.main.set_delay(Duration::from_secs(60));
    let seq = world.say_then_pass("lobby", "Ari, are you there?", 3.0).await;
    let speaking = fates(&world, "lobby", &seq.to_string()).await.remove(0);

    let world = world.crash().await;
    world.set_clock(1);
    let restarted = why(&world, "lobby", "aria").await;
    world.pass(5.0).await;
    let explanation = why(&world, "lobby", "aria").await;
    let answered = fates(&world, "lobby", &seq.to_string()).await.remove(0);

    let events = |why: &Why| why.story.iter().map(|line| line.event.to_string()).collect::<Vec<_>>();
    assert_eq!(
        events(&explanation),
        ["message", "evaluate", "decision", "respond", "restart", "statement"],
        "{}",
        texts(&explanation)
    );
    assert_eq!(events(&restarted), events(&explanation)[..5], "{}", texts(&restarted));
    assert_eq!(step(&explanation, "restart"), "The server was restarted, and Aria began the answer again.");
    assert_eq!((speaking.outcome, answered.outcome), (Some(Outcome::Speaking), Some(Outcome::Answered)));
    assert_eq!(speaking.seq, answered.seq);
    assert!(answered.text.ends_with(" Aria answered: “Hello!”"), "{}", answered.text);
}

#[tokio::test(start_paused = true)]
async fn a_round_over_a_restart_is_whole() {
    let world = World::with_salon(json!({})).await;
    world.side.set_delay_for("bruno", Duration::from_secs(60));
    world.side.answer_by(|_| Some(Ok(ballot("YES", 5, "none"))));
    world.say_then_pass("salon", "Ari and Bruno?", 3.0).await;
    let before = why(&world, "salon", "aria").await;

    let world = world.crash().await;
    world.side.answer_by(|_| Some(Ok(ballot("YES", 6, "none"))));
    world.pass(3.5).await;
    let seq = before.decision.as_ref().unwrap().seq;
    let explanation = world.why("salon", Some("aria"), Some(WhyAt::Event(seq))).await.unwrap();
    let other = world.why("salon", Some("bruno"), Some(WhyAt::Event(seq))).await.unwrap();

    assert_eq!(before.waiting_for.unwrap().text, "Aria wants to speak, and waits for Bruno to think about it, too.");
    assert_eq!(step(&explanation, "restart"), "The server was restarted, and went on from there.");
    assert!(step(&explanation, "round").contains("Bruno was chosen"), "{}", texts(&explanation));
    assert_eq!(step(&other, "restart"), "The server was restarted, and Bruno began to think again.");
}
