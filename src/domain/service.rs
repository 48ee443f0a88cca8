//! What is asked of endpoints outside, and by what such an endpoint is known.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A kind of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// Text for text. What was recorded before there were others is of this kind.
    #[default]
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
