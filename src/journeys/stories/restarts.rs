//! Stories that continue after a restart of the server.

use std::time::Duration;

use serde_json::json;

use super::super::world::World;
use super::{ballot, fates, step, texts, why};
use crate::ports::backend::decisions::{Outcome, Why, WhyAt};

#[tokio::test(start_paused = true)]
async fn a_question_in_flight_over_a_restart_is_shown_with_both_attempts_and_its_outcome() {
    let world = World::with_lobby().await;
    world.side.set_delay(Duration::from_secs(60));
    world.say_then_pass("lobby", "Ari, are you there?", 3.0).await;
    let asked = why(&world, "lobby", "aria").await;

    let world = world.crash().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    world.pass(5.0).await;
    let explanation = why(&world, "lobby", "aria").await;

    assert!(asked.decision.is_none());
    assert_eq!(asked.story.iter().map(|line| &*line.event).collect::<Vec<_>>(), ["message", "evaluate"]);
    let events: Vec<_> = explanation.story.iter().map(|line| &*line.event).collect();
    assert_eq!(events, ["message", "evaluate", "restart", "decision", "respond", "statement"], "{}", texts(&explanation));
    assert_eq!(step(&explanation, "restart"), "The server was restarted: the open question was asked again.");
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
    assert_eq!(step(&explanation, "restart"), "The server was restarted: the statement was started again.");
    assert_eq!((speaking.outcome, answered.outcome), (Some(Outcome::Speaking), Some(Outcome::Answered)));
    assert_eq!((speaking.seq, &*answered.text), (answered.seq, "It answered it: “Hello!”"));
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

    assert_eq!(before.waiting_for.unwrap().text, "the votes of Bruno: it wants to speak");
    assert_eq!(step(&explanation, "restart"), "The server was restarted: it continued from there.");
    assert!(step(&explanation, "round").contains("Bruno was selected"), "{}", texts(&explanation));
    assert_eq!(step(&other, "restart"), "The server was restarted: the open question was asked again.");
}
