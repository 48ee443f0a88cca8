//! The server, or an actor of it, is restarted while a companion prepares a spoken answer or gives it.

use super::super::retaining::left_of;
use super::*;
use crate::actors::calls::shutdown::shut_down;
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::domain::id::Seq;
use crate::simulation::rounds;

const TEXT: &str = "Hello there. It is good to hear you.";
/// What people and platforms need to be in a call again.
const AWAY_SECS: f64 = 1.2;

/// Ana has asked Aria, who is about to be asked whether she answers.
async fn asked() -> (World, Caller) {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;
    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    while world.history("lobby").await.is_empty() {
        world.pass(0.1).await;
    }
    (world, ana)
}

/// The server is restarted, and Ana is back in the call a moment later.
async fn restart(world: World, ana: Caller, is_orderly: bool) -> (World, Caller) {
    if is_orderly {
        shut_down(&world.context).await;
    }
    let world = world.crash().await;
    world.side.answer_by(|_| Some(Ok("Yes.\nYES".to_owned())));
    world.main.answer_by(|_| Some(Ok(TEXT.to_owned())));
    drop(ana);
    world.pass(AWAY_SECS).await;
    let ana = Caller::enter(&world, "ana").await;
    (world, ana)
}

/// What Aria said, with how it was said.
async fn answers(world: &World) -> Vec<(String, String)> {
    let said = world.recorded("lobby", "message").await.into_iter().filter(|event| event["from"] == "aria");
    let text = |event: &serde_json::Value, field: &str| event[field].as_str().unwrap_or("text").to_owned();
    said.map(|event| (text(&event, "text"), text(&event, "modality"))).collect()
}

fn spoken(text: &str) -> Vec<(String, String)> {
    vec![(text.to_owned(), "voice".to_owned())]
}

#[tokio::test(start_paused = true)]
async fn a_restart_within_three_seconds_of_a_question_costs_no_answer() {
    for is_orderly in [true, false] {
        for tenths in (0..30).step_by(rounds(6, 3) as usize) {
            let (world, ana) = asked().await;
            ana.listen(&world, f64::from(tenths) / 10.0).await;

            let (world, ana) = restart(world, ana, is_orderly).await;
            ana.listen(&world, 15.0).await;

            let answers = answers(&world).await;
            assert_eq!(answers.len(), 1, "orderly: {is_orderly}, after {tenths}: {answers:?}, {:?}", ana.page.seen());
            // What was heard before a kill is on record at the end of each sentence.
            let (text, modality) = &answers[0];
            let is_whole = text == TEXT || !is_orderly && TEXT.starts_with(text.as_str());
            assert!(is_whole && modality == "voice", "orderly: {is_orderly}, after {tenths}: {answers:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_written_before_anybody_is_back_is_spoken_from_its_first_sentence() {
    let (world, ana) = asked().await;
    while !ana.page.has(|view| matches!(view, View::Thinking(_, true))) {
        world.pass(0.05).await;
    }

    let (world, ana) = restart(world, ana, false).await;
    assert_eq!(world.main.asked_for("aria"), 1, "it was asked again before Ana was back");
    ana.listen(&world, 10.0).await;

    assert_eq!(answers(&world).await, spoken(TEXT));
    let sentences = ana.page.seen().into_iter().filter_map(|view| match view {
        View::Sentence { text, .. } => Some(text.to_string()),
        _ => None,
    });
    assert_eq!(sentences.collect::<String>(), TEXT);
    assert_eq!(world.main.asked_for("aria"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_actor_of_the_call_that_dies_while_a_reply_is_prepared_costs_no_answer() {
    for killed_after in [0.0, 0.2, 0.5] {
        let (mut world, ana) = asked().await;
        world.main.write_at(Duration::from_millis(200), []);
        while !ana.page.has(|view| matches!(view, View::Thinking(_, true))) {
            world.pass(0.05).await;
        }
        world.pass(killed_after).await;
        assert!(ana.page.packets.lock().is_empty(), "nothing was heard");

        world.kill(&VoiceCallKey(channel())).await;
        ana.listen(&world, 12.0).await;

        assert_eq!(answers(&world).await, spoken(TEXT), "{killed_after}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_is_restarted_while_a_reply_is_prepared_costs_no_answer() {
    let (mut world, ana) = asked().await;
    while !ana.page.has(|view| matches!(view, View::Thinking(_, true))) {
        world.pass(0.05).await;
    }

    world.kill(&ChannelActorKey(channel())).await;
    ana.listen(&world, 12.0).await;

    assert_eq!(answers(&world).await, spoken(TEXT));
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_playback_nobody_tells_of_is_written_and_can_be_deleted_for_good() {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;
    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    world.pass(20.0).await;
    assert_eq!(answers(&world).await, [(TEXT.to_owned(), "text".to_owned())]);
    assert!(!world.recorded("lobby", "sentence").await.is_empty(), "it had begun");

    let statement = world.recorded("lobby", "message").await[1]["seq"].as_u64().unwrap();
    world.backend.messages.delete(&room("lobby"), Seq(statement)).await.unwrap();
    world.pass(2_000.0).await;

    assert_eq!(left_of("good to hear you", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_orderly_stop_writes_what_nobody_has_heard() {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;
    ana.hear_the_beginning(&world).await;

    shut_down(&world.context).await;
    let world = world.crash().await;
    world.pass(5.0).await;

    assert_eq!(answers(&world).await, spoken(TEXT));
    assert!(ana.page.has(|view| matches!(view, View::Cut { heard, .. } if heard.starts_with("Hello") && heard.len() < 30)));
    let interrupted = world.recorded("lobby", "interrupted").await;
    assert_eq!(interrupted[0]["verdict"], "server_stopping", "{interrupted:?}");
}

#[tokio::test(start_paused = true)]
async fn an_orderly_stop_writes_what_the_model_has_written_by_then() {
    let world = world().await;
    world.main.answer_by(|_| Some(Ok(format!("{TEXT} Come in, and sit down."))));
    world.main.write_at(Duration::from_millis(400), []);
    let ana = Caller::enter(&world, "ana").await;
    ana.hear_the_beginning(&world).await;

    shut_down(&world.context).await;
    let world = world.crash().await;
    world.pass(5.0).await;

    let answers = answers(&world).await;
    let [(text, modality)] = &answers[..] else { panic!("{answers:?}") };
    assert!(text.starts_with("Hello there.") && !text.contains("Come in"), "{text}");
    assert_eq!(modality, "voice");
}
