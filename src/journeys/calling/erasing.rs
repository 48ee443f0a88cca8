//! What is left of a call when somebody is forgotten, when a message is deleted, and when everything has expired.

use serde_json::json;

use super::super::retaining::left_of;
use super::super::world::{World, lines, room};
use super::{call, events, join_all, leave, says, segment, words};
use crate::actors::erasure::retention;
use crate::domain::event::Event;
use crate::ports::backend::keeping::ExportForm;
use crate::ports::voice_call::CallEvents;
use crate::replay::{ReplayEventKind, Script, run};

const DAY: f64 = 86_400.0;

/// Zora and Ben have talked, and Aria was asked about it. Zora's zebra is in a message, in noise, in Aria's reason, and in what is not handed over.
async fn talked() -> World {
    let world = call(&["Zora", "Ben"]).await;
    world.side.answers([Ok("Zora told me of a zebra.\nNO")]);
    world.pass(5.0).await;
    says(&world, "Zora", "Ari, a zebra").await;
    says(&world, "Ben", "it is one").await;
    world.pass(10.0).await;
    let mut noise = segment(&world, "Zora", "zebra noise");
    noise.segment.no_speech = Some(0.9);
    super::inbound(&world).heard(&super::lobby(), noise).await.unwrap();
    says(&world, "Zora", "my last zebra").await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_person_leaves_nothing_of_a_call() {
    for has_left in [false, true] {
        let world = talked().await;
        if has_left {
            leave(&world, "lobby", "Zora").await;
            world.pass(10.0).await;
        }
        assert!(left_of("zebra", &world).await > 3 && left_of("Zora", &world).await > 3);

        world.forget("Zora", false).await.unwrap();
        world.pass(10.0).await;

        assert_eq!([left_of("zebra", &world).await, left_of("Zora", &world).await], [0, 0], "left: {has_left}");
        for form in [ExportForm::Json, ExportForm::Replay] {
            let export = world.export("lobby", form).await.join("\n");
            assert!(!export.contains("zebra") && !export.contains("Zora"), "{export}");
        }
        assert_eq!(words(&world).await, ["it is one"]);
        world.side.answers([Ok("No.\nNO")]);
        says(&world, "Ben", "where is she").await;
        world.pass(10.0).await;
        let world = world.crash().await;
        world.pass(10.0).await;
        assert_eq!(world.history("lobby").await, lines(&[("Ben Doe", "it is one"), ("Ben Doe", "where is she")]));
        assert_eq!([left_of("zebra", &world).await, left_of("Zora", &world).await], [0, 0], "left: {has_left}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_message_takes_its_segments_along() {
    let world = call(&["Zora", "Ben"]).await;
    says(&world, "Zora", "a zebra").await;
    says(&world, "Zora", "or a zebra foal").await;
    says(&world, "Ben", "it is one").await;
    world.pass(10.0).await;
    let message = super::spoken(&world).await[0].0.seq;

    world.backend.messages.delete(&room("lobby"), message).await.unwrap();

    assert_eq!(left_of("zebra", &world).await, 0);
    assert_eq!(words(&world).await, ["it is one"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_expires_with_everything_that_was_said_in_it() {
    let world = World::with_lobby_settings(json!({ "storage": { "retention_days": 2 } })).await;
    join_all(&world, &["Zora", "Ben"]).await;
    says(&world, "Zora", "a zebra").await;
    world.pass(10.0).await;
    leave(&world, "lobby", "Zora").await;
    leave(&world, "lobby", "Ben").await;
    world.pass(3.0 * DAY).await;
    world.say_then_pass("lobby", "news", 1_000.0).await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, passed.failed), (1, 0));
    assert_eq!([left_of("zebra", &world).await, left_of("Zora", &world).await], [0, 0]);
    assert!(!events(&world).await.iter().any(|recorded| matches!(recorded.event, Event::VoiceLeft { .. })));
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "news")]));
}

#[tokio::test(start_paused = true)]
async fn an_exported_call_is_handed_over_the_same_when_it_is_replayed() {
    let world = talked().await;
    world.pass(10.0).await;

    let script = world.export("lobby", ExportForm::Replay).await.remove(0);

    let replayed = run(&Script::from_json(&script).unwrap()).unwrap().into_iter().filter_map(|event| match event.kind {
        ReplayEventKind::Utterance { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(replayed.collect::<Vec<_>>(), words(&world).await);
}
