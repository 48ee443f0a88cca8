//! What a voice does not speak as it is written, and what is heard without words.

use super::daily_limits::answers;
use super::*;
use crate::domain::voice::segment::Kind;

/// What Aria has spoken of an answer, and her statements, each with whether it was spoken.
async fn spoken(answer: &'static str) -> (Vec<String>, Vec<(String, bool)>) {
    let texts = Arc::<Mutex<Vec<String>>>::default();
    let told = texts.clone();
    let mouth = Mouth::new(move |sentence| {
        told.lock().push(sentence.text.trim().to_owned());
        RehearsedSpeech.say(sentence)
    });
    let world = world_of(Arc::new(RehearsedSpeech), mouth, json!({})).await;
    world.main.answer_by(move |_| Some(Ok(answer.to_owned())));
    let ana = Caller::enter(&world, "ana").await;

    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    ana.listen(&world, 30.0).await;

    // The sentences of an answer are made at the same time.
    let mut texts = texts.lock().clone();
    texts.sort();
    (texts, answers(&world).await)
}

#[tokio::test(start_paused = true)]
async fn what_is_not_spoken_as_it_is_written_stays_in_the_statement() {
    let answer = "*smiles* See https://a.example/b?c=d now. Try this:\n```\nlet x = 1;\n```\nI *really* mean it. *waves*";

    let (texts, answers) = spoken(answer).await;

    assert_eq!(texts, ["See a.example now.", "Try this:\ncode\nI really mean it."]);
    assert_eq!(answers, [(answer.replace("*really*", "really"), true)]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_nothing_but_a_stage_direction_is_posted() {
    let (texts, answers) = spoken("*smiles*").await;

    assert_eq!(texts, [""; 0]);
    assert_eq!(answers, [("*smiles*".to_owned(), false)]);
}

#[tokio::test(start_paused = true)]
async fn speech_without_recognition_is_no_message_while_a_model_is_connected() {
    let world = world_with(json!({ "models": { "main": { "base_url": "http://127.0.0.1:1/v1", "model": "m" } } })).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    ana.talk(&world, 400, 0).await;

    let segments = calling::segments(&world).await;
    assert_eq!(
        segments.iter().map(|segment| (&*segment.text, segment.kind)).collect::<Vec<_>>(),
        [("(speech, 1.2 s)", Kind::Noise)]
    );
    assert_eq!(world.history("lobby").await, []);
}

#[tokio::test(start_paused = true)]
async fn what_recognition_invents_is_on_record_and_no_message() {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;

    for text in ["Thank you for watching!", "(music)", "...", "Thank you."] {
        ana.line.report(PersonAction::Say(text.into()));
        ana.listen(&world, 8.0).await;
    }

    let kinds: Vec<_> = calling::segments(&world).await.iter().map(|segment| segment.kind).collect();
    assert_eq!(kinds, [Kind::Noise, Kind::Noise, Kind::Noise, Kind::Words]);
    assert_eq!(world.history("lobby").await[0], ("ana".to_owned(), "Thank you.".to_owned()));
}
