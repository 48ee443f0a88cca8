//! Services that take what people say, and return nothing of use: the next one takes over.

use super::*;

/// What bad ears do.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// They return nothing, so that their adapter ends each utterance a second later.
    Deaf,
    /// They hear no words in noise, and say so.
    HearsNoise,
    /// They end at once, without an error.
    Ends,
    /// They return words that may change, and fail.
    Cuts,
    /// They take no more sound, return words, and ask for a pause.
    IsFull,
}

/// Ears with a fault.
fn bad(fault: Fault) -> Arc<Ears> {
    Ears::new(move |sounds, results| hear_badly(fault, sounds, results))
}

async fn hear_badly(fault: Fault, mut sounds: Receiver<Sound>, results: Sender<Recognised>) -> Result<(), NoAnswer> {
    let endpoint = Arc::from("https://ears.example");
    while fault != Fault::Ends
        && let Some(sound) = sounds.recv().await
    {
        match (fault, sound) {
            (Fault::Deaf, Sound::Ended(stretch)) => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let _ = results.send(final_of("", stretch.started, stretch.started, false)).await;
            }
            (Fault::HearsNoise, Sound::Ended(stretch)) => {
                let _ = results.send(final_of("", stretch.started, stretch.ended, true)).await;
            }
            (Fault::Cuts, Sound::Audio { from, .. }) => {
                let _ = results.send(Recognised::Partial { text: "well".into(), started: from }).await;
                return Err(NoAnswer::Unreachable { endpoint, detail: "cut".to_owned() });
            }
            (Fault::IsFull, Sound::Audio { from, .. }) => {
                drop(sounds);
                tokio::time::sleep(Duration::from_millis(100)).await;
                let _ = results.send(final_of("hello", from, from, true)).await;
                let retry_after = Some(Duration::from_secs(600));
                return Err(NoAnswer::Overloaded { endpoint, detail: "429".to_owned(), retry_after });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Bad ears, and others for when they fail.
async fn world_with(ears: &Arc<Ears>) -> World {
    let limits = Limits { most: 25, cool_down: Duration::from_secs(600), price: None };
    let first = Provider::new(ears.clone() as Arc<dyn SpeechRecognition>, limits);
    let second = Provider::unlimited(Ears::rehearsed() as Arc<dyn SpeechRecognition>);
    world_with_speech(speech_of([first, second], Provider::unlimited(Arc::new(RehearsedSpeech))), json!({})).await
}

async fn texts(world: &World) -> Vec<String> {
    segments(world).await.into_iter().filter(|text| !text.is_empty()).collect()
}

#[tokio::test(start_paused = true)]
async fn who_returns_nothing_to_three_utterances_has_failed() {
    let ears = bad(Fault::Deaf);
    let world = world_with(&ears).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    ana.say_something(&world).await;
    assert_eq!(texts(&world).await, Vec::<String>::new());
    ana.say_something(&world).await;
    world.pass(5.0).await;

    assert!(!texts(&world).await.is_empty(), "what was said is recognised by the next one");
    assert_eq!(ears.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_hears_no_words_in_noise_works() {
    let ears = bad(Fault::HearsNoise);
    let world = world_with(&ears).await;
    let mut ana = Caller::enter(&world, "ana").await;

    for _ in 0..5 {
        ana.say_something(&world).await;
    }

    assert_eq!((texts(&world).await, ears.asked()), (Vec::new(), 1));
    assert_eq!(ears.open(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_closed_although_the_end_of_what_was_said_was_never_answered() {
    let ears = bad(Fault::Deaf);
    let world = world_with(&ears).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    assert_eq!(ears.open(), 1);
    world.pass(40.0).await;

    assert_eq!(ears.open(), 0);
    assert_eq!(world.spans.metrics().total("tertulia_speech_recognised_seconds_total", &[]), 0.0, "nothing was recognised");
}

#[tokio::test(start_paused = true)]
async fn who_ends_without_an_error_has_failed() {
    let ears = bad(Fault::Ends);
    let world = world_with(&ears).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    world.pass(5.0).await;

    assert_eq!((texts(&world).await.len(), ears.asked()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn who_cuts_three_streams_in_a_row_has_failed() {
    let ears = bad(Fault::Cuts);
    let world = world_with(&ears).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    world.pass(10.0).await;

    assert_eq!((texts(&world).await.len(), ears.asked()), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn results_that_are_on_the_way_when_a_stream_takes_no_more_are_kept_and_so_is_its_error() {
    let ears = bad(Fault::IsFull);
    let world = world_with(&ears).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    world.pass(10.0).await;

    let texts = texts(&world).await;
    assert_eq!((texts.first().map(String::as_str), texts.len()), (Some("hello"), 2), "{texts:?}");
    assert_eq!(ears.asked(), 1, "it asked for a pause");
}
