//! What is asked of endpoints outside, and by what such an endpoint is known.

use std::sync::Arc;

/// A kind of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Text for text.
    LanguageModel,
}

/// A service at an endpoint: what fails together, and is left alone together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceEndpoint {
    /// Which service.
    pub service: Service,
    /// Scheme, host and port, or `rehearsal`.
    pub endpoint: Arc<str>,
}
