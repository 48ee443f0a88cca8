//! `tertulia models check`: what it says about services for speech.

use super::*;
use crate::harness::Ran;

/// The services that are tried.
struct Services {
    deepgram: deepgram::Fake,
    openai: openai::Fake,
    elevenlabs: elevenlabs::Fake,
    cartesia: cartesia::Fake,
}

/// All services: two recognise, the companions use three for their voices.
const VOICES: [(&str, &str); 3] = [("openai", "nova"), ("elevenlabs", "calm"), ("cartesia", "calm")];

impl Services {
    async fn new() -> Self {
        Self {
            deepgram: deepgram(&[]).await,
            openai: openai::Fake::new([]).await,
            elevenlabs: elevenlabs::Fake::new([]).await,
            cartesia: cartesia::Fake::new([]).await,
        }
    }

    /// Premises in which all work.
    fn premises(&self) -> Premises {
        let premises = with_deepgram(Premises::new(), &self.deepgram);
        let premises = with_service(premises, "hearing", "openai", &self.openai.url, openai::KEY);
        let premises = premises.with("speech.services.hearing.model", "whisper-1");
        let premises = premises.with("speech.recognition", r#"["deepgram", "hearing"]"#).with("speech.synthesis", "openai");
        let premises = with_service(premises, "openai", "openai", &self.openai.url, openai::KEY);
        let premises = premises.with("speech.services.openai.model", "tts-1");
        let premises = with_service(premises, "elevenlabs", "elevenlabs", &self.elevenlabs.url, elevenlabs::KEY);
        let premises = with_service(premises, "cartesia", "cartesia", &self.cartesia.url, cartesia::KEY);
        VOICES.into_iter().fold(premises, |premises, (name, voice)| {
            let premises = premises.with(&format!("speech.services.{name}.voice"), voice);
            let companion = format!("name = \"{name}\"\n[voice]\nprovider = \"{name}\"\n");
            premises.with_companion(if name == "openai" { "aria" } else { name }, &companion)
        })
    }
}

/// Runs the check as text and as JSON, which must say the same and no key.
async fn checked(premises: &Premises, exit_code: i32) -> (String, Value) {
    let text = premises.run(&["models", "check"]).await.exits_with(exit_code);
    let json = premises.run(&["models", "check", "--json"]).await.exits_with(exit_code);
    for Ran { stdout, stderr, .. } in [&text, &json] {
        let keys = [deepgram::KEY, openai::KEY, elevenlabs::KEY, cartesia::KEY, "wrong-secret"];
        assert!(!keys.iter().any(|key| stdout.contains(key) || stderr.contains(key)), "{stdout}{stderr}");
    }
    (text.stdout, json.object()["speech"].clone())
}

/// The names of the services that do not work, with their errors.
fn failed(speech: &Value) -> Vec<(String, String)> {
    let failed = speech.as_array().expect("a list").iter().filter(|tried| tried["works"] == false);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    failed.map(|tried| (text(&tried["name"]), text(&tried["error"]))).collect()
}

#[tokio::test]
async fn each_service_that_is_used_is_tried() {
    let services = Services::new().await;

    let (text, speech) = checked(&services.premises(), 0).await;

    for line in ["hears    deepgram: works", "hears    hearing: works", "speaks   openai: works", "speaks   elevenlabs: works"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!((speech.as_array().map(Vec::len), failed(&speech)), (Some(5), Vec::new()), "{speech}");
}

#[tokio::test]
async fn the_moderation_service_is_tried() {
    let services = Services::new().await;
    let premises = services.premises().with("models.moderation.base_url", &services.openai.url);

    let text = premises.run(&["models", "check"]).await.exits_with(1).stdout;
    let json = premises.run(&["models", "check", "--json"]).await.exits_with(1).object();

    assert!(text.contains("examines moderation: does not work"), "{text}");
    assert_eq!((&json["moderation"]["works"], &json["moderation"]["error"]), (&false.into(), &"key_rejected".into()), "{json}");
}

#[tokio::test]
async fn a_key_a_model_or_a_voice_that_is_wrong_is_named_with_the_way_out() {
    let services = Services::new().await;
    // The services in the order in which they are tried, with the error and words of the advice.
    let keys = ["deepgram", "hearing", "cartesia", "elevenlabs", "openai"]
        .map(|name| (format!("{name}.api_key"), "wrong-secret", "key_rejected", "check the key"));
    let models = [
        ("deepgram", "no-such", "unknown_model", "No such model"),
        ("hearing", "no-such", "unknown_model", "check base_url"),
        ("cartesia", cartesia::UNKNOWN, "unknown_model", "check base_url"),
        ("elevenlabs", elevenlabs::UNKNOWN, "unknown_model", "check base_url"),
        ("openai", "no-such", "unknown_model", "check base_url"),
    ]
    .map(|(name, value, error, words)| (format!("{name}.model"), value, error, words));
    let voices =
        [("cartesia", cartesia::UNKNOWN), ("elevenlabs", elevenlabs::UNKNOWN), ("openai", "no-such")].map(|(name, value)| {
            let words = if name == "openai" { "no-such" } else { "set [voice] voice" };
            (format!("{name}.voice"), value, "refused", words)
        });

    for wrong in [&keys[..], &models, &voices] {
        let set = |premises: Premises, (setting, value, ..): &(String, &str, &str, &str)| {
            premises.with(&format!("speech.services.{setting}"), value)
        };
        let premises = wrong.iter().fold(services.premises(), set);

        let (text, speech) = checked(&premises, 1).await;

        let name = |setting: &str| setting.split('.').next().unwrap_or_default().to_owned();
        let expected: Vec<_> = wrong.iter().map(|(setting, _, error, _)| (name(setting), (*error).to_owned())).collect();
        assert_eq!(failed(&speech), expected, "{speech:#}");
        for (setting, _, _, words) in wrong {
            let after = text.split_once(&format!("{}: does not work", name(setting))).expect("its line").1;
            let line = after.lines().nth(1).unwrap_or_default();
            assert!(line.contains(words), "{setting}: {line}");
        }
    }
}

#[tokio::test]
async fn services_that_are_down_are_named_with_their_addresses() {
    let services = Services::new().await;
    let premises = services.premises();
    drop(services);

    let (text, speech) = checked(&premises, 1).await;

    let names = ["deepgram", "hearing", "cartesia", "elevenlabs", "openai"];
    assert_eq!(failed(&speech), names.map(|name| (name.to_owned(), "unreachable".to_owned())), "{speech}");
    assert_eq!(text.matches("127.0.0.1").count(), names.len(), "{text}");
}
