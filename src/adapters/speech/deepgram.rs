//! Ears at Deepgram: streaming recognition, version 1 (the models Nova and older).

#[cfg(test)]
pub(in crate::adapters::speech) mod fake;
#[cfg(test)]
pub(crate) mod fuzz;
pub(super) mod query;
pub(super) mod results;
pub(super) mod stream;
pub(super) mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) mod trial;
pub(super) mod utterances;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Url};
use secrecy::ExposeSecret;
use tokio::sync::mpsc::{Receiver, Sender};

use self::results::Listening;
use self::stream::{Protocol, run};
use super::service::At;
use crate::adapters::endpoint::address::{client, host};
use crate::adapters::endpoint::failure::Failures;
use crate::adapters::endpoint::web_socket::WebSocket;
use crate::ports::audio::HEARD_RATE;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};
use crate::settings::Problem;

/// A longer message ends the connection.
pub(super) const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// How long the service has for the rest of the results.
pub(super) const CLOSING: Duration = Duration::from_secs(5);

pub struct Deepgram {
    connections: Connections,
    model: Arc<str>,
    partial_results: bool,
}

impl Deepgram {
    /// # Errors
    /// The address cannot be used.
    pub fn new(at: At) -> Result<Self, Problem> {
        Ok(Self { model: at.model.clone(), partial_results: at.partial_results, connections: Connections::new(at)? })
    }

    fn url(&self, expectation: &Expectation) -> Url {
        let mut url = query::beneath(&self.connections.base_url, "v1/listen");
        let rate = HEARD_RATE.to_string();
        url.query_pairs_mut()
            .append_pair("model", &self.model)
            .append_pair("encoding", "linear16")
            .append_pair("sample_rate", &rate)
            .append_pair("channels", "1")
            .append_pair("interim_results", if self.partial_results { "true" } else { "false" })
            .append_pair("vad_events", "true")
            .append_pair("endpointing", "300");
        // It is found in partial results.
        if self.partial_results {
            url.query_pairs_mut().append_pair("utterance_end_ms", "1000");
        }
        if let Some(language) = query::language(expectation) {
            url.query_pairs_mut().append_pair("language", language);
        }
        if query::takes_names(&self.model) {
            query::add_names(&mut url, expectation);
        }
        url
    }
}

#[async_trait]
impl SpeechRecognition for Deepgram {
    fn provider(&self) -> &'static str {
        "deepgram"
    }

    fn host(&self) -> Option<Arc<str>> {
        self.connections.host()
    }

    fn recognises_words(&self) -> bool {
        true
    }

    fn has_partials(&self) -> bool {
        self.partial_results
    }

    async fn listen(
        &self,
        expectation: Expectation,
        sounds: Receiver<Sound>,
        results: Sender<Recognised>,
    ) -> Result<(), NoAnswer> {
        self.connections.listen(self.url(&expectation), &mut Listening::default(), sounds, &results).await
    }
}

/// How Deepgram is reached.
pub(super) struct Connections {
    http: Client,
    pub(super) base_url: Url,
    headers: HeaderMap,
    pub(super) failures: Failures,
    timeout: Duration,
}

impl Connections {
    pub fn new(at: At) -> Result<Self, Problem> {
        let http = client(&at.base_url, &at.authorities)?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &at.key {
            let key = HeaderValue::from_str(&format!("Token {}", key.expose_secret()));
            let mut key = key.map_err(|_| Problem::new("api_key", "holds characters that cannot be sent"))?;
            key.set_sensitive(true);
            headers.insert(AUTHORIZATION, key);
        }
        let failures = Failures::new(at.base_url.origin().ascii_serialization().into(), at.key);
        Ok(Self { http, headers, failures, timeout: at.timeout, base_url: at.base_url })
    }

    pub fn host(&self) -> Option<Arc<str>> {
        host(&self.base_url)
    }

    /// Opens a connection and listens on it.
    pub async fn listen(
        &self,
        url: Url,
        protocol: &mut impl Protocol,
        sounds: Receiver<Sound>,
        results: &Sender<Recognised>,
    ) -> Result<(), NoAnswer> {
        let socket = tokio::select! {
            biased;
            () = results.closed() => return Ok(()),
            socket = self.open(url) => socket?,
        };
        run(socket, protocol, sounds, results, &self.failures, CLOSING).await
    }

    async fn open(&self, url: Url) -> Result<WebSocket, NoAnswer> {
        WebSocket::open(&self.http, &self.failures, url, self.headers.clone(), MAX_MESSAGE_BYTES, self.timeout).await
    }
}
