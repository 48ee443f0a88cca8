//! Creates the configured speech services, and tries them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Certificate;
use tokio::time::Instant;

use crate::actors::calls::Speech;
use crate::actors::calls::providers::{Limits, Provider, Recognisers, RecognitionProvider, VoiceProvider, Voices};
use crate::actors::membership::memberships::CompanionSet;
use crate::adapters::audio::ear::OpusAudio;
use crate::adapters::speech::rehearsed::RehearsedSpeech;
use crate::adapters::speech::service::At;
use crate::adapters::speech::trial::Heard;
use crate::adapters::speech::{cartesia, deepgram, elevenlabs, openai, trial};
use crate::domain::service::Service;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::SpeechRecognition;
use crate::ports::speech_synthesis::{Sentence, SpeechSynthesis};
use crate::settings::duration;
use crate::settings::speech::{BUILT_IN, Resolved, SpeechApi, SpeechService};
use crate::settings::{Problem, Settings};
use crate::texts::Language;

/// A retry comes a second after a failure, and must find the next service.
const SHORTEST_COOL_DOWN: Duration = Duration::from_secs(2);

/// Speech without any external service: the built-in voice and recognition.
pub fn built_in() -> Speech {
    let recognition = Recognisers::new(Provider::unlimited(Arc::new(RehearsedSpeech)), []);
    let synthesis = Voices::new(Provider::unlimited(Arc::new(RehearsedSpeech)), []);
    Speech::new(Arc::new(OpusAudio), recognition, synthesis)
}

/// The configured speech services.
///
/// # Errors
/// Returns an error if a key cannot be read, or a setting cannot be used.
pub fn speech(settings: &Settings) -> Result<Speech, Problem> {
    let mut recognisers = Vec::new();
    for name in &settings.speech.recognition {
        recognisers.push(recogniser(settings, name)?);
    }
    let usual = voice(settings, &settings.speech.synthesis)?;
    let mut named = vec![(Arc::from(BUILT_IN), Provider::unlimited(Arc::new(RehearsedSpeech) as Arc<dyn SpeechSynthesis>))];
    // Every service is available, because reloaded companions may name any of them.
    for (name, table) in &settings.speech.services {
        if table.api(name)?.serves(Service::SpeechSynthesis) {
            let provider = if *name == settings.speech.synthesis { usual.clone() } else { voice(settings, name)? };
            named.push((name.clone(), provider));
        }
    }
    let mut recognisers = recognisers.into_iter();
    let first = recognisers.next().ok_or_else(|| Problem::new("recognition", "is empty"))?;
    let (recognition, synthesis) = (Recognisers::new(first, recognisers), Voices::new(usual, named));
    Ok(Speech::new(Arc::new(OpusAudio), recognition, synthesis))
}

fn recogniser(settings: &Settings, name: &str) -> Result<RecognitionProvider, Problem> {
    let Some(table) = settings.speech.services.get(name) else { return Ok(Provider::unlimited(Arc::new(RehearsedSpeech))) };
    let authorities = authorities(settings)?;
    within(name, || {
        let (api, at) = at(settings, name, table, authorities)?;
        let service: Arc<dyn SpeechRecognition> = match api {
            SpeechApi::Deepgram => Arc::new(deepgram::Deepgram::new(at)?),
            SpeechApi::Flux => Arc::new(deepgram::Deepgram::flux(at)?),
            SpeechApi::OpenAi => Arc::new(openai::OpenAiRecognition::new(at)?),
            SpeechApi::ElevenLabs | SpeechApi::Cartesia => return Err(Problem::new("api", "recognises no speech")),
        };
        Ok(Provider::new(service, limits(settings, table, Service::SpeechRecognition)))
    })
}

fn voice(settings: &Settings, name: &str) -> Result<VoiceProvider, Problem> {
    let Some(table) = settings.speech.services.get(name) else { return Ok(Provider::unlimited(Arc::new(RehearsedSpeech))) };
    let authorities = authorities(settings)?;
    within(name, || {
        let (api, at) = at(settings, name, table, authorities)?;
        let service: Arc<dyn SpeechSynthesis> = match api {
            SpeechApi::OpenAi => Arc::new(openai::OpenAiSynthesis::new(at)?),
            SpeechApi::ElevenLabs => Arc::new(elevenlabs::ElevenLabs::new(at)?),
            SpeechApi::Cartesia => Arc::new(cartesia::Cartesia::new(at)?),
            SpeechApi::Deepgram | SpeechApi::Flux => return Err(Problem::new("api", "makes no voices")),
        };
        let limits = limits(settings, table, Service::SpeechSynthesis);
        Ok(Provider::with_voice(service, limits, table.voice.clone()))
    })
}

fn authorities(settings: &Settings) -> Result<Vec<Certificate>, Problem> {
    settings.models.authorities().map_err(|problem| Problem { key: format!("models.{}", problem.key), ..problem })
}

fn at(settings: &Settings, name: &str, table: &SpeechService, authorities: Vec<Certificate>) -> Result<(SpeechApi, At), Problem> {
    let Resolved { api, base_url, model } = table.resolved(name)?;
    let (timeout, partial_results) = (settings.speech.timeout(), settings.speech.partial_results);
    Ok((api, At { base_url, model, key: table.needed_key(name)?, timeout, partial_results, authorities }))
}

fn limits(settings: &Settings, table: &SpeechService, service: Service) -> Limits {
    Limits {
        most: table.max_concurrent.unwrap_or(settings.speech.max_concurrent),
        cool_down: duration(settings.models.breaker.cool_down_secs).max(SHORTEST_COOL_DOWN),
        price: table.price(service, &settings.models.currency),
    }
}

/// Adds the service's table to the key of an error.
fn within<T>(name: &str, make: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    make().map_err(|problem| Problem { key: format!("speech.services.{name}.{}", problem.key), ..problem })
}

/// Has the usual voice say a sentence, and the first recogniser listen to it.
///
/// # Errors
/// Returns the same errors as [`speech`].
pub async fn say_and_hear(settings: &Settings) -> Result<Heard, Problem> {
    let first = settings.speech.recognition.first().ok_or_else(|| Problem::new("recognition", "is empty"))?;
    let (recogniser, voice) = (recogniser(settings, first)?, voice(settings, &settings.speech.synthesis)?);
    let language = settings.speech.language.clone();
    let text = Language::of_code(&language).unwrap_or_default().say("voice_test.sentence", &[]);
    let sentence = Sentence { companion: "trial".into(), text: text.into(), language, voice: voice.voice().cloned(), speed: 1.0 };
    Ok(trial::say_and_hear(&**voice.service(), &**recogniser.service(), sentence).await)
}

/// The result of trying one service.
pub struct Tried {
    /// The name of the service's table.
    pub name: Arc<str>,
    /// The name of its kind.
    pub service: &'static str,
    /// The error, if the service does not work.
    pub outcome: Result<(), NoAnswer>,
    pub took: Duration,
}

/// Tries each service in use, one after the other: it recognises a moment of silence, or says a word.
///
/// # Errors
/// Returns the same errors as [`speech`].
pub async fn try_services(settings: &Settings, companions: &CompanionSet) -> Result<Vec<Tried>, Problem> {
    let providers = companions.values().filter_map(|companion| companion.voice.provider.as_ref());
    let recognisers = settings.speech.recognition.iter().map(|name| (Service::SpeechRecognition, name));
    let voices: BTreeSet<_> = providers.chain([&settings.speech.synthesis]).collect();
    let mut tried = Vec::new();
    for (service, name) in recognisers.chain(voices.into_iter().map(|name| (Service::SpeechSynthesis, name))) {
        if !settings.speech.services.contains_key(name) {
            continue;
        }
        let began = Instant::now();
        let outcome = match service {
            Service::SpeechRecognition => trial::try_recognition(&**recogniser(settings, name)?.service()).await,
            Service::SpeechSynthesis | Service::LanguageModel => {
                let provider = voice(settings, name)?;
                trial::try_voice(&**provider.service(), provider.voice().cloned()).await
            }
        };
        tried.push(Tried { name: name.clone(), service: service.as_str(), outcome, took: began.elapsed() });
    }
    Ok(tried)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_at_its_vendor_needs_a_key_and_one_elsewhere_may_have_none() {
        let with = |table: serde_json::Value| {
            let speech = json!({ "services": { "deepgram": table }, "recognition": ["deepgram"] });
            problem(json!({ "speech": speech }))
        };
        let missing = with(json!({})).expect("a problem");
        assert_eq!(
            missing,
            "speech.services.deepgram.api_key: is missing, and https://api.deepgram.com/ needs one; \
             set TERTULIA__SPEECH__SERVICES__DEEPGRAM__API_KEY, or set api_key_file"
        );
        assert_eq!(with(json!({ "base_url": "http://127.0.0.1:8000" })), None);
        assert_eq!(with(json!({ "api_key": "a-key" })), None);
    }

    fn problem(overlay: serde_json::Value) -> Option<String> {
        speech(&Settings::overlay(overlay).expect("settings")).err().map(|problem| problem.to_string())
    }
}
