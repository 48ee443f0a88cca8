//! The address, model and key of a speech service.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderName;
use reqwest::{Certificate, Url};
use secrecy::SecretString;

use crate::adapters::endpoint::service::Service;
use crate::settings::Problem;

#[derive(Clone, Debug)]
pub struct At {
    /// The base URL, to which the paths of the API are added.
    pub base_url: Url,
    /// The model's name at the service.
    pub model: Arc<str>,
    pub key: Option<SecretString>,
    /// The timeout for connecting, and for the first result of a request.
    pub timeout: Duration,
    /// Whether to request partial results, if the service has them.
    pub partial_results: bool,
    /// Certificate authorities that are trusted in addition to those of the machine.
    pub authorities: Vec<Certificate>,
}

impl At {
    /// Creates the client of a service that reads its key from this header.
    pub(super) fn service(&self, key_header: HeaderName, scheme: &str) -> Result<Service, Problem> {
        Service::new(self.base_url.clone(), self.key.clone(), key_header, scheme, &self.authorities)
    }
}
