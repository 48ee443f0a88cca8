use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time::pause;

use super::super::fake::{Fake, KEY, Trap};
use super::{OpenAiSynthesis, answers, at, check_failure, failures, hasty};
use crate::adapters::speech::conformance::{heard, sentence};
use crate::adapters::speech::service::At;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis as _};

/// The samples, and the error that ended them.
async fn say(at: At, sentence: Sentence) -> (Vec<i16>, Option<NoAnswer>) {
    let (words, samples, error) = heard(OpenAiSynthesis::new(at).expect("usable").say(sentence)).await;
    assert!(words.is_empty(), "{words:?}");
    (samples, error)
}

#[tokio::test]
async fn the_request_follows_the_protocol() {
    let fake = Fake::new([]).await;

    let (samples, error) = say(at(&fake, "tts-1"), sentence("Good evening, all.")).await;
    let other = Sentence { voice: Some("nova".into()), speed: 1.5, ..sentence("Good evening, all.") };
    let (faster, _) = say(at(&fake, "tts-1"), other).await;

    assert_eq!((samples.len(), faster.len(), error), (28_800, 19_200, None));
    let received = fake.received();
    assert_eq!(received[0].authorization, Some(format!("Bearer {KEY}")));
    let fields = json!({ "model": "tts-1", "input": "Good evening, all.", "voice": "alloy", "response_format": "pcm" });
    assert_eq!(received[0].fields, fields);
    assert_eq!((&received[1].fields["voice"], &received[1].fields["speed"]), (&json!("nova"), &json!(1.5)));
}

#[tokio::test]
async fn chunks_of_any_length_and_a_head_give_the_same_samples() {
    let traps = [Trap::Works, Trap::Chunks(1_001), Trap::Chunks(7), Trap::Wav(24_000, 1)];
    let fake = Fake::new(traps.clone()).await;

    let mut said = Vec::new();
    for _ in traps {
        said.push(say(at(&fake, "tts-1"), sentence("Yes.")).await);
    }

    assert!(said.iter().all(|one| *one == said[0] && one.0.len() == 9_600), "{:?}", said.iter().map(|one| one.0.len()));
}

#[tokio::test]
async fn what_has_no_words_is_not_asked_for() {
    let fake = Fake::new([]).await;

    for text in ["", " \n", "…", "?! —", "🦀"] {
        assert_eq!(say(at(&fake, "tts-1"), sentence(text)).await, (vec![], None), "{text:?}");
    }

    assert!(fake.received().is_empty());
}

#[tokio::test]
async fn the_first_audio_is_passed_on_before_the_rest_stalls_or_breaks() {
    let fake = Fake::new([Trap::Breaks, Trap::Stalls]).await;

    let (before_break, broken) = say(at(&fake, "tts-1"), sentence("Yes, of course.")).await;
    let mut stalling = OpenAiSynthesis::new(at(&fake, "tts-1")).expect("usable").say(sentence("Yes, of course."));
    let mut before_stall = 0;
    while before_stall < 14_400 {
        let Some(Ok(Piece::Audio(audio))) = stalling.next().await else { panic!("it stalls later") };
        before_stall += audio.len();
    }
    // Nothing else comes, so that time passes at once.
    pause();
    let (_, rest, stalled) = heard(stalling).await;

    assert_eq!((before_break.len(), before_stall, rest.len()), (14_400, 14_400, 0));
    check_failure(&broken.expect("an error"), "unreachable", "the connection broke");
    check_failure(&stalled.expect("an error"), "unreachable", "stopped halfway");
}

#[tokio::test]
async fn each_failure_has_its_code() {
    for (trap, code, part) in failures() {
        let fake = Fake::new([trap]).await;

        let (_, error) = say(at(&fake, "tts-1"), sentence("Yes.")).await;

        check_failure(&error.expect("an error"), code, part);
    }
    let fake = Fake::new([Trap::Hangs]).await;
    let (samples, error) = say(hasty(&fake, "tts-1"), sentence("Yes.")).await;
    assert_eq!((samples.len(), error.map(|error| error.code())), (0, Some("timeout")));
}

#[tokio::test]
async fn audio_of_another_kind_is_refused_with_the_way_out() {
    for (trap, part) in [
        (Trap::Wav(22_050, 1), "at 22050 Hz"),
        (Trap::Wav(24_000, 2), "2 channels"),
        (answers(200, "audio/mpeg", "\u{ff}\u{fb}"), "it sent audio/mpeg"),
        (answers(200, "audio/L16; rate=16000; channels=1", "abcd"), "audio at 16000 Hz"),
        (answers(200, "application/octet-stream", "OggS abcd"), "an Ogg file"),
        (answers(200, "audio/pcm", ""), "it sent no audio"),
        (answers(200, "audio/pcm", "a"), "it sent no audio"),
    ] {
        let fake = Fake::new([trap]).await;

        let (samples, error) = say(at(&fake, "tts-1"), sentence("Yes.")).await;

        assert!(samples.is_empty());
        check_failure(&error.expect("an error"), "refused", part);
    }
}
