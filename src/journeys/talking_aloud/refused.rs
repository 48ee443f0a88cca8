//! A service that refuses what somebody says is not asked about it for ever.

use super::*;

/// Ears that refuse everything.
fn refusing() -> Arc<Ears> {
    Ears::new(async |_, _| {
        Err(NoAnswer::Refused { endpoint: "http://ears.example".into(), detail: "400: the file is no audio".to_owned() })
    })
}

#[tokio::test(start_paused = true)]
async fn what_no_service_recognises_is_given_up_after_half_a_minute() {
    let ears = refusing();
    let world = world_of(ears.clone(), Arc::new(RehearsedSpeech), json!({})).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    world.pass(40.0).await;
    let at_first = ears.asked();
    world.pass(120.0).await;

    assert!((20..=40).contains(&at_first), "about once a second: {at_first}");
    assert_eq!(ears.asked(), at_first);
    ana.say_something(&world).await;
    world.pass(5.0).await;
    assert!(ears.asked() > at_first, "it is asked about what is said next");
}

#[tokio::test(start_paused = true)]
async fn what_no_service_takes_is_not_counted() {
    let limit = json!({ "speech": { "guild_minutes_per_day": 0.02 } });
    let world = world_of(refusing(), Arc::new(RehearsedSpeech), limit).await;
    let mut ana = Caller::enter(&world, "ana").await;

    for _ in 0..3 {
        ana.say_something(&world).await;
        world.pass(40.0).await;
    }

    assert!(!ana.page.has(|view| *view == View::Trouble(Trouble::RecognitionUsedUp)), "{:?}", ana.page.seen());
    assert_eq!(world.spans.metrics().total("tertulia_speech_recognised_seconds_total", &[]), 0.0);
}

#[tokio::test(start_paused = true)]
async fn what_a_service_takes_and_never_answers_is_not_counted_when_the_person_leaves() {
    let ears = Ears::new(|mut sounds, _| async move {
        while sounds.recv().await.is_some() {}
        Ok(())
    });
    let world = world_of(ears.clone(), Arc::new(RehearsedSpeech), json!({})).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.talk(&world, 60, 1).await;
    assert_eq!(ears.open(), 1);
    ana.line.report(PersonAction::Leave);
    world.pass(60.0).await;

    assert_eq!(ears.open(), 0);
    assert_eq!(world.spans.metrics().total("tertulia_speech_recognised_seconds_total", &[]), 0.0);
}
