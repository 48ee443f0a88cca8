//! The client of an external service.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Url};
use secrecy::{ExposeSecret, SecretString};

use super::failure::{Failures, OPENAI};
use crate::http_client::{self, Client, is_loopback};
use crate::settings::Problem;
use crate::settings::models::extra::Extra;

pub(in crate::adapters) struct Service {
    pub http: Client,
    pub base_url: Url,
    /// The headers of each request. They contain the key, if there is one.
    pub headers: HeaderMap,
    /// Names the service in errors.
    pub failures: Failures,
}

impl Service {
    /// Creates a client for a service that reads its key from `key_header`, with the prefix `scheme`. `authorities` are trusted in addition to those
    /// of the machine. Only HTTP/1.1 is used: WebSockets require it, and servers notice a cancelled request at once.
    ///
    /// # Errors
    /// Returns an error if the address or the key cannot be used.
    pub fn new(
        base_url: Url,
        key: Option<SecretString>,
        key_header: HeaderName,
        scheme: &str,
        authorities: &[Certificate],
    ) -> Result<Self, Problem> {
        let http = Client::new(&base_url, http_client::builder(&base_url, authorities).http1_only(), None);
        let http = http.map_err(|error| Problem::new("base_url", format!("cannot be used: {}", http_client::reason(&error))))?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &key {
            let key = HeaderValue::from_str(&format!("{scheme}{}", key.expose_secret()));
            let mut key = key.map_err(|_| Problem::new("api_key", "holds characters that cannot be sent"))?;
            key.set_sensitive(true);
            headers.insert(key_header, key);
        }
        let failures = Failures::new(base_url.origin().ascii_serialization().into(), key);
        Ok(Self { http, base_url, headers, failures })
    }

    /// Creates a client for a service with OpenAI's API.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn openai(base_url: Url, key: Option<SecretString>, authorities: &[Certificate]) -> Result<Self, Problem> {
        let service = Self::new(base_url, key, AUTHORIZATION, "Bearer ", authorities)?;
        Ok(Self { failures: service.failures.with_api(OPENAI), ..service })
    }

    /// Adds headers and query parameters to each request. Their secrets never appear in errors.
    pub fn with_extra(mut self, extra: &Extra) -> Self {
        self.headers.extend(extra.headers.iter().cloned());
        for (name, value) in &extra.query {
            self.base_url.query_pairs_mut().append_pair(name, value.expose_secret());
        }
        Self { failures: self.failures.with_secrets(extra.secrets.iter().cloned()), ..self }
    }

    /// The host that receives the requests. `None` if they do not leave this machine.
    pub fn host(&self) -> Option<Arc<str>> {
        self.base_url.host_str().filter(|_| !is_loopback(&self.base_url)).map(Arc::from)
    }

    /// The URL of a path of the API.
    pub fn beneath(&self, path: &str) -> Url {
        let mut url = self.base_url.clone();
        url.set_path(&format!("{}/{path}", self.base_url.path().trim_end_matches('/')));
        url
    }
}
