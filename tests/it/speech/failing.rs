//! Services that fail in the middle of a call.

use super::openai::{KEY, Trap};
use super::*;

/// A server of OpenAI's protocol, by the name of `name`, which does this model.
fn with_openai(premises: Premises, name: &str, fake: &openai::Fake, model: &str) -> Premises {
    with_service(premises, name, "openai", &fake.url, KEY).with(&format!("speech.services.{name}.model"), model)
}

#[tokio::test]
async fn the_next_recogniser_takes_over_and_the_preferred_one_is_back_when_it_works() {
    // If the machine stalls, one sentence may become several segments, and those that are too short count as noise.
    let preferred = deepgram(&["Aria, are you still there?"; 16]).await;
    preferred.books.open().refuses = Some((503, "busy"));
    let other = openai::Fake::new([]).await;
    other.hears(&[QUESTION; 16]);
    let mut scene = Scene::new(|premises| {
        let premises = with_openai(with_deepgram(premises, &preferred), "other", &other, "whisper-1");
        // Longer than the pause before another attempt, and shorter than the sentence.
        premises.with("speech.recognition", r#"["deepgram", "other"]"#).with("models.breaker.cool_down_secs", "2")
    })
    .await;

    scene.ana.talk(&sentence()).await;
    let first = scene.message_of("Ana").await;
    scene.ana.hear_reply().await;
    preferred.books.open().refuses = None;
    // The pause before the next attempt may be over only after a sentence or two.
    let second = loop {
        scene.ana.talk(&sentence()).await;
        let message = scene.message_of("Ana").await;
        if !message.0.starts_with(QUESTION) {
            break message;
        }
    };

    assert!(first.0.starts_with(QUESTION) && second.0.starts_with("Aria, are you still there?"), "{first:?} {second:?}");
    assert_eq!((&*first.1, &*second.1), ("voice", "voice"));
    scene.ana.leave().await;
    let usage = usage(&scene.server).await;
    let providers: Vec<_> = usage.as_array().expect("a list").iter().map(|by| by["provider"].clone()).collect();
    assert!(providers.contains(&json!("deepgram")) && providers.contains(&json!("openai")), "{usage}");
    let log = scene.server.stop().await;
    assert!(![deepgram::KEY, KEY].iter().any(|key| log.contains(key)), "{log}");
}

#[tokio::test]
async fn an_answer_that_no_service_speaks_is_posted_as_text() {
    let hearing = deepgram(&[QUESTION]).await;
    let broken = || Trap::Answers(500, Vec::new(), "out of order".to_owned());
    let speaking = openai::Fake::new([broken(), broken(), broken(), broken()]).await;
    let mut scene = Scene::new(|premises| {
        let premises = with_deepgram(premises, &hearing).with("speech.recognition", r#"["deepgram"]"#);
        let premises = with_openai(premises, "speaking", &speaking, "tts-1").with("speech.services.speaking.voice", "nova");
        premises.with("speech.synthesis", "speaking")
    })
    .await;

    scene.ana.talk(&sentence()).await;
    let told = scene.ana.wait_for("error").await;
    let answer = scene.message_of("aria").await;

    assert_eq!(told["code"], "synthesis_failed", "{told}");
    assert_eq!(answer, (ANSWER.to_owned(), "text".to_owned()));
    assert!(scene.server.history("lobby").await.iter().any(|(_, from, text)| from == "Ana" && text == QUESTION));
    scene.server.stop().await;
}
