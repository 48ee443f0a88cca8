//! A main model that decides and speaks in one call, in a voice call.

use super::daily_limits::answers;
use super::*;

/// Somebody says Aria's name in a call, and the main model answers this. Also returns what was given to the voice.
async fn addressed(answer: &'static str) -> (World, Caller, Vec<String>) {
    let texts = Arc::<Mutex<Vec<String>>>::default();
    let voiced = texts.clone();
    let mouth = Mouth::new(move |sentence| {
        voiced.lock().push(sentence.text.trim().to_owned());
        RehearsedSpeech.say(sentence)
    });
    let overlay = json!({ "gate": { "direct_address": "answer_or_pass" } });
    let world = world_of(Arc::new(RehearsedSpeech), mouth, overlay).await;
    world.main.answer_by(move |_| Some(Ok(answer.to_owned())));
    let ana = Caller::enter(&world, "ana").await;

    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    ana.listen(&world, 30.0).await;

    assert_eq!((world.side.asked.lock().len(), world.main.asked.lock().len()), (0, 1), "one call decides and speaks");
    let texts = texts.lock().clone();
    (world, ana, texts)
}

#[tokio::test(start_paused = true)]
async fn a_pass_is_a_no_with_its_reason_and_nothing_is_voiced() {
    let (world, ana, texts) = addressed("PASS: She talks about me, not to me.").await;

    assert_eq!((texts, ana.page.packets.lock().len()), (Vec::new(), 0));
    assert_eq!(answers(&world).await, []);
    let decisions = world.decisions("lobby").await;
    let [decision] = &decisions[..] else { panic!("{decisions:?}") };
    assert_eq!((&decision["decision"], &decision["reason"]), (&json!("NO"), &json!("model_no")));
    assert_eq!(decision["why"], "She talks about me, not to me.");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_voiced_once() {
    let (world, ana, texts) = addressed("I am fine, thank you.").await;

    assert_eq!(texts, ["I am fine, thank you."]);
    assert!(!ana.page.packets.lock().is_empty());
    assert_eq!(answers(&world).await, [("I am fine, thank you.".to_owned(), true)]);
    let decisions = world.decisions("lobby").await;
    let [decision] = &decisions[..] else { panic!("{decisions:?}") };
    assert_eq!((&decision["decision"], &decision["reason"]), (&json!("YES"), &json!("model_yes")));
}
