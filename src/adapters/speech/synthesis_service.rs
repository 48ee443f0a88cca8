//! How services that make audio are called: by a WebSocket, with a key in a header.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use secrecy::{ExposeSecret, SecretString};

use super::service::At;
use crate::adapters::endpoint::address::{client, host};
use crate::adapters::endpoint::failure::{Broken, Failures};
use crate::adapters::endpoint::web_socket::WebSocket;
use crate::ports::language_model::NoAnswer;
use crate::settings::Problem;

/// The longest message that is accepted, unless the audio of a sentence may come in one.
pub(super) const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// Opens WebSockets at one service.
pub(super) struct Sockets {
    http: Client,
    base_url: Url,
    key: Option<SecretString>,
    key_header: HeaderName,
    /// Names the service in errors.
    pub failures: Failures,
}

impl Sockets {
    /// Sockets at a service that reads its key from a header.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn new(at: &At, key_header: HeaderName) -> Result<Self, Problem> {
        let endpoint = at.base_url.origin().ascii_serialization().into();
        let http = client(&at.base_url, &at.authorities)?;
        let failures = Failures::new(endpoint, at.key.clone());
        Ok(Self { http, base_url: at.base_url.clone(), key: at.key.clone(), key_header, failures })
    }

    /// The host, unless it is this machine.
    pub fn host(&self) -> Option<Arc<str>> {
        host(&self.base_url)
    }

    /// Opens a socket at a path below the base URL. The segments and the values of the query may contain any character. A message of more than
    /// `max_message` bytes ends the connection.
    ///
    /// # Errors
    /// The service cannot be reached, or refuses.
    pub async fn open(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        max_message: usize,
        patience: Duration,
    ) -> Result<WebSocket, NoAnswer> {
        let unsendable = |error: &dyn std::fmt::Display| self.failures.in_answer(Broken::Request(error.to_string()));
        if let Some(segment) = path.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err(unsendable(&format!("{segment:?} cannot be part of a URL; set [voice] voice to the id of a voice")));
        }
        let mut url = self.base_url.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => _ = segments.pop_if_empty().extend(path),
            Err(()) => return Err(unsendable(&"the base URL has no path")),
        }
        url.query_pairs_mut().extend_pairs(query);
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.key {
            let key = HeaderValue::from_str(key.expose_secret()).map(|mut key| {
                key.set_sensitive(true);
                key
            });
            headers.insert(self.key_header.clone(), key.map_err(|_| self.failures.in_answer(Broken::Key))?);
        }
        WebSocket::open(&self.http, &self.failures, url, headers, max_message, patience).await
    }
}

/// The language by its code in ISO 639-1, if its name begins with one.
pub(super) fn language_code(name: &str) -> Option<String> {
    let code = name.split(['-', '_']).next().unwrap_or_default();
    (code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic())).then(|| code.to_ascii_lowercase())
}
