//! The kinds of external services, and the identity of their endpoints.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A kind of external service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// Generates text from text. Records without a service are of this kind.
    #[default]
    LanguageModel,
    /// Returns the words of what people say.
    SpeechRecognition,
    /// Makes the audio of what companions say.
    SpeechSynthesis,
}

impl Service {
    /// The name, as in records and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LanguageModel => "language_model",
            Self::SpeechRecognition => "speech_recognition",
            Self::SpeechSynthesis => "speech_synthesis",
        }
    }
}

/// A service at an endpoint. It fails as a whole, and has one circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceEndpoint {
    /// The kind of service.
    pub service: Service,
    /// Scheme, host and port, or `rehearsal`.
    pub endpoint: Arc<str>,
}
