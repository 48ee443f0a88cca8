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
}

/// A service at an endpoint. It fails as a whole, and has one circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceEndpoint {
    /// The kind of service.
    pub service: Service,
    /// Scheme, host and port, or `rehearsal`.
    pub endpoint: Arc<str>,
}
