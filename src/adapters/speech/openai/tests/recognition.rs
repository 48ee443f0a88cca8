use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;

use super::super::fake::{Fake, KEY, Trap};
use super::{OpenAiRecognition, answers, at, check_failure, failures, hasty};
use crate::adapters::speech::service::At;
use crate::domain::moment::Moment;
use crate::domain::voice::speech::Stretch;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};

fn recogniser(at: At) -> OpenAiRecognition {
    OpenAiRecognition::new(at).expect("usable")
}

/// One second of sound, and the end of a stretch within it.
fn spoken(second: u64) -> [Sound; 2] {
    let [from, started, ended] = [0, 200, 800].map(|ms| Moment::from_micros((second * 1_000 + ms) * 1_000));
    let samples: Arc<[i16]> = (0..16_000).map(|sample| (sample % 100) as i16 * 50).collect();
    let stretch = Stretch { started, ended, voiced: Duration::from_millis(500) };
    [Sound::Audio { from, samples }, Sound::Ended(stretch)]
}

async fn listen(recognition: &OpenAiRecognition, heard: Vec<Sound>) -> (Result<(), NoAnswer>, Vec<Recognised>) {
    let (sounds, taken) = mpsc::channel(256);
    let (results, mut returned) = mpsc::channel(256);
    for sound in heard {
        sounds.try_send(sound).expect("room");
    }
    drop(sounds);
    let expectation = Expectation { language: "en".into(), names: vec!["Aria".into(), "Ben".into()] };
    let outcome = recognition.listen(expectation, taken, results).await;
    let mut all = Vec::new();
    while let Ok(result) = returned.try_recv() {
        all.push(result);
    }
    (outcome, all)
}

fn words(results: &[Recognised]) -> Vec<String> {
    let words = |result: &Recognised| match result {
        Recognised::Partial { text, .. } => format!("… {text}"),
        Recognised::Final(segment) => segment.text.to_string(),
    };
    results.iter().map(words).collect()
}

async fn failure(at: At) -> NoAnswer {
    let (outcome, results) = listen(&recogniser(at), spoken(1).to_vec()).await;
    assert!(!results.iter().any(|result| matches!(result, Recognised::Final(_))), "{results:?}");
    outcome.expect_err("no answer")
}

#[tokio::test]
async fn the_request_follows_the_protocol_and_the_answer_is_returned_with_its_figures() {
    let fake = Fake::new([]).await;
    fake.hears(&[" Hello, Aria."]);

    let (outcome, results) = listen(&recogniser(at(&fake, "whisper-1")), spoken(1).to_vec()).await;

    assert_eq!(outcome, Ok(()));
    let [Recognised::Final(segment)] = &results[..] else { panic!("{results:?}") };
    assert_eq!((&*segment.text, segment.no_speech, segment.confidence), ("Hello, Aria.", Some(0.05), Some(819)));
    let times = (segment.started.as_micros(), segment.ended.as_micros(), segment.voiced);
    assert_eq!(times, (1_200_000, 1_800_000, Some(Duration::from_millis(500))));
    assert!(segment.is_last && segment.is_verbatim);
    let received = fake.received().remove(0);
    assert_eq!((received.authorization, received.samples), (Some(format!("Bearer {KEY}")), 16_000));
    let fields = json!({ "model": "whisper-1", "response_format": "verbose_json", "language": "en", "prompt": "Aria, Ben." });
    assert_eq!(received.fields, fields);
}

#[tokio::test]
async fn results_come_in_order_though_requests_overlap() {
    let fake = Fake::new([Trap::Works, Trap::Waits(2)]).await;
    fake.hears(&["one", "two", "three", "four"]);

    let (outcome, results) = listen(&recogniser(at(&fake, "whisper-1")), (1..=4).flat_map(spoken).collect()).await;

    assert_eq!(outcome, Ok(()));
    let started = |result: &Recognised| if let Recognised::Final(segment) = result { segment.started.as_micros() } else { 0 };
    let started: Vec<u64> = results.iter().map(started).collect();
    assert_eq!(started, [1_200_000, 2_200_000, 3_200_000, 4_200_000]);
}

#[tokio::test]
async fn events_are_partial_results() {
    let fake = Fake::new([Trap::Chunks(7)]).await;
    fake.hears(&["Hello Aria"]);
    let recognition = recogniser(at(&fake, "gpt-4o-transcribe"));

    let (outcome, results) = listen(&recognition, spoken(1).to_vec()).await;

    assert_eq!((outcome, recognition.has_partials()), (Ok(()), true));
    assert_eq!(words(&results).last().map(String::as_str), Some("Hello Aria"));
    assert!(words(&results).contains(&"… Hello".to_owned()), "{results:?}");
    let fields = &fake.received()[0].fields;
    assert_eq!((&fields["stream"], &fields["response_format"]), (&json!("true"), &json!("json")));
    let unwanted = recogniser(At { partial_results: false, ..at(&fake, "gpt-4o-transcribe") });
    assert!(!unwanted.has_partials() && !recogniser(at(&fake, "whisper-1")).has_partials());
}

#[tokio::test]
async fn a_form_that_the_server_refuses_is_asked_for_once() {
    let format = r#"{"error":{"message":"unknown response_format 'verbose_json'","param":"response_format"}}"#;
    for (model, refusal, field, plain) in [
        ("whisper-1", format, "response_format", json!("json")),
        ("whisper-1", r#"{"detail":"invalid"}"#, "response_format", json!("json")),
        ("gpt-4o-transcribe", r#"{"error":{"message":"Unsupported parameter: stream"}}"#, "stream", json!(null)),
    ] {
        let fake = Fake::new([answers(400, "application/json", refusal)]).await;
        fake.hears(&["one", "two"]);
        let recognition = recogniser(at(&fake, model));

        let first = listen(&recognition, spoken(1).to_vec()).await;
        let second = listen(&recognition, spoken(2).to_vec()).await;

        assert_eq!((first.0, second.0), (Ok(()), Ok(())), "{refusal}");
        // The fake has taken the first words for the request that it refused.
        let received = fake.received();
        let asked: Vec<_> = received.iter().map(|received| &received.fields[field]).collect();
        assert_eq!((asked.len(), asked[1], asked[2]), (3, &plain, &plain), "{refusal}");
        assert_ne!(asked[0], &plain);
        assert!(!recognition.has_partials());
    }
}

#[tokio::test]
async fn silence_has_no_words_and_says_so() {
    let fake = Fake::new([]).await;
    let [_, end] = spoken(1);
    let silence = Sound::Audio { from: Moment::from_micros(1_000_000), samples: vec![0; 16_000].into() };

    let (_, results) = listen(&recogniser(at(&fake, "whisper-1")), vec![silence, end]).await;

    let [Recognised::Final(segment)] = &results[..] else { panic!("{results:?}") };
    assert_eq!((&*segment.text, segment.no_speech), ("", Some(0.9)));
}

#[tokio::test]
async fn each_failure_has_its_code() {
    for (trap, code, part) in failures() {
        let fake = Fake::new([trap.clone(), trap]).await;

        let error = failure(at(&fake, "whisper-1")).await;

        check_failure(&error, code, part);
        if let NoAnswer::Overloaded { retry_after, detail, .. } = &error {
            assert_eq!(retry_after.is_some(), detail.contains("Rate limit"), "{detail}");
        }
    }
    for trap in [Trap::Hangs, Trap::Stalls] {
        let fake = Fake::new([trap.clone(), trap]).await;
        assert!(failure(hasty(&fake, "whisper-1")).await.is_transient());
    }
    for (trap, model) in [(Trap::Breaks, "whisper-1"), (Trap::Breaks, "gpt-4o-transcribe")] {
        let fake = Fake::new([trap.clone(), trap]).await;
        check_failure(&failure(at(&fake, model)).await, "unreachable", "the connection broke");
    }
    let cut = answers(200, "text/event-stream", "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hel\"}\n\n");
    let fake = Fake::new([cut.clone(), cut]).await;
    check_failure(&failure(at(&fake, "gpt-4o-transcribe")).await, "unreachable", "cut off");
}

#[tokio::test]
async fn an_answer_that_is_garbled_or_without_text_is_refused() {
    for body in ["", "Hello", "[]", "{}", r#"{"text":null}"#, r#"{"text":["a"]}"#] {
        let fake = Fake::new([answers(200, "application/json", body)]).await;

        check_failure(&failure(at(&fake, "whisper-1")).await, "refused", "its answer cannot be read");
    }
}

#[tokio::test]
async fn what_is_repeated_after_a_failure_gets_the_ids_that_it_would_have_had() {
    let crashed = || answers(500, "text/plain", "crashed");
    let fake = Fake::new([Trap::Works, crashed(), crashed()]).await;
    let recognition = recogniser(at(&fake, "whisper-1"));
    let all: Vec<Sound> = (1..=2).flat_map(spoken).collect();

    let (failed, before) = listen(&recognition, all.clone()).await;
    let (outcome, after) = listen(&recognition, all).await;

    assert!(failed.is_err_and(|error| error.is_transient()) && outcome.is_ok());
    let id = |result: &Recognised| if let Recognised::Final(segment) = result { segment.id.clone() } else { "".into() };
    assert!(before.iter().map(id).all(|before| after.iter().map(id).any(|after| before == after)));
    assert_eq!(after.iter().map(id).collect::<Vec<_>>(), ["1200000".into(), "2200000".into()]);
}

#[tokio::test]
async fn an_error_of_a_moment_costs_no_word_of_a_long_utterance() {
    let fake = Fake::new([answers(503, "text/plain", "busy")]).await;
    // The request that fails takes the first.
    fake.hears(&["Lost.", "Well then."]);
    let [_, end] = spoken(10);
    let long = (1..=10).map(|second| spoken(second)[0].clone()).chain([end]).collect();

    let (outcome, results) = listen(&recogniser(at(&fake, "whisper-1")), long).await;

    assert!(outcome.is_ok());
    assert_eq!(words(&results), ["Well then."]);
}

#[tokio::test]
async fn a_server_that_is_slower_than_speech_is_overloaded() {
    let fake = Fake::new([Trap::Hangs, Trap::Hangs, Trap::Hangs]).await;

    let (outcome, _) = listen(&recogniser(at(&fake, "whisper-1")), (1..=12).flat_map(spoken).collect()).await;

    check_failure(&outcome.expect_err("too slow"), "overloaded", "more slowly than people speak");
}
