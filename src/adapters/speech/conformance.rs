//! The tests that every synthesis and every recognition of speech must pass.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::mpsc;

use super::service::At;
use super::trial::{try_recognition, try_voice};
use crate::domain::moment::Moment;
use crate::domain::voice::heard::WordTime;
use crate::domain::voice::speech::Stretch;
use crate::ports::audio::{HEARD_FRAME, SPOKEN_RATE};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Segment, Sound, SpeechRecognition};
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis};

/// Generates one test for each rule. The expression creates the synthesis or the recognition.
macro_rules! conformance {
    (synthesis: $synthesis:expr) => {
        conformance!($synthesis;
            words_have_audio,
            a_text_without_words_has_none_and_no_error,
            the_times_of_words_come_before_their_audio_ascend_and_lie_within_it,
            a_higher_speed_takes_less_time,
            a_sentence_that_is_cancelled_does_not_affect_another,
            a_voice_can_be_tried,
        );
    };
    (recognition: $recognition:expr) => {
        conformance!($recognition;
            each_stretch_has_one_last_final_with_times_within_the_audio,
            a_cut_stretch_is_not_the_last_of_its_utterance,
            the_same_audio_has_the_same_ids,
            what_is_closed_without_speech_returns_no_words,
            it_ends_when_nobody_takes_the_results,
            partial_results_come_only_from_who_has_them,
            recognition_can_be_tried,
        );
    };
    ($subject:expr; $($rule:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $rule() {
                $crate::adapters::speech::conformance::$rule($subject).await;
            }
        )*
    };
}
pub(super) use conformance;

const TEXTS: [&str; 5] =
    ["Yes.", "Well, it was a quarter past nine, I think: not later!", "„Größe“, 你好吗？ 🦀", "3.14 × 2 = 6.28", "a\nb\tc"];

pub(super) async fn words_have_audio(synthesis: impl SpeechSynthesis) {
    for text in TEXTS {
        let audio = said(&synthesis, text, 1.0).await.duration;

        let chars = text.chars().count() as u32;
        assert!(audio >= Duration::from_millis(100) && audio <= Duration::from_secs(2) * chars, "{text}: {audio:?}");
    }
}

pub(super) async fn a_text_without_words_has_none_and_no_error(synthesis: impl SpeechSynthesis) {
    for text in ["", "   ", "\n"] {
        assert_eq!(said(&synthesis, text, 1.0).await.words, None, "{text:?}");
    }
}

pub(super) async fn the_times_of_words_come_before_their_audio_ascend_and_lie_within_it(synthesis: impl SpeechSynthesis) {
    for text in TEXTS {
        let Said { words: Some(words), duration } = said(&synthesis, text, 1.0).await else { continue };

        assert!(words.is_sorted_by(|one, next| one.text_end < next.text_end && one.end <= next.start), "{text}: {words:?}");
        assert!(words.iter().all(|word| word.start <= word.end && text.is_char_boundary(word.text_end)), "{text}: {words:?}");
        let (last, upto) = words.last().map(|word| (word.end, word.text_end)).unwrap_or_default();
        assert!(last <= duration && duration - last < Duration::from_secs(2), "{text}: {last:?} of {duration:?}");
        assert_eq!(text[upto..].trim(), "", "{text}: words without a time");
    }
}

pub(super) async fn a_higher_speed_takes_less_time(synthesis: impl SpeechSynthesis) {
    let slow = said(&synthesis, TEXTS[1], 0.5).await.duration;
    let fast = said(&synthesis, TEXTS[1], 2.0).await.duration;

    assert!(fast < slow, "{fast:?} at 2, {slow:?} at 0.5");
}

pub(super) async fn a_sentence_that_is_cancelled_does_not_affect_another(synthesis: impl SpeechSynthesis) {
    let mut cancelled = synthesis.say(sentence(TEXTS[1]));
    assert!(cancelled.next().await.is_some());
    drop(cancelled);

    let (one, other) = tokio::join!(said(&synthesis, TEXTS[0], 1.0), said(&synthesis, TEXTS[1], 1.0));

    assert!(one.duration > Duration::ZERO && other.duration > one.duration);
}

pub(super) async fn a_voice_can_be_tried(synthesis: impl SpeechSynthesis) {
    assert_eq!(try_voice(&synthesis, None).await, Ok(()));
}

pub(super) async fn recognition_can_be_tried(recognition: impl SpeechRecognition) {
    assert_eq!(try_recognition(&recognition).await, Ok(()));
}

pub(super) async fn each_stretch_has_one_last_final_with_times_within_the_audio(recognition: impl SpeechRecognition) {
    let stretches = [stretch(1_000, 2_000), stretch(3_000, 3_400), stretch(10_000, 14_500)];
    let sounds = stretches.into_iter().flat_map(|stretch| spoken(stretch, Sound::Ended(stretch))).collect();

    let finals = finals(recognised(&recognition, sounds).await);

    let last: Vec<&Segment> = finals.iter().filter(|segment| segment.is_last).collect();
    assert_eq!(last.len(), stretches.len(), "{finals:?}");
    for segment in &finals {
        let is_within = |stretch: &Stretch| stretch.started - BEFORE <= segment.started && segment.ended <= stretch.ended + AFTER;
        assert!(segment.started <= segment.ended && stretches.iter().any(is_within), "{segment:?}");
        assert!(segment.voiced.is_none_or(|voiced| voiced <= segment.ended.since(segment.started)), "{segment:?}");
        assert!(segment.no_speech.is_none_or(|no_speech| (0.0..=1.0).contains(&no_speech)), "{segment:?}");
        assert!(segment.confidence.is_none_or(|confidence| confidence <= 1_000), "{segment:?}");
    }
    assert!(finals.is_sorted_by_key(|segment| segment.started), "{finals:?}");
    assert_eq!(ids(&finals).len(), finals.len(), "an id comes twice");
}

pub(super) async fn a_cut_stretch_is_not_the_last_of_its_utterance(recognition: impl SpeechRecognition) {
    let (long, rest) = (stretch(1_000, 4_000), stretch(4_000, 5_000));
    let sounds = [spoken(long, Sound::Cut(long)), spoken(rest, Sound::Ended(rest))].concat();

    let finals = finals(recognised(&recognition, sounds).await);

    let (last, others) = finals.split_last().expect("a final");
    assert!(last.is_last && last.ended <= rest.ended && !others.iter().any(|segment| segment.is_last), "{finals:?}");
}

pub(super) async fn the_same_audio_has_the_same_ids(recognition: impl SpeechRecognition) {
    let stretch = stretch(1_000, 2_000);
    let sounds = || spoken(stretch, Sound::Ended(stretch));

    let (one, again) = (recognised(&recognition, sounds()).await, recognised(&recognition, sounds()).await);

    assert_eq!(ids(&finals(one)), ids(&finals(again)));
}

pub(super) async fn what_is_closed_without_speech_returns_no_words(recognition: impl SpeechRecognition) {
    for sounds in [vec![], vec![Sound::Finalize], vec![Sound::Finalize, Sound::Finalize]] {
        let finals = finals(recognised(&recognition, sounds).await);

        assert!(finals.iter().all(|segment| segment.text.trim().is_empty()), "{finals:?}");
    }
}

pub(super) async fn it_ends_when_nobody_takes_the_results(recognition: impl SpeechRecognition) {
    let (sounds, taken) = mpsc::channel(64);
    let (results, returned) = mpsc::channel(1);
    drop(returned);
    let stretch = stretch(1_000, 1_200);
    for sound in spoken(stretch, Sound::Ended(stretch)) {
        sounds.send(sound).await.unwrap();
    }

    // `sounds` stays open, so the test would hang otherwise.
    assert_eq!(recognition.listen(expectation(), taken, results).await, Ok(()));
}

pub(super) async fn partial_results_come_only_from_who_has_them(recognition: impl SpeechRecognition) {
    let stretch = stretch(1_000, 4_000);

    let results = recognised(&recognition, spoken(stretch, Sound::Ended(stretch))).await;

    let mut partials =
        results.iter().filter_map(|result| if let Recognised::Partial { started, .. } = result { Some(started) } else { None });
    assert!(
        partials.all(|started| recognition.has_partials() && (stretch.started..=stretch.ended).contains(started)),
        "{results:?}"
    );
}

/// The audio of a sentence.
struct Said {
    words: Option<Vec<WordTime>>,
    duration: Duration,
}

/// A sentence in the voice of the service.
pub(super) fn sentence(text: &str) -> Sentence {
    Sentence { companion: "aria".into(), text: text.into(), language: "en".into(), voice: None, speed: 1.0 }
}

/// The ends of the words in the text, the samples, and the error at the end.
pub(super) async fn heard(mut pieces: BoxStream<'static, Result<Piece, NoAnswer>>) -> (Vec<usize>, Vec<i16>, Option<NoAnswer>) {
    let (mut words, mut audio) = (Vec::new(), Vec::new());
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(Piece::Words(times)) => words.extend(times.into_iter().map(|word| word.text_end)),
            Ok(Piece::Audio(samples)) => audio.extend(samples),
            Err(error) => {
                assert!(pieces.next().await.is_none(), "something follows an error");
                return (words, audio, Some(error));
            }
        }
    }
    (words, audio, None)
}

/// A service at this address.
pub(super) fn at(url: &str, model: &str, key: &str) -> At {
    At {
        base_url: url.parse().expect("a URL"),
        model: model.into(),
        key: Some(key.to_owned().into()),
        timeout: Duration::from_secs(10),
        partial_results: true,
        authorities: Vec::new(),
    }
}

/// Makes all audio of a sentence, and checks the order of its pieces.
async fn said(synthesis: &impl SpeechSynthesis, text: &str, speed: f64) -> Said {
    let pieces: Vec<Result<Piece, NoAnswer>> = synthesis.say(Sentence { speed, ..sentence(text) }).collect().await;
    assert!(pieces.iter().rev().skip(1).all(Result::is_ok), "{text:?}: something follows an error");
    let (mut words, mut duration) = (Vec::new(), Duration::ZERO);
    let mut samples = 0;
    for piece in pieces {
        match piece.unwrap_or_else(|error| panic!("{text:?}: {error}")) {
            Piece::Words(times) => {
                assert!(times.iter().all(|word| word.end >= duration), "{text:?}: {times:?} come after {duration:?} of audio");
                words.extend(times);
            }
            Piece::Audio(audio) => {
                samples += audio.len() as u64;
                duration = Duration::from_micros(samples * 1_000_000 / u64::from(SPOKEN_RATE));
            }
        }
    }
    Said { words: Some(words).filter(|words| !words.is_empty()), duration }
}

fn expectation() -> Expectation {
    Expectation { language: "en".into(), names: vec!["Aria".into()] }
}

fn stretch(started_ms: u64, ended_ms: u64) -> Stretch {
    let [started, ended] = [started_ms, ended_ms].map(|ms| Moment::from_micros(ms * 1_000));
    Stretch { started, ended, voiced: ended.since(started) }
}

/// The audio that is sent before and after a stretch.
const BEFORE: Duration = Duration::from_millis(400);
const AFTER: Duration = Duration::from_millis(300);

/// The audio of a stretch in packets of 20 ms, and then its end.
fn spoken(stretch: Stretch, end: Sound) -> Vec<Sound> {
    let begin = stretch.started - BEFORE;
    let packets = (stretch.ended.since(begin) + AFTER).as_millis() as u32 / 20;
    let samples: Arc<[i16]> = (0..HEARD_FRAME).map(|sample| ((sample * 37 % 100) as i16 - 50) * 100).collect();
    let audio = |packet| Sound::Audio { from: begin + Duration::from_millis(20) * packet, samples: samples.clone() };
    (0..packets).map(audio).chain([end]).collect()
}

/// The results for these sounds.
async fn recognised(recognition: &impl SpeechRecognition, heard: Vec<Sound>) -> Vec<Recognised> {
    let (sounds, taken) = mpsc::channel(16);
    let (results, mut returned) = mpsc::channel(1);
    let listening = recognition.listen(expectation(), taken, results);
    let talking = async move {
        for sound in heard {
            sounds.send(sound).await.expect("it listens until the sounds are closed");
        }
    };
    let collecting = async {
        let mut all = Vec::new();
        while let Some(result) = returned.recv().await {
            all.push(result);
        }
        all
    };
    let (outcome, (), all) = tokio::join!(listening, talking, collecting);
    assert_eq!(outcome, Ok(()));
    all
}

fn finals(results: Vec<Recognised>) -> Vec<Segment> {
    let segment = |result| if let Recognised::Final(segment) = result { Some(segment) } else { None };
    results.into_iter().filter_map(segment).collect()
}

fn ids(finals: &[Segment]) -> BTreeSet<Arc<str>> {
    finals.iter().map(|segment| segment.id.clone()).collect()
}
