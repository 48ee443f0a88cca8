use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;

use super::fake::{Does, Fake, KEY, UNKNOWN};
use super::*;
use crate::adapters::speech::conformance::{self, conformance, heard, sentence};

fn at(fake: &Fake) -> At {
    conformance::at(&fake.url, "sonic-3", KEY)
}

/// What is said: where the words end, the number of samples, and the error at the end.
type Said = (Vec<usize>, usize, Option<NoAnswer>);

async fn said_by(service: &Cartesia, sentence: Sentence) -> Said {
    listen(service.say(sentence)).await
}

async fn listen(pieces: BoxStream<'static, Result<Piece, NoAnswer>>) -> Said {
    let (words, audio, error) = heard(pieces).await;
    (words, audio.len(), error)
}

/// The code of the error that this leads to.
async fn code(at: At, sentence: Sentence) -> Option<&'static str> {
    said_by(&Cartesia::new(at).unwrap(), sentence).await.2.map(|error| error.code())
}

/// A service whose fake lives as long as the test.
async fn working() -> Cartesia {
    let fake = Fake::new([]).await;
    let service = Cartesia::new(at(&fake)).unwrap();
    std::mem::forget(fake);
    service
}

conformance!(synthesis: working().await);

const TEXT: &str = "Well, it was late.";
/// The samples of this text: 18 characters of 60 ms.
const SAMPLES: usize = 18 * 60 * 24;

#[tokio::test]
async fn sentences_are_asked_for_as_the_documentation_says_and_share_a_connection() {
    let fake = Fake::new([]).await;
    let service = Cartesia::new(at(&fake)).unwrap();

    let (one, other) = tokio::join!(
        said_by(&service, sentence(TEXT)),
        said_by(&service, Sentence { voice: Some("v1".into()), speed: 2.0, language: "pt-BR".into(), ..sentence("Hello.") })
    );

    assert_eq!(one, (vec![5, 8, 12, 18], SAMPLES, None));
    assert_eq!(other.0, [6]);
    let received = fake.received();
    let [requests] = &received[..] else { panic!("one connection: {received:?}") };
    let context = requests[0]["context_id"].clone();
    assert_eq!(
        requests[0],
        json!({
            "context_id": context, "model_id": "sonic-3", "voice": { "mode": "id", "id": DEFAULT_VOICE }, "transcript": TEXT,
            "continue": false, "add_timestamps": true, "language": "en",
            "output_format": { "container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000 },
        })
    );
    assert_eq!(requests[1]["generation_config"], json!({ "speed": 1.5 }));
    assert_eq!((&requests[1]["voice"]["id"], &requests[1]["language"]), (&json!("v1"), &json!("pt")));
    assert_ne!(requests[1]["context_id"], context);
    assert_eq!(requests.len(), 2, "what is complete is not cancelled");
}

#[tokio::test]
async fn odd_bytes_late_times_and_foreign_messages_do_no_harm() {
    let fake = Fake::new([Does::SpeaksOddly, Does::SpeaksWithoutTimes]).await;
    let service = Cartesia::new(at(&fake)).unwrap();

    assert_eq!(said_by(&service, sentence(TEXT)).await, (vec![5, 8, 12, 18], SAMPLES, None));
    assert_eq!(said_by(&service, sentence(TEXT)).await, (vec![], SAMPLES, None));
}

#[tokio::test]
async fn an_error_of_one_sentence_does_not_disturb_the_others() {
    let error = json!({ "status_code": 500, "error_code": "internal", "title": "Internal", "message": "Try again." });
    for (error, expected) in [(error, "overloaded"), (json!({ "status_code": 400, "error": "No." }), "refused")] {
        let fake = Fake::new([Does::Speaks, Does::Fails(2, error), Does::Speaks]).await;
        let service = Cartesia::new(at(&fake)).unwrap();

        let (one, failed, other) =
            tokio::join!(said_by(&service, sentence(TEXT)), said_by(&service, sentence(TEXT)), said_by(&service, sentence(TEXT)));

        assert_eq!([one, other], [(); 2].map(|()| (vec![5, 8, 12, 18], SAMPLES, None)));
        assert_eq!((failed.1, failed.2.map(|error| error.code())), (9 * 60 * 24, Some(expected)));
        assert_eq!(fake.received().len(), 1);
    }
}

#[tokio::test]
async fn an_error_without_a_name_is_that_of_a_sentence_that_has_not_begun() {
    let unnamed = json!({ "context_id": null, "status_code": 400, "title": "Bad request" });
    let fake = Fake::new([Does::Speaks, Does::Fails(0, unnamed)]).await;
    let service = Cartesia::new(at(&fake)).unwrap();
    let mut begun = service.say(sentence(TEXT));
    assert!(begun.next().await.is_some_and(|piece| piece.is_ok()));

    let failed = said_by(&service, sentence(TEXT)).await;

    assert_eq!(failed.2.map(|error| error.code()), Some("refused"));
    assert_eq!(listen(begun).await.2, None);
}

#[tokio::test]
async fn errors_are_told_apart() {
    for (error, expected) in [
        (json!({ "status_code": 402, "error_code": "quota_exceeded", "title": "Out of credits" }), "no_credit"),
        (
            json!({ "status_code": 429, "error_code": "concurrency_limited", "title": "Too many concurrent requests" }),
            "overloaded",
        ),
        (json!({ "status_code": 401, "error_code": null, "title": "Unauthorized" }), "key_rejected"),
        (json!({ "status_code": 503, "title": "Busy" }), "overloaded"),
        (json!({ "status_code": "?" }), "overloaded"),
    ] {
        let fake = Fake::new([Does::Fails(0, error.clone())]).await;
        assert_eq!(code(at(&fake), sentence(TEXT)).await, Some(expected), "{error}");
    }
    let fake = Fake::new([]).await;
    let voice = said_by(&Cartesia::new(at(&fake)).unwrap(), Sentence { voice: Some(UNKNOWN.into()), ..sentence(TEXT) }).await.2;
    assert!(voice.as_ref().is_some_and(|error| error.to_string().contains("set [voice] voice")), "{voice:?}");
    assert_eq!(code(At { model: UNKNOWN.into(), ..at(&fake) }, sentence(TEXT)).await, Some("unknown_model"));
    assert_eq!(code(At { key: Some("sk_wrong".to_owned().into()), ..at(&fake) }, sentence(TEXT)).await, Some("key_rejected"));
    assert_eq!(code(At { key: None, ..at(&fake) }, sentence(TEXT)).await, Some("key_rejected"));
}

#[tokio::test]
async fn a_cut_connection_ends_its_sentences_and_the_next_one_opens_another() {
    for (does, expected) in [
        (Does::Cuts(2), "unreachable"),
        (Does::Cuts(0), "unreachable"),
        (Does::Closes(1_000, ""), "unreachable"),
        (Does::Closes(1_011, "restart"), "unreachable"),
        (Does::Says("[7"), "refused"),
        (Does::Says("{}{}"), "refused"),
    ] {
        let fake = Fake::new([does.clone()]).await;
        let service = Cartesia::new(at(&fake)).unwrap();

        let cut = said_by(&service, sentence(TEXT)).await;
        let next = said_by(&service, sentence(TEXT)).await;

        assert_eq!(cut.2.map(|error| error.code()), Some(expected), "{does:?}");
        assert_eq!((next.1, next.2), (SAMPLES, None), "{does:?}");
        assert_eq!(fake.received().len(), 2);
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_unnoticed_is_replaced_without_an_error() {
    let fake = Fake::new([Does::Speaks, Does::Cuts(0)]).await;
    let service = Cartesia::new(at(&fake)).unwrap();
    assert_eq!(said_by(&service, sentence(TEXT)).await.2, None);

    assert_eq!(said_by(&service, sentence(TEXT)).await, (vec![5, 8, 12, 18], SAMPLES, None));
    assert_eq!(fake.received().len(), 2, "asked again at a new connection");

    fake.hang_up();
    assert_eq!(said_by(&service, sentence(TEXT)).await, (vec![5, 8, 12, 18], SAMPLES, None));
    assert_eq!(fake.received().len(), 3);
}

#[tokio::test]
async fn a_stall_is_noticed_before_and_in_the_audio_and_cancelled() {
    for (pieces, expected) in [(0, "timeout"), (1, "unreachable")] {
        let fake = Fake::new([Does::Stalls(pieces)]).await;

        let code = code(At { timeout: Duration::from_millis(200), ..at(&fake) }, sentence(TEXT)).await;

        assert_eq!(code, Some(expected));
        fake.cancelled().await;
        assert_eq!(fake.received()[0][1]["cancel"], true);
    }
}

#[tokio::test]
async fn a_connection_that_says_nothing_gets_no_other_sentence() {
    let fake = Fake::new([Does::Speaks, Does::Stalls(0)]).await;
    let service = Cartesia::new(At { timeout: Duration::from_secs(1), ..at(&fake) }).unwrap();

    assert_eq!(said_by(&service, sentence(TEXT)).await.2, None);
    let silent = said_by(&service, sentence(TEXT)).await;
    let next = said_by(&service, sentence(TEXT)).await;

    assert_eq!(silent.2.map(|error| error.code()), Some("timeout"));
    assert_eq!((next.1, next.2), (SAMPLES, None));
    assert_eq!(fake.received().len(), 2, "at another connection");
}

#[tokio::test]
async fn a_reader_that_does_not_read_fails_alone() {
    let fake = Fake::new([Does::Floods(40), Does::Speaks]).await;
    let service = Cartesia::new(at(&fake)).unwrap();
    let mut unread = service.say(sentence(&TEXT.repeat(10)));
    assert!(unread.next().await.is_some_and(|piece| piece.is_ok()));

    let read = said_by(&service, sentence(TEXT)).await;
    fake.cancelled().await;
    let (_, samples, error) = listen(unread).await;

    assert_eq!(read, (vec![5, 8, 12, 18], SAMPLES, None));
    assert!((20 * 24_000..30 * 24_000).contains(&samples), "{samples}");
    assert_eq!(error.map(|error| error.code()), Some("refused"));
    assert_eq!(fake.received().len(), 1, "the connection is the same");
}

#[tokio::test]
async fn dropping_the_stream_cancels_its_context() {
    let fake = Fake::new([Does::Stalls(1)]).await;
    let service = Cartesia::new(at(&fake)).unwrap();
    let mut pieces = service.say(sentence(TEXT));
    assert!(pieces.next().await.is_some_and(|piece| piece.is_ok()));

    drop(pieces);

    fake.cancelled().await;
    let requests = &fake.received()[0];
    assert_eq!(requests[1], json!({ "context_id": requests[0]["context_id"], "cancel": true }));
}
