//! Ears at Deepgram: recognition by turns, version 2 (the models Flux).

#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::Url;
use tokio::sync::mpsc::{Receiver, Sender};

use self::turns::Listening;
use super::deepgram::{Connections, query};
use super::service::At;
use crate::ports::audio::HEARD_RATE;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};
use crate::settings::Problem;

/// The model that takes a language. The others are for one.
const MULTI: &str = "flux-general-multi";

pub struct Flux {
    connections: Connections,
    model: Arc<str>,
    partial_results: bool,
    /// Whether the server lets a turn be ended: not every one does.
    ends_turns: AtomicBool,
}

impl Flux {
    /// # Errors
    /// The address cannot be used.
    pub fn new(at: At) -> Result<Self, Problem> {
        let (model, partial_results) = (at.model.clone(), at.partial_results);
        Ok(Self { connections: Connections::new(at)?, model, partial_results, ends_turns: AtomicBool::new(true) })
    }

    fn url(&self, expectation: &Expectation) -> Url {
        let mut url = query::beneath(&self.connections.base_url, "v2/listen");
        let rate = HEARD_RATE.to_string();
        url.query_pairs_mut()
            .append_pair("model", &self.model)
            .append_pair("encoding", "linear16")
            .append_pair("sample_rate", &rate);
        if let Some(language) = query::language(expectation).filter(|language| *language != "multi" && &*self.model == MULTI) {
            url.query_pairs_mut().append_pair("language_hint", language);
        }
        query::add_names(&mut url, expectation);
        url
    }
}

#[async_trait]
impl SpeechRecognition for Flux {
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
        let mut listening = Listening::new(self.ends_turns.load(Ordering::Relaxed), self.partial_results);
        let outcome = self.connections.listen(self.url(&expectation), &mut listening, sounds, &results).await;
        if listening.cannot_end_turns() {
            self.ends_turns.store(false, Ordering::Relaxed);
        }
        outcome
    }
}
