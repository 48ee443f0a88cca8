//! Services that make no voice, or only the beginning of one: nothing of the answer is lost, and no service is asked in vain again and again.

use super::daily_limits::answers;
use super::*;

/// A mouth that takes words and returns nothing.
fn silent() -> Arc<Mouth> {
    Mouth::new(|_| stream::pending().boxed())
}

/// A mouth that makes this many samples, and fails.
fn breaking(samples: usize) -> Arc<Mouth> {
    Mouth::new(move |_| stream::iter([Ok(Piece::Audio(vec![1; samples])), Err(failed())]).boxed())
}

/// A mouth that says this many sentences, and then nothing any more.
fn tiring(sentences: usize) -> Arc<Mouth> {
    let (left, broken) = (AtomicUsize::new(sentences), breaking(0));
    Mouth::new(move |sentence| {
        let is_left = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if is_left { RehearsedSpeech.say(sentence) } else { broken.say(sentence) }
    })
}

#[tokio::test(start_paused = true)]
async fn what_follows_the_last_sentence_that_can_be_spoken_is_posted() {
    let sentences = ["It was late when we left.", " The rain had stopped.", " Nobody said a word.", " Then we laughed."];
    for spoken in 1..=4 {
        let world = world_of(Arc::new(RehearsedSpeech), tiring(spoken), json!({})).await;
        world.main.answer_by(move |_| Some(Ok(sentences.concat())));
        let ana = Caller::enter(&world, "ana").await;

        ask(&world, &ana).await;

        assert_eq!(answers(&world).await, [(sentences.concat(), true)], "{spoken} sentences are spoken");
        assert_eq!(ana.page.has(|view| *view == View::Trouble(Trouble::SynthesisFailed)), spoken < 4);
    }
}

#[tokio::test(start_paused = true)]
async fn dots_at_the_beginning_do_not_hold_up_an_answer_that_cannot_be_spoken() {
    let world = world_of(Arc::new(RehearsedSpeech), mute(), json!({})).await;
    world.main.answer_by(|_| Some(Ok("... Well, no. It is not.".to_owned())));
    let ana = Caller::enter(&world, "ana").await;

    ask(&world, &ana).await;

    assert_eq!(answers(&world).await, [("... Well, no. It is not.".to_owned(), false)]);
}

/// A mouth that has nothing to say without words, and fails with words.
fn mute() -> Arc<Mouth> {
    let broken = breaking(0);
    Mouth::new(move |sentence| if sentence.has_words() { broken.say(sentence) } else { stream::empty().boxed() })
}

#[tokio::test(start_paused = true)]
async fn who_waited_for_a_place_is_no_fault_of_the_service() {
    let mouth = silent();
    let limits = Limits { most: 1, cool_down: Duration::from_secs(600), price: None };
    let voices = Provider::new(mouth.clone() as Arc<dyn SpeechSynthesis>, limits);
    let ears = Provider::unlimited(Arc::new(RehearsedSpeech) as Arc<dyn SpeechRecognition>);
    let taken = voices.begin_when_free(|| Moment::ZERO).await.unwrap();
    let world = world_with_speech(speech_of([ears], voices.clone()), json!({})).await;
    let ana = Caller::enter(&world, "ana").await;

    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    ana.listen(&world, 7.0).await;
    drop(taken);
    ana.listen(&world, 15.0).await;

    assert_eq!(answers(&world).await, [("Hello there.".to_owned(), false)]);
    let now = world.context.clock.now();
    let begun = voices.begin_when_free(|| now).await.map(drop);
    assert!(begun.is_ok(), "it is asked again: {begun:?}, asked {}", mouth.asked());
}

async fn ask(world: &World, ana: &Caller) {
    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    ana.listen(world, 20.0).await;
}

fn troubles(person: &Caller) -> usize {
    person.page.seen().iter().filter(|view| **view == View::Trouble(Trouble::SynthesisFailed)).count()
}

#[tokio::test(start_paused = true)]
async fn a_service_that_stays_silent_has_failed_and_is_left_alone() {
    let mouth = silent();
    let limits = Limits { most: 25, cool_down: Duration::from_secs(600), price: None };
    let voices = Provider::new(mouth.clone() as Arc<dyn SpeechSynthesis>, limits);
    let ears = Provider::unlimited(Arc::new(RehearsedSpeech) as Arc<dyn SpeechRecognition>);
    let world = world_with_speech(speech_of([ears], voices), json!({})).await;
    let ana = Caller::enter(&world, "ana").await;

    ask(&world, &ana).await;
    assert_eq!((answers(&world).await.len(), troubles(&ana)), (1, 1));
    ask(&world, &ana).await;

    assert_eq!(answers(&world).await, [("Hello there.".to_owned(), false), ("Hello there.".to_owned(), false)]);
    assert_eq!((mouth.asked(), troubles(&ana)), (1, 2), "asked once, and people are told");
    let errors: Vec<_> = world.spans.named("voice.synthesise").iter().map(|span| attribute(span, "error.type")).collect();
    assert_eq!(errors, [Some("synthesis_failed".to_owned())]);
    assert_eq!(world.spans.metrics().total("tertulia_speech_synthesised_total", &[]), 0.0, "nothing was spoken");
}

#[tokio::test(start_paused = true)]
async fn of_a_voice_that_breaks_off_before_the_first_word_is_over_the_answer_is_posted() {
    for samples in [1, SPOKEN_FRAME - 1, SPOKEN_FRAME, 3 * SPOKEN_FRAME] {
        for turn_delay_secs in [0.0, 0.5, 3.0] {
            let settings = json!({ "voice": { "turn_delay_secs": turn_delay_secs } });
            let world = world_of(Arc::new(RehearsedSpeech), breaking(samples), settings).await;
            let ana = Caller::enter(&world, "ana").await;

            ask(&world, &ana).await;

            assert_eq!(answers(&world).await, [("Hello there.".to_owned(), false)], "{samples} samples, {turn_delay_secs} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_voice_that_breaks_off_later_the_words_that_were_heard_are_the_statement() {
    let world = world_of(Arc::new(RehearsedSpeech), breaking(50 * SPOKEN_FRAME), json!({})).await;
    world.main.answer_by(|_| Some(Ok("Hello there, and welcome to this place. It is good to hear you.".to_owned())));
    let ana = Caller::enter(&world, "ana").await;

    ask(&world, &ana).await;

    let answers = answers(&world).await;
    let (text, is_spoken) = &answers[0];
    assert!(*is_spoken && text.starts_with("Hello there"), "{answers:?}");
    assert_eq!(ana.page.packets.lock().len(), 100, "a second of each sentence");
}
