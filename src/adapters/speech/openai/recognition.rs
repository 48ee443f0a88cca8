//! Recognition: one request for each recording. Requests overlap; results are returned in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use reqwest::Response;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, timeout_at};

use super::recorder::{Recorder, Recording};
use super::transcript::{Event, Partial, Transcript};
use super::upload::form;
use super::{PROVIDER, Refusal, Server};
use crate::adapters::endpoint::body::{is_json, media_type, whole};
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::sse::Events;
use crate::adapters::endpoint::told;
use crate::adapters::speech::language_code;
use crate::adapters::speech::service::At;
use crate::domain::text::{first_bytes, spaced};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Segment, Sound, SpeechRecognition};
use crate::settings::Problem;

/// The maximum number of concurrent requests of one person.
const MOST_OUTSTANDING: usize = 3;
/// The maximum number of recordings of one person that wait for a request.
const MOST_WAITING: usize = 8;
/// The maximum number of waiting partial results. More are dropped: each contains all words so far.
const MOST_PARTIALS: usize = 16;
/// The maximum length of the prompt with all names. Whisper reads only about 200 tokens.
const MAX_PROMPT_BYTES: usize = 300;
/// The maximum length of a name in the prompt.
const MAX_NAME_BYTES: usize = 40;
/// The size limit of an answer, including the figures of all segments.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Speech recognition at an OpenAI-compatible server: `POST /audio/transcriptions`.
pub struct OpenAiRecognition {
    server: Server,
    /// What the model is expected to support, until the server refuses it.
    streams: AtomicBool,
    is_verbose: AtomicBool,
}

/// The format in which an answer is requested.
#[derive(Clone, Copy, PartialEq)]
struct Form {
    /// As events, with partial results.
    streams: bool,
    /// With figures (`verbose_json`).
    is_verbose: bool,
}

/// The hints that are sent with each recording.
struct Told {
    language: Option<String>,
    prompt: Option<String>,
}

impl OpenAiRecognition {
    /// Creates a client for this model.
    ///
    /// # Errors
    /// Returns an error if the address cannot be used.
    pub fn new(at: At) -> Result<Self, Problem> {
        let is_gpt = at.model.contains("gpt") && at.model.contains("transcribe");
        Ok(Self {
            streams: AtomicBool::new(at.partial_results && is_gpt && !at.model.contains("diarize")),
            is_verbose: AtomicBool::new(!is_gpt),
            server: Server::new(at, "audio/transcriptions")?,
        })
    }

    async fn recognised(
        &self,
        Recording { samples, segment }: Recording,
        told: &Told,
        partials: Sender<(u64, Recognised)>,
        number: u64,
    ) -> Result<Segment, NoAnswer> {
        if samples.is_empty() {
            return Ok(segment);
        }
        let on_partial = |text: String| {
            // A dropped partial result is followed by a longer one, or by the final.
            let _ = partials.try_send((number, Recognised::Partial { text: text.into(), started: segment.started }));
        };
        let transcript = match self.transcript(&samples, told, &on_partial).await {
            // Retries here, because the caller would repeat only the newest seconds of the audio.
            Err(NoAnswer::Unreachable { .. } | NoAnswer::Overloaded { retry_after: None, .. }) => {
                self.transcript(&samples, told, &on_partial).await?
            }
            transcript => transcript?,
        };
        let Transcript { text, no_speech, confidence } = transcript.without_echo(told.prompt.as_deref());
        Ok(Segment { text: text.into(), no_speech, confidence, is_answer: true, ..segment })
    }

    /// Requests a transcript in the richest format that the server supports.
    async fn transcript(&self, samples: &[i16], told: &Told, on_partial: impl Fn(String) + Send) -> Result<Transcript, NoAnswer> {
        let mut asked = self.form();
        loop {
            let by = Instant::now() + self.server.timeout;
            let (media_type, body) = form(&self.fields(asked, told), samples);
            match self.server.post(&media_type, body, by).await? {
                Ok(response) => {
                    self.streams.fetch_and(asked.streams, Ordering::Relaxed);
                    self.is_verbose.fetch_and(asked.is_verbose, Ordering::Relaxed);
                    return self.read(response, by, on_partial).await;
                }
                Err(refusal) => asked = plainer(asked, &refusal).ok_or_else(|| self.server.refused(&refusal))?,
            }
        }
    }

    fn form(&self) -> Form {
        Form { streams: self.streams.load(Ordering::Relaxed), is_verbose: self.is_verbose.load(Ordering::Relaxed) }
    }

    fn fields<'a>(&'a self, asked: Form, told: &'a Told) -> Vec<(&'static str, &'a str)> {
        let format = if asked.is_verbose { "verbose_json" } else { "json" };
        let mut fields = vec![("model", &*self.server.model), ("response_format", format)];
        fields.extend(told.language.as_deref().map(|language| ("language", language)));
        fields.extend(told.prompt.as_deref().map(|prompt| ("prompt", prompt)));
        fields.extend(asked.streams.then_some(("stream", "true")));
        fields
    }

    async fn read(&self, response: Response, by: Instant, on_partial: impl Fn(String)) -> Result<Transcript, NoAnswer> {
        let server = &self.server;
        match media_type(&response).as_str() {
            "text/event-stream" => self.read_events(response, by, on_partial).await,
            kind if is_json(kind) => {
                let reading = whole(response, MAX_ANSWER_BYTES, server.timeout, &server.service.failures);
                let body = timeout_at(by, reading).await.map_err(|_| server.late())??;
                Transcript::read(&body).map_err(|broken| server.broken(broken))
            }
            kind => Err(server.service.failures.not_an_answer(kind, "JSON or text/event-stream", b"")),
        }
    }

    async fn read_events(
        &self,
        mut response: Response,
        mut by: Instant,
        on_partial: impl Fn(String),
    ) -> Result<Transcript, NoAnswer> {
        let server = &self.server;
        let (mut events, mut partial) = (Events::default(), Partial::default());
        let (mut read, mut has_words) = (0, false);
        loop {
            let chunk = timeout_at(by, response.chunk()).await.map_err(|_| server.late())?;
            let Some(chunk) = chunk.map_err(|broke| server.service.failures.of_connection(broke))? else {
                return Err(server.service.failures.cut());
            };
            read += chunk.len();
            if read > MAX_ANSWER_BYTES {
                return Err(server.broken(Broken::TooLong));
            }
            events.feed(&chunk).map_err(|broken| server.broken(broken))?;
            while let Some(event) = events.next() {
                match partial.push_event(&event).map_err(|broken| server.broken(broken))? {
                    Event::Partial(text) => {
                        on_partial(text);
                        // After the first words, the rest gets the full timeout again.
                        if !std::mem::replace(&mut has_words, true) {
                            by = Instant::now() + server.timeout;
                        }
                    }
                    Event::Done(transcript) => return Ok(transcript),
                    Event::Nothing => {}
                }
            }
        }
    }
}

#[async_trait]
impl SpeechRecognition for OpenAiRecognition {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn host(&self) -> Option<Arc<str>> {
        self.server.service.host()
    }

    fn recognises_words(&self) -> bool {
        true
    }

    fn has_partials(&self) -> bool {
        self.form().streams
    }

    async fn listen(
        &self,
        expectation: Expectation,
        mut sounds: Receiver<Sound>,
        results: Sender<Recognised>,
    ) -> Result<(), NoAnswer> {
        let told = Told::of(&expectation);
        let (partials, mut partial) = mpsc::channel(MOST_PARTIALS);
        let mut recorder = Recorder::default();
        let (mut waiting, mut outstanding) = (VecDeque::new(), FuturesOrdered::new());
        let (mut asked, mut returned) = (0_u64, 0_u64);
        let mut is_open = true;
        loop {
            // Until the server has answered once, it gets one request at a time.
            let most = if returned == 0 { 1 } else { MOST_OUTSTANDING };
            while outstanding.len() < most
                && let Some(recording) = waiting.pop_front()
            {
                outstanding.push_back(self.recognised(recording, &told, partials.clone(), asked));
                asked += 1;
            }
            if !is_open && outstanding.is_empty() {
                return Ok(());
            }
            let result = tokio::select! {
                sound = sounds.recv(), if is_open => {
                    is_open = sound.is_some();
                    waiting.extend(sound.and_then(|sound| recorder.push_sound(sound)));
                    if waiting.len() > MOST_WAITING {
                        return Err(self.server.service.failures.behind());
                    }
                    continue;
                }
                Some(segment) = outstanding.next() => {
                    returned += 1;
                    Recognised::Final(segment?)
                }
                Some((number, result)) = partial.recv() => {
                    if number != returned {
                        continue;
                    }
                    result
                }
                () = results.closed() => return Ok(()),
            };
            if results.send(result).await.is_err() {
                return Ok(());
            }
        }
    }
}

impl Told {
    fn of(Expectation { language, names }: &Expectation) -> Self {
        let mut prompt = String::new();
        for name in names {
            let name = spaced(first_bytes(name.trim(), MAX_NAME_BYTES));
            if name.is_empty() || prompt.len() + name.len() + 3 > MAX_PROMPT_BYTES {
                continue;
            }
            prompt.push_str(if prompt.is_empty() { "" } else { ", " });
            prompt.push_str(&name);
        }
        Self { language: language_code(language), prompt: (!prompt.is_empty()).then(|| prompt + ".") }
    }
}

/// A simpler format for another attempt after a refusal. If it works, it is kept.
fn plainer(asked: Form, refusal: &Refusal) -> Option<Form> {
    if !matches!(refusal.status.as_u16(), 400 | 415 | 422) {
        return None;
    }
    let names_stream = told::Told::of(&refusal.body).message.contains("stream");
    match asked {
        Form { streams: true, is_verbose } if names_stream || !is_verbose => Some(Form { streams: false, is_verbose }),
        Form { is_verbose: true, streams } => Some(Form { is_verbose: false, streams }),
        Form { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(language: &str, names: &[&str]) -> (Option<String>, Option<String>) {
        let names = names.iter().map(|name| (*name).into()).collect();
        let Told { language, prompt } = Told::of(&Expectation { language: language.into(), names });
        (language, prompt)
    }

    #[test]
    fn the_language_is_a_code_and_the_names_are_bounded() {
        let long: Vec<String> = (0..100).map(|number| format!("{number}\n{}", "é".repeat(50))).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();

        assert_eq!(told("en", &["Aria", " ", "Ben"]), (Some("en".to_owned()), Some("Aria, Ben.".to_owned())));
        assert_eq!(told("de-AT", &[]), (Some("de".to_owned()), None));
        assert_eq!(told("klingon", &[]).0, None);
        let prompt = told("en", &long).1.expect("names");
        assert!(prompt.len() <= MAX_PROMPT_BYTES && prompt.starts_with("0 éé") && !prompt.contains('\n'), "{prompt}");
    }
}
