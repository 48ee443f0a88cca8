//! Both directions against the fake.

mod recognition;
mod synthesis;

use std::time::Duration;

use super::fake::{Fake, KEY, Trap};
use super::{OpenAiRecognition, OpenAiSynthesis};
use crate::adapters::speech::conformance::{self, conformance};
use crate::adapters::speech::service::At;
use crate::adapters::speech::trial::{try_recognition, try_voice};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_synthesis::SpeechSynthesis as _;

conformance!(synthesis: working("tts-1", OpenAiSynthesis::new).await);
conformance!(recognition: working("whisper-1", OpenAiRecognition::new).await);

/// A client of a fake that works as long as the test.
async fn working<T>(model: &str, client: fn(At) -> Result<T, crate::settings::Problem>) -> T {
    let fake = Fake::new([]).await;
    let client = client(at(&fake, model)).expect("usable");
    std::mem::forget(fake);
    client
}

fn at(fake: &Fake, model: &str) -> At {
    conformance::at(&fake.url, model, KEY)
}

/// With a short timeout, for what never comes.
fn hasty(fake: &Fake, model: &str) -> At {
    At { timeout: Duration::from_millis(150), ..at(fake, model) }
}

fn answers(status: u16, media_type: &str, body: &str) -> Trap {
    Trap::Answers(status, vec![("content-type", media_type.to_owned())], body.to_owned())
}

/// What every request may meet, with the code and a part of the error.
fn failures() -> Vec<(Trap, &'static str, &'static str)> {
    let too_many = Trap::Answers(429, vec![("retry-after", "7".to_owned())], r#"{"error":{"message":"Rate limit"}}"#.to_owned());
    vec![
        (too_many, "overloaded", "Rate limit"),
        (answers(503, "text/plain", "loading"), "overloaded", "loading"),
        (answers(401, "application/json", r#"{"error":{"message":"no sk-fake"}}"#), "key_rejected", "no ***"),
        (answers(404, "application/json", r#"{"detail":"Not Found"}"#), "unknown_model", "usually ends in /v1, and model"),
        (answers(413, "text/html", "<html>"), "refused", "413"),
        (answers(200, "text/html", "<html>"), "refused", "does base_url lead to an OpenAI-compatible API (usually …/v1)?"),
        (answers(200, "application/json", r#"{"error":{"message":"out of memory"}}"#), "overloaded", "out of memory"),
        (
            Trap::Answers(307, vec![("location", "https://elsewhere/".to_owned())], String::new()),
            "refused",
            "redirects to https://elsewhere/",
        ),
        (Trap::Huge(20 << 20), "refused", "its answer is too long"),
    ]
}

fn check_failure(error: &NoAnswer, code: &str, part: &str) {
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    assert!(message.contains(part) && !message.contains(KEY), "{message}");
}

#[tokio::test]
async fn a_trial_tells_what_is_wrong() {
    let fake = Fake::new([]).await;
    let wrong_key = |at| At { key: Some("sk-wrong".to_owned().into()), ..at };
    let hears = |at| async { try_recognition(&OpenAiRecognition::new(at).expect("usable")).await };
    let says = |at| async { try_voice(&OpenAiSynthesis::new(at).expect("usable"), None).await };

    assert_eq!(hears(at(&fake, "gpt-4o-transcribe")).await, Ok(()));
    for error in [hears(at(&fake, "nothing")).await, says(at(&fake, "nothing")).await] {
        check_failure(&error.expect_err("no such model"), "unknown_model", "does not exist");
    }
    for error in [hears(wrong_key(at(&fake, "whisper-1"))).await, says(wrong_key(at(&fake, "tts-1"))).await] {
        check_failure(&error.expect_err("a wrong key"), "key_rejected", "***");
    }
}

#[test]
fn only_another_machine_is_a_host() {
    let host = |url: &str| OpenAiSynthesis::new(conformance::at(url, "m", KEY)).expect("usable").host();

    let hosts = ["https://api.openai.com/v1", "http://localhost:8000/v1", "http://[::1]:8000", "http://10.0.0.7/v1"].map(host);

    assert_eq!(hosts, [Some("api.openai.com".into()), None, None, Some("10.0.0.7".into())]);
}
