//! Services for speech recognition or synthesis, each in a table with its own name: `[speech.services.NAME]`.

use std::path::PathBuf;
use std::sync::Arc;

use reqwest::Url;
use secrecy::SecretString;
use serde::Deserialize;

use crate::domain::named::named;
use crate::domain::price::UnitPrice;
use crate::domain::service::Service;
use crate::models::{HIGHEST_PRICE, LOWEST_PRICE, check_key_sources, parsed_endpoint, read_key};
use crate::{Problem, within};

/// The name of the built-in recogniser and voice, which need no table.
pub const BUILT_IN: &str = "rehearsal";
/// The longest name of a model or a voice, in bytes.
const MAX_NAME_BYTES: usize = 200;

named! {
    /// A protocol of speech services.
    pub enum SpeechApi {
        /// Deepgram's streaming recognition, version 1.
        Deepgram = "deepgram",
        /// Deepgram's streaming recognition with its own detection of the end of a turn, version 2 ("Flux").
        Flux = "flux",
        /// OpenAI's transcriptions and speech, which many local servers understand.
        OpenAi = "openai",
        /// ElevenLabs' streaming synthesis.
        ElevenLabs = "elevenlabs",
        /// Cartesia's streaming synthesis.
        Cartesia = "cartesia",
    }
}

impl SpeechApi {
    /// Whether the protocol has this function.
    pub const fn serves(self, service: Service) -> bool {
        match service {
            Service::LanguageModel => false,
            Service::SpeechRecognition => matches!(self, Self::Deepgram | Self::Flux | Self::OpenAi),
            Service::SpeechSynthesis => matches!(self, Self::OpenAi | Self::ElevenLabs | Self::Cartesia),
        }
    }

    /// The provider's base URL.
    const fn base_url(self) -> &'static str {
        match self {
            Self::Deepgram | Self::Flux => "https://api.deepgram.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::ElevenLabs => "https://api.elevenlabs.io",
            Self::Cartesia => "https://api.cartesia.ai",
        }
    }

    /// The default model. `None`: it is unknown which models an OpenAI-compatible server has.
    const fn model(self) -> Option<&'static str> {
        match self {
            Self::Deepgram => Some("nova-3"),
            Self::Flux => Some("flux-general-en"),
            Self::OpenAi => None,
            Self::ElevenLabs => Some("eleven_flash_v2_5"),
            Self::Cartesia => Some("sonic-3"),
        }
    }
}

/// A speech service as written in the settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeechService {
    /// Its protocol. `None`: the name of the table.
    pub api: Option<SpeechApi>,
    /// The base URL. `None`: that of the provider.
    pub base_url: Option<String>,
    /// The model's name. Required for `openai`.
    pub model: Option<String>,
    /// The voice of companions that name none in their files. `None`: the service's own, if it has one.
    pub voice: Option<Arc<str>>,
    /// The key, only from the environment (`TERTULIA__SPEECH__SERVICES__DEEPGRAM__API_KEY`).
    pub api_key: Option<SecretString>,
    /// A file that contains only the key.
    pub api_key_file: Option<PathBuf>,
    /// The maximum number of concurrent streams or sentences (1 to 1,024). `None`: `speech.max_concurrent`.
    pub max_concurrent: Option<usize>,
    /// The price of a minute of recognised audio, or of a million spoken characters, in units of `models.currency`: 0, or
    /// 0.000001 to 1,000,000. `None`: the cost is unknown.
    pub price: Option<f64>,
}

/// A service with all values that a client needs.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub api: SpeechApi,
    pub base_url: Url,
    pub model: Arc<str>,
}

impl SpeechService {
    /// The protocol of the table with this name.
    ///
    /// # Errors
    /// Returns an error if the table has no `api` and its name is not that of a protocol.
    pub fn api(&self, name: &str) -> Result<SpeechApi, Problem> {
        let by_name = || SpeechApi::ALL.into_iter().find(|api| api.as_str() == name);
        self.api.or_else(by_name).ok_or_else(|| {
            let all = SpeechApi::ALL.map(|api| format!("{:?}", api.as_str())).join(", ");
            Problem::new("api", format!("is missing; set it to one of {all}, or give the table such a name"))
        })
    }

    /// The values that a client needs.
    ///
    /// # Errors
    /// Returns the first missing or invalid value.
    pub fn resolved(&self, name: &str) -> Result<Resolved, Problem> {
        let api = self.api(name)?;
        let base_url =
            parsed_endpoint("base_url", self.base_url.as_deref().unwrap_or(api.base_url()), "http://127.0.0.1:8000/v1")?;
        let missing =
            || Problem::new("model", format!("is missing; name the model that {base_url} serves, for example \"whisper-1\""));
        let model = self.model.as_deref().or(api.model()).ok_or_else(missing)?.into();
        Ok(Resolved { api, base_url, model })
    }

    /// The key, if one is set.
    ///
    /// # Errors
    /// Returns an error if the key cannot be read, or cannot be sent in a header.
    pub fn key(&self) -> Result<Option<SecretString>, Problem> {
        read_key(self.api_key.as_ref(), self.api_key_file.as_deref())
    }

    /// The key for requests to the service. `None`: the service needs none.
    ///
    /// # Errors
    /// The same as for [`Self::key`], and if no key is set although the provider needs one.
    pub fn needed_key(&self, name: &str) -> Result<Option<SecretString>, Problem> {
        let key = self.key()?;
        if key.is_none() && self.base_url.is_none() {
            let (base_url, name) = (self.resolved(name)?.base_url, name.to_uppercase());
            let message = format!(
                "is missing, and {base_url} needs one; set TERTULIA__SPEECH__SERVICES__{name}__API_KEY, or set api_key_file"
            );
            return Err(Problem::new("api_key", message));
        }
        Ok(key)
    }

    /// The price of this function. `None`: no price is set, so the cost is unknown.
    pub fn price(&self, service: Service, currency: &str) -> Option<UnitPrice> {
        match service {
            Service::LanguageModel => None,
            Service::SpeechRecognition => self.price.map(|price| UnitPrice::per_minute(price, currency)),
            Service::SpeechSynthesis => self.price.map(|price| UnitPrice::per_million_characters(price, currency)),
        }
    }

    pub(super) fn check(&self, name: &str) -> Result<(), Problem> {
        self.resolved(name)?;
        let texts = [("model", self.model.as_deref()), ("voice", self.voice.as_deref())];
        for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text?))) {
            if text.trim().is_empty() || text.len() > MAX_NAME_BYTES || text.chars().any(char::is_control) {
                return Err(Problem::new(
                    key,
                    format!("must be a name of 1 to {MAX_NAME_BYTES} bytes without control characters"),
                ));
            }
        }
        within("max_concurrent", self.max_concurrent.unwrap_or(1), 1..=1024)?;
        within("price", self.price.filter(|price| *price != 0.0).unwrap_or(LOWEST_PRICE), LOWEST_PRICE..=HIGHEST_PRICE)?;
        check_key_sources(self.api_key.as_ref(), self.api_key_file.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Settings;

    fn problem(speech: Value) -> String {
        Settings::overlay(json!({ "speech": speech })).expect_err("refused").to_string()
    }

    #[test]
    fn a_table_that_is_named_like_a_protocol_needs_nothing_but_a_key() {
        let services = json!({ "deepgram": {}, "flux": {}, "elevenlabs": {}, "cartesia": {}, "ears": { "api": "openai", "model": "whisper-1" } });
        let speech = json!({ "services": services, "recognition": ["flux", "ears", "rehearsal"], "synthesis": "cartesia" });

        let settings = Settings::overlay(json!({ "speech": speech })).expect("usable");

        let resolved = |name: &str| settings.speech.services[name].resolved(name).expect("complete");
        let found = ["deepgram", "flux", "elevenlabs", "cartesia", "ears"].map(|name| {
            let Resolved { api, base_url, model } = resolved(name);
            format!("{api} {base_url} {model}")
        });
        assert_eq!(
            found,
            [
                "deepgram https://api.deepgram.com/ nova-3",
                "flux https://api.deepgram.com/ flux-general-en",
                "elevenlabs https://api.elevenlabs.io/ eleven_flash_v2_5",
                "cartesia https://api.cartesia.ai/ sonic-3",
                "openai https://api.openai.com/v1 whisper-1",
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_the_way_out() {
        for (speech, expected) in [
            (json!({ "recognition": ["deepgram"] }), "add a table [speech.services.deepgram], or choose one of \"rehearsal\""),
            (json!({ "recognition": [] }), "speech.recognition is empty"),
            (
                json!({ "services": { "deepgram": {} }, "synthesis": "deepgram" }),
                "\"deepgram\" is no service that makes voices; choose one of \"rehearsal\"",
            ),
            (json!({ "services": { "flux": {} }, "recognition": ["flux", "flux"] }), "names \"flux\" twice"),
            (json!({ "services": { "flux": {} }, "recognition": ["rehearsal", "flux"] }), "which would never be used"),
            (json!({ "services": { "ears": {} } }), "speech.services.ears.api is missing"),
            (json!({ "services": { "openai": {} } }), "speech.services.openai.model is missing"),
            (json!({ "services": { "rehearsal": { "api": "openai" } } }), "is the name of what is built in"),
            (json!({ "services": { "Ears": { "api": "flux" } } }), "is not a name of 1 to 32 letters"),
            (json!({ "services": { "flux": { "base_url": "ftp://x" } } }), "speech.services.flux.base_url must begin with http"),
            (json!({ "services": { "flux": { "price": -1.0 } } }), "speech.services.flux.price"),
            (json!({ "services": { "flux": { "max_concurrent": 0 } } }), "speech.services.flux.max_concurrent"),
            (json!({ "services": { "flux": { "voice": "" } } }), "speech.services.flux.voice must be a name"),
            (json!({ "guild_minutes_per_day": 0.0 }), "speech.guild_minutes_per_day"),
        ] {
            let found = problem(speech.clone());

            assert!(found.contains(expected), "{speech}: {found}");
        }
    }

    #[test]
    fn a_price_counts_minutes_or_characters() {
        let table = SpeechService { price: Some(0.6), ..SpeechService::default() };

        assert_eq!(table.price(Service::SpeechRecognition, "EUR"), Some(UnitPrice::per_minute(0.6, "EUR")));
        assert_eq!(table.price(Service::SpeechSynthesis, "EUR"), Some(UnitPrice::per_million_characters(0.6, "EUR")));
        assert_eq!(SpeechService::default().price(Service::SpeechSynthesis, "EUR"), None);
    }
}
