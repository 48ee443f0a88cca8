//! The kinds of external services, and the identity of their endpoints.

use std::sync::Arc;

use super::named::named;

named! {
    /// A kind of external service.
    #[derive(Default, schemars::JsonSchema)]
    pub enum Service {
        /// Generates text from text. Records without a service are of this kind.
        #[default]
        LanguageModel = "language_model",
        /// Returns the words of what people say.
        SpeechRecognition = "speech_recognition",
        /// Makes the audio of what companions say.
        SpeechSynthesis = "speech_synthesis",
    }
}

/// A service at an endpoint. It fails as a whole, and has one circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceEndpoint {
    pub service: Service,
    /// Scheme, host and port, or `rehearsal`.
    pub endpoint: Arc<str>,
}
