//! A client for OpenAI's chat completions API, streamed by server-sent events or in one piece.
//!
//! Protocol: <https://platform.openai.com/docs/api-reference/chat/create> and `…/chat-streaming`.

mod answer;
mod context;
mod counts;
mod dialect;
mod names;
mod pieces;
mod request;
mod schema;
mod text;
mod wire;

#[cfg(test)]
mod fake;
#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Certificate, Method, Response, Url};
use secrecy::ExposeSecret as _;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

pub use self::dialect::Dialects;

use self::answer::PartialAnswer;
use self::context::TooLong;
use self::dialect::{Attempt, Dialect, Form};
use self::request::Body;
use self::wire::Piece;
use crate::adapters::endpoint::body::{self, Content, media_type};
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::service::Service;
use crate::adapters::endpoint::sse::Events;
use crate::ports::language_model::{Answer, Draft, Identity, LanguageModel, NoAnswer, READS_NO_PICTURES, Request};
use crate::settings::Problem;
use crate::settings::duration;
use crate::settings::models::{Endpoint, parsed_base_url};

/// The maximum size of an answer, including its tool calls. A longer answer is truncated: no chat has room for more.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// The maximum size of a stream. A longer one is rejected. A streamed chunk of four characters takes some 300 bytes.
const MAX_STREAM_BYTES: usize = 16 * 1024 * 1024;

/// The maximum size of a non-streamed answer. A longer one is rejected: the longest text that is used takes 384 KiB with every
/// character escaped.
const MAX_WHOLE_BYTES: usize = 1024 * 1024;

/// A non-streamed answer that is longer than this is parsed on a blocking thread, so that other calls need not wait.
const MAX_PARSED_INLINE: usize = 64 * 1024;

/// The time to wait, after the last text, for the token counts and the end.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// The path of Azure's classic addresses, which read the key from a different header.
const AZURE_PATH: &str = "/openai/deployments/";
const AZURE_KEY: &str = "api-key";

/// A model behind one endpoint that implements OpenAI's protocol.
pub struct OpenAi {
    service: Service,
    url: Url,
    temperature: Option<f64>,
    extra_body: Map<String, Value>,
    timeout: Duration,
    first_token_timeout: Duration,
    idle_timeout: Duration,
    dialect: Arc<Dialect>,
    identity: Identity,
}

impl OpenAi {
    /// A model at `endpoint`, called within the timeouts of `limits` (the role's own table). It trusts these certificate
    /// authorities in addition to those of the machine.
    ///
    /// # Errors
    /// Returns an error if the address, the model or the key cannot be used.
    pub fn new(endpoint: &Endpoint, limits: &Endpoint, authorities: &[Certificate]) -> Result<Self, Problem> {
        let missing = |key: &str| Problem::new(key, "is missing");
        let base = parsed_base_url(endpoint.base_url.as_deref().ok_or_else(|| missing("base_url"))?)?;
        let model = endpoint.model.as_deref().ok_or_else(|| missing("model"))?;
        let host = base.host_str().unwrap_or_default();
        let identity = Identity {
            provider: if host == "api.openai.com" { "openai".into() } else { host.into() },
            model: model.into(),
            endpoint: base.origin().ascii_serialization().into(),
        };
        let (key, extra) = (endpoint.key()?, endpoint.extra()?);
        let mut service = Service::openai(without_path_of_api(base), key.clone(), authorities)?.with_extra(&extra);
        if let Some(key) =
            key.filter(|_| service.base_url.path().contains(AZURE_PATH) && !service.headers.contains_key(AZURE_KEY))
        {
            let mut value = HeaderValue::from_str(key.expose_secret())
                .map_err(|_| Problem::new("api_key", "holds characters that cannot be sent"))?;
            value.set_sensitive(true);
            service.headers.insert(AZURE_KEY, value);
        }
        Ok(Self {
            extra_body: extra.body,
            url: service.beneath("chat/completions"),
            service,
            temperature: limits.temperature,
            timeout: limits.timeout(),
            first_token_timeout: duration(limits.first_token_timeout_secs),
            idle_timeout: duration(limits.idle_timeout_secs),
            dialect: Arc::new(Dialect::of(identity.clone())),
            identity,
        })
    }

    /// Shares lessons about this endpoint and model with all clients that use the same `dialects`.
    pub fn with_dialects(self, dialects: &Dialects) -> Self {
        let dialect = dialects.of(self.url.to_string(), &self.identity);
        Self { dialect, ..self }
    }

    /// Asks the model. Each time the endpoint refuses the form of a request, asks again in another form, until an answer arrives
    /// or no other form is left.
    async fn ask_within(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let began = Instant::now();
        let (context, prompt) = (&self.dialect.context, request.tokens());
        let limit = context.answer_limit(prompt, request.max_tokens);
        let mut attempt = self.dialect.first(Form::of(&request.format), limit);
        attempt.parameters.pictures &= !request.is_text();
        attempt.parameters.tools &= request.has_tools();
        let mut is_shortened = false;
        loop {
            let mut partial = PartialAnswer::new(MAX_ANSWER_BYTES, drafts);
            let within = self.within(&attempt, began);
            match self.attempt(request, &attempt, &mut partial, within).await {
                Ok(()) => {
                    self.dialect.worked(&attempt);
                    let (counted, is_full) = (partial.prompt_tokens(), partial.context_reason());
                    let limit = attempt.parameters.limit;
                    let answer = partial.finish(request, limit).map_err(|error| match (error, &is_full) {
                        (Broken::OutOfTokens(_), Some(reason))
                            if context.refused(reason, prompt, limit, &self.identity).is_some() =>
                        {
                            self.too_long(format!("it answered nothing, because its context is full (finish_reason “{reason}”)"))
                        }
                        (error, _) => self.service.failures.in_answer(error),
                    })?;
                    if let Some(reason) = &answer.finish_reason {
                        self.dialect.ended(reason);
                    }
                    if !answer.is_empty() {
                        context.answered(prompt, counted, &self.identity);
                    } else if context.was_silent(prompt, request.max_tokens, &self.identity) {
                        return Err(self.too_long(format!(
                            "it answered nothing to a prompt of about {prompt} tokens, more than to any that it answered"
                        )));
                    }
                    return Ok(answer);
                }
                Err(Failed::Told(status, refusal, no_answer)) => {
                    if matches!(*no_answer, NoAnswer::Filtered { .. }) {
                        return Err(*no_answer);
                    }
                    let passes = no_answer.is_transient() && !refusal.to_lowercase().contains("request too large");
                    if !partial.has_begun() && !passes && !matches!(status, Some(401..=404)) {
                        match context.refused(&refusal, prompt, attempt.parameters.limit, &self.identity) {
                            Some(TooLong::Answer(limit)) if !is_shortened => {
                                (attempt.parameters.limit, is_shortened) = (limit, true);
                                continue;
                            }
                            Some(TooLong::Answer(_) | TooLong::Prompt) => return Err(self.too_long(no_answer.in_detail())),
                            None => {}
                        }
                    }
                    // Text that was already shown is not requested again in another form.
                    let next = if partial.has_begun() { None } else { self.dialect.next(&attempt, status, &refusal) };
                    attempt = next.ok_or(*no_answer)?;
                }
                Err(Failed::Other(no_answer)) => return Err(no_answer),
            }
        }
    }

    fn too_long(&self, detail: String) -> NoAnswer {
        let detail = format!("{detail} (prompt.statement_tokens and prompt.decision_tokens limit prompts)");
        NoAnswer::TooLong { endpoint: self.identity.endpoint.clone(), detail }
    }

    /// The time limits of an attempt. A non-streamed answer arrives only after the model has written all of it.
    fn within(&self, attempt: &Attempt, began: Instant) -> Within {
        match attempt.parameters.stream {
            true => Within { began, first_token: self.first_token_timeout, idle: self.idle_timeout },
            false => Within { began, first_token: self.timeout, idle: self.timeout },
        }
    }

    async fn attempt(
        &self,
        request: &Request,
        attempt: &Attempt,
        partial: &mut PartialAnswer<'_>,
        within: Within,
    ) -> Result<(), Failed> {
        let sent = Instant::now();
        let mut response = self.send(request, attempt.parameters, within).await?;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = body::of_error(response, within.first_token_deadline()).await;
            let no_answer = self.service.failures.of_status(status, &headers, &body);
            let refusal = String::from_utf8_lossy(&body).into_owned();
            return Err(Failed::Told(Some(status.as_u16()), refusal, Box::new(no_answer)));
        }
        if let Some(error) = self.service.failures.of_compressed(response.headers()) {
            return Err(error.into());
        }
        let declared = media_type(&response);
        let begun = body::begin(&mut response, &declared, within.first_token_deadline(), within.idle).await;
        let (content, begin) = begun.map_err(|broke| match broke {
            Some(broke) => self.service.failures.of_connection(broke),
            None => within.no_first_token(),
        })?;
        match content {
            Content::Events => self.read_events(begin, response, partial, (sent, within)).await,
            Content::Json => {
                let body = body::rest(begin, response, MAX_WHOLE_BYTES, within.idle, &self.service.failures).await?;
                if has_lines(&body) {
                    let mut lines = body.split(|byte| *byte == b'\n');
                    lines.try_for_each(|line| partial.take_event(line, false)).map_err(|error| self.failed(error))?;
                    return if partial.survives_end() { Ok(()) } else { Err(self.service.failures.cut().into()) };
                }
                let whole = read_whole(body).await.map_err(|error| self.failed(error))?;
                partial.take_whole(whole).map_err(|error| self.failed(error))
            }
            Content::Other => Err(self.service.failures.not_an_answer(&declared, "JSON or text/event-stream", &begin).into()),
        }
    }

    /// Handles an unusable answer. If the endpoint reported an error, it may be a refusal of the request's form.
    fn failed(&self, broken: Broken) -> Failed {
        let told = match &broken {
            Broken::Told(told) => Some((told.status, told.words())),
            _ => None,
        };
        let no_answer = self.service.failures.in_answer(broken);
        match told {
            Some((status, words)) => Failed::Told(status, words, Box::new(no_answer)),
            None => Failed::Other(no_answer),
        }
    }

    async fn send(&self, request: &Request, parameters: dialect::Parameters, within: Within) -> Result<Response, NoAnswer> {
        let body = Body::new(&self.identity.model, self.temperature, &self.extra_body, request, parameters);
        let body = body.map_err(|error| self.service.failures.in_answer(error))?;
        let body =
            serde_json::to_vec(&body).map_err(|error| self.service.failures.in_answer(Broken::Request(error.to_string())))?;
        let Service { http, headers, .. } = &self.service;
        let sent = http
            .request(Method::POST, self.url.clone())
            .headers(headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        match timeout_at(within.first_token_deadline(), http.send(sent)).await {
            Ok(sent) => sent.map_err(|broke| self.service.failures.of_connection(broke)),
            Err(_) => Err(within.no_first_token()),
        }
    }

    async fn read_events(
        &self,
        begin: Vec<u8>,
        mut response: Response,
        partial: &mut PartialAnswer<'_>,
        (sent, within): (Instant, Within),
    ) -> Result<(), Failed> {
        let mut events = Events::default();
        let (mut next, mut read) = (Bytes::from(begin), 0);
        loop {
            read += next.len();
            if read > MAX_STREAM_BYTES {
                return Err(self.service.failures.in_answer(Broken::TooLong).into());
            }
            events.feed(&next).map_err(|error| self.service.failures.in_answer(error))?;
            while let Some(event) = events.next() {
                partial.take_event(&event, events.is_error()).map_err(|error| self.failed(error))?;
                partial.time_to_first_chunk.get_or_insert_with(|| sent.elapsed());
                if partial.is_done() {
                    drain(response);
                    return Ok(());
                }
                if partial.is_cut() {
                    return Ok(());
                }
            }
            // Before the first token, comments and empty chunks keep a stream alive: some servers send them while they load a
            // model or process the prompt.
            let by = match (partial.is_ending(), partial.has_begun()) {
                (true, _) => Instant::now() + within.idle.min(LAST_GRACE),
                (false, true) => Instant::now() + within.idle,
                (false, false) => within.first_token_deadline().max(Instant::now() + within.idle),
            };
            next = match timeout_at(by, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(_)) if partial.survives_break() => return Ok(()),
                Ok(Err(error)) => return Err(self.service.failures.of_connection(error).into()),
                Err(_) if partial.survives_silence() => return Ok(()),
                Err(_) if partial.has_begun() => return Err(self.service.failures.stalled(within.idle).into()),
                Err(_) => return Err(within.no_first_token().into()),
            };
        }
        while let Some(event) = events.last() {
            match partial.take_event(&event, events.is_error()) {
                // The body was cut within a chunk.
                Err(Broken::Garbled(..)) if !partial.survives_break() => return Err(self.service.failures.cut().into()),
                Err(Broken::Garbled(..)) => {}
                taken => taken.map_err(|error| self.failed(error))?,
            }
        }
        if partial.survives_end() { Ok(()) } else { Err(self.service.failures.cut().into()) }
    }
}

#[async_trait]
impl LanguageModel for OpenAi {
    async fn ask(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let asking = self.ask_within(request, drafts);
        timeout(self.timeout, asking).await.unwrap_or(Err(NoAnswer::TimedOut { after: self.timeout }))
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn adaptations(&self) -> Vec<Cow<'static, str>> {
        let mut adaptations = self.dialect.in_words();
        if self.reads_pictures() == Some(false) && !self.dialect.refuses_pictures() {
            adaptations.push(READS_NO_PICTURES.into());
        }
        adaptations
    }

    fn reads_pictures(&self) -> Option<bool> {
        if self.dialect.refuses_pictures() { Some(false) } else { *self.dialect.lists_pictures.lock() }
    }

    async fn prepare(&self) {
        self.read_listed().await;
    }

    fn prompt_room(&self, max_tokens: u32) -> Option<usize> {
        self.dialect.context.prompt_room(max_tokens)
    }
}

/// The time limits of an attempt.
#[derive(Clone, Copy)]
struct Within {
    /// When the question was asked.
    began: Instant,
    first_token: Duration,
    idle: Duration,
}

impl Within {
    fn first_token_deadline(&self) -> Instant {
        self.began + self.first_token
    }

    const fn no_first_token(&self) -> NoAnswer {
        NoAnswer::TimedOut { after: self.first_token }
    }
}

/// Why an attempt has no answer.
enum Failed {
    /// The endpoint reported an error: its status, its text, and its classification.
    Told(Option<u16>, String, Box<NoAnswer>),
    Other(NoAnswer),
}

impl From<NoAnswer> for Failed {
    fn from(no_answer: NoAnswer) -> Self {
        Self::Other(no_answer)
    }
}

/// The base URL of an address that was copied with the path of the API.
fn without_path_of_api(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/');
    if let Some(base) = path.strip_suffix("/chat/completions").map(str::to_owned) {
        url.set_path(&base);
    }
    url
}

/// Whether a body that was declared as JSON consists of JSON lines: the chunks of a stream.
fn has_lines(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    let line = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.len() < body.len() && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

async fn read_whole(body: Vec<u8>) -> Result<Piece, Broken> {
    if body.len() <= MAX_PARSED_INLINE {
        return Piece::read(&body);
    }
    let reading = tokio::task::spawn_blocking(move || Piece::read(&body));
    // This fails only if the runtime shuts down.
    reading.await.unwrap_or_else(|_| Err(Broken::Unreadable("the server is stopping".to_owned())))
}

/// Reads the end of a finished stream in the background, because the connection can be reused only after that.
fn drain(mut response: Response) {
    tokio::spawn(timeout(LAST_GRACE, async move { while let Ok(Some(_)) = response.chunk().await {} }));
}
