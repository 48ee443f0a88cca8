use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;

use super::fake::{Fake, KEY, Then, Times, UNKNOWN};
use super::*;
use crate::adapters::speech::conformance::{self, conformance, heard, sentence};

const MODEL: &str = "eleven_flash_v2_5";

fn at(fake: &Fake) -> At {
    conformance::at(&fake.url, MODEL, KEY)
}

async fn said(at: At, sentence: Sentence) -> (Vec<usize>, Vec<i16>, Option<NoAnswer>) {
    heard(ElevenLabs::new(at).unwrap().say(sentence)).await
}

async fn error(at: At, sentence: Sentence) -> NoAnswer {
    said(at, sentence).await.2.expect("an error")
}

/// A service whose fake lives as long as the test.
async fn working() -> ElevenLabs {
    let fake = Fake::new([]).await;
    let service = ElevenLabs::new(at(&fake)).unwrap();
    std::mem::forget(fake);
    service
}

conformance!(synthesis: working().await);

#[tokio::test]
async fn a_sentence_is_asked_for_as_the_documentation_says() {
    let fake = Fake::new([]).await;

    let (words, audio, error) =
        said(at(&fake), Sentence { voice: Some("a/b?c #ü\\..".into()), speed: 1.1, ..sentence(" Hello, you. ") }).await;

    assert_eq!((words, error), (vec![7, 12], None));
    // 12 characters: the space at the end is spoken too.
    assert!((15_000..17_500).contains(&audio.len()), "{}", audio.len());
    let connection = fake.connections().remove(0);
    assert_eq!(connection.voice, "a/b?c #ü\\..");
    let query = [
        ("auto_mode", "true"),
        ("language_code", "en"),
        ("model_id", MODEL),
        ("output_format", "pcm_24000"),
        ("sync_alignment", "true"),
    ];
    assert!(connection.query.iter().map(|(name, value)| (&**name, &**value)).eq(query), "{:?}", connection.query);
    assert_eq!(
        connection.messages,
        [
            json!({ "text": " ", "voice_settings": { "speed": 1.1 } }),
            json!({ "text": "Hello, you. ", "flush": true }),
            json!({ "text": "" })
        ]
    );
    assert!(!connection.is_cut_off);
}

#[tokio::test]
async fn a_language_is_named_only_to_models_that_take_one() {
    let fake = Fake::new([]).await;

    said(At { model: "eleven_multilingual_v2".into(), ..at(&fake) }, sentence("Hello.")).await;
    said(at(&fake), Sentence { language: "klingon".into(), ..sentence("Hello.") }).await;

    assert!(fake.connections().iter().all(|connection| !connection.query.contains_key("language_code")));
    assert!(fake.connections().iter().all(|connection| connection.voice == DEFAULT_VOICE));
}

#[tokio::test]
async fn audio_and_times_come_in_all_forms() {
    let text = "Well, it was a quarter past nine.";
    let plain = said(at(&Fake::new([]).await), sentence(text)).await;
    assert_eq!(plain.0, [5, 8, 12, 14, 22, 27, 33]);

    for (times, is_odd) in [(Times::OfMessage, true), (Times::OfAudio, false), (Times::Normalized, false), (Times::Absent, false)]
    {
        let fake = Fake::with(times, is_odd, None).await;

        let (words, audio, error) = said(at(&fake), sentence(text)).await;

        assert_eq!(error, None);
        assert_eq!(audio, plain.1, "{times:?}");
        assert_eq!(words, if times == Times::Absent { Vec::new() } else { plain.0.clone() }, "{times:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_in_mid_sentence_is_an_error_after_the_audio() {
    for (then, code) in [
        (Then::Cuts, "unreachable"),
        (Then::Closes(1_000, ""), "unreachable"),
        (Then::Closes(1_011, "internal error"), "unreachable"),
        (Then::Closes(1_008, "quota_exceeded"), "no_credit"),
        (Then::Fails("quota_exceeded", "This request exceeds your quota."), "no_credit"),
        (Then::Fails("too_many_concurrent_requests", "Slow down."), "overloaded"),
        (Then::Closes(1_008, "We are sorry, something went wrong."), "overloaded"),
        (Then::Closes(1_008, "Have not received a new text input within the timeout of 20 seconds."), "overloaded"),
        (Then::Fails("invalid_api_key", ""), "key_rejected"),
    ] {
        let fake = Fake::with(Times::OfMessage, false, Some((2, then.clone()))).await;

        let (words, audio, error) = said(at(&fake), sentence("Well, it was a quarter past nine.")).await;

        assert_eq!((words.len(), audio.len()), (4, 16 * 60 * 24), "{then:?}");
        assert_eq!(error.map(|error| error.code()), Some(code), "{then:?}");
    }
}

#[tokio::test]
async fn a_stall_is_noticed_before_and_in_the_audio() {
    for (after, code) in [(0, "timeout"), (1, "unreachable")] {
        let fake = Fake::with(Times::OfMessage, false, Some((after, Then::Stalls))).await;

        let error = error(At { timeout: Duration::from_millis(200), ..at(&fake) }, sentence("Well, it was late.")).await;

        assert_eq!(error.code(), code);
    }
}

#[tokio::test]
async fn a_rejected_key_and_unknown_names_say_what_to_do() {
    let fake = Fake::new([]).await;

    let wrong = error(At { key: Some("el-wrong".to_owned().into()), ..at(&fake) }, sentence("Hello.")).await;
    let none = error(At { key: None, ..at(&fake) }, sentence("Hello.")).await;
    let voice = error(at(&fake), Sentence { voice: Some(UNKNOWN.into()), ..sentence("Hello.") }).await;
    let model = error(At { model: UNKNOWN.into(), ..at(&fake) }, sentence("Hello.")).await;
    let unsendable = error(at(&fake), Sentence { voice: Some("..".into()), ..sentence("Hello.") }).await;

    assert_eq!(
        [&wrong, &none, &voice, &model, &unsendable].map(NoAnswer::code),
        ["key_rejected", "key_rejected", "refused", "unknown_model", "refused"]
    );
    assert!(wrong.to_string().contains("“Invalid API key”"), "{wrong}");
    assert!(voice.to_string().contains("set [voice] voice"), "{voice}");
    assert!(unsendable.to_string().contains("was not asked"), "{unsendable}");
}

#[tokio::test]
async fn dropping_the_stream_ends_the_connection() {
    let fake = Fake::with(Times::OfMessage, false, Some((1, Then::Stalls))).await;
    let mut pieces = ElevenLabs::new(at(&fake)).unwrap().say(sentence("Well, it was late."));
    assert!(pieces.next().await.is_some_and(|piece| piece.is_ok()));

    drop(pieces);

    fake.cut_off().await;
    assert!(fake.connections()[0].is_cut_off);
}
