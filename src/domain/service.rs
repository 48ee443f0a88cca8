//! The kinds of external services, and the identity of their endpoints.

use std::sync::Arc;

use super::named::named;

named! {
    /// A kind of external service.
    #[derive(Default, schemars::JsonSchema)]
    pub enum Service {
        /// Generates text from text. Journaled usage without a service is of this kind.
        #[default]
        LanguageModel = "language_model",
        /// Converts people's speech to text.
        SpeechRecognition = "speech_recognition",
        /// Converts companions' text to speech.
        SpeechSynthesis = "speech_synthesis",
    }
}

/// A service at an endpoint. It has one circuit breaker, because it fails as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceEndpoint {
    pub service: Service,
    /// Scheme, host and port, or `rehearsal`.
    pub endpoint: Arc<str>,
}
