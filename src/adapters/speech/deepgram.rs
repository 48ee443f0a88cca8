//! Speech recognition by Deepgram: streaming by utterances, version 1 (the models Nova and older), or by turns, version 2 ([`flux`]).

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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::AUTHORIZATION;
use tokio::sync::mpsc::{Receiver, Sender};

use self::results::Listening;
use self::stream::Protocol;
use super::flux;
use super::service::At;
use crate::adapters::endpoint::service::Service;
use crate::ports::audio::HEARD_RATE;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};
use crate::settings::Problem;

/// A longer message ends the connection.
pub(super) const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// How long to wait for the remaining results when a stream is closed.
pub(super) const CLOSING: Duration = Duration::from_secs(5);

pub struct Deepgram {
    service: Service,
    model: Arc<str>,
    timeout: Duration,
    partial_results: bool,
    /// Whether the server can end a turn on request. Not every server can. `None` for recognition by utterances.
    ends_turns: Option<AtomicBool>,
}

impl Deepgram {
    /// Creates a client for recognition by utterances.
    ///
    /// # Errors
    /// Returns an error if the address cannot be used.
    pub fn new(at: At) -> Result<Self, Problem> {
        let service = at.service(AUTHORIZATION, "Token ")?;
        let At { model, timeout, partial_results, .. } = at;
        Ok(Self { service, model, timeout, partial_results, ends_turns: None })
    }

    /// Creates a client for recognition by turns (Flux).
    ///
    /// # Errors
    /// Returns an error if the address cannot be used.
    pub fn flux(at: At) -> Result<Self, Problem> {
        Ok(Self { ends_turns: Some(AtomicBool::new(true)), ..Self::new(at)? })
    }

    fn query(&self, expectation: &Expectation) -> Vec<(&'static str, String)> {
        let mut query =
            vec![("model", self.model.to_string()), ("encoding", "linear16".to_owned()), ("sample_rate", HEARD_RATE.to_string())];
        if self.ends_turns.is_some() {
            flux::add_query(&mut query, &self.model, expectation);
            return query;
        }
        let partial_results = if self.partial_results { "true" } else { "false" };
        let more = [("channels", "1"), ("interim_results", partial_results), ("vad_events", "true"), ("endpointing", "300")];
        query.extend(more.map(|(name, value)| (name, value.to_owned())));
        // `UtteranceEnd` is derived from partial results.
        if self.partial_results {
            query.push(("utterance_end_ms", "1000".to_owned()));
        }
        query.extend(query::language(expectation).map(|language| ("language", language.to_owned())));
        if query::takes_names(&self.model) {
            query.extend(query::names(expectation));
        }
        query
    }

    /// Opens a connection, and runs the protocol on it.
    async fn run(
        &self,
        expectation: &Expectation,
        protocol: &mut impl Protocol,
        sounds: Receiver<Sound>,
        results: &Sender<Recognised>,
    ) -> Result<(), NoAnswer> {
        let path = [if self.ends_turns.is_some() { "v2" } else { "v1" }, "listen"];
        let query = self.query(expectation);
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, &**value)).collect();
        let socket = tokio::select! {
            biased;
            () = results.closed() => return Ok(()),
            socket = self.service.open_socket(&path, &query, MAX_MESSAGE_BYTES, self.timeout) => socket?,
        };
        stream::run(socket, protocol, sounds, results, &self.service.failures, CLOSING).await
    }
}

#[async_trait]
impl SpeechRecognition for Deepgram {
    fn provider(&self) -> &'static str {
        "deepgram"
    }

    fn host(&self) -> Option<Arc<str>> {
        self.service.host()
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
        let Some(ends_turns) = &self.ends_turns else {
            return self.run(&expectation, &mut Listening::default(), sounds, &results).await;
        };
        let mut listening = flux::Listening::new(ends_turns.load(Ordering::Relaxed), self.partial_results);
        let outcome = self.run(&expectation, &mut listening, sounds, &results).await;
        if listening.cannot_end_turns() {
            ends_turns.store(false, Ordering::Relaxed);
        }
        outcome
    }
}
