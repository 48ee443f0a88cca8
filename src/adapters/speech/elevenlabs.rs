//! Speech synthesis by ElevenLabs: one WebSocket for each sentence, which returns audio with the times of its characters.
//!
//! Protocol: <https://elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-stream-input>

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
pub(crate) mod fuzz;
mod making;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use reqwest::header::HeaderName;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use self::making::{Made, Making};
use super::service::At;
use super::{MAX_MESSAGE_BYTES, language_code};
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::service;
use crate::adapters::web_socket::{NORMAL_CLOSURE, Received, WebSocket};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis, most_samples};
use crate::settings::Problem;

const KEY_HEADER: HeaderName = HeaderName::from_static("xi-api-key");
/// The voice “George” of the API's introduction, which every account may use.
const DEFAULT_VOICE: &str = "JBFqnCBsd6RMkjVDRZzb";
/// The part of a model's name that marks models with a language parameter. Other models detect the language, and refuse the parameter.
const WITH_LANGUAGE: &str = "_v2_5";
/// Longer messages are parsed on a blocking thread.
const LARGE: usize = 128 * 1024;

#[derive(Clone)]
pub struct ElevenLabs(Arc<Service>);

struct Service {
    endpoint: service::Service,
    model: Arc<str>,
    timeout: Duration,
}

impl ElevenLabs {
    /// Creates a client for the service at an address.
    ///
    /// # Errors
    /// Returns an error if the address cannot be used.
    pub fn new(at: At) -> Result<Self, Problem> {
        let endpoint = at.service(KEY_HEADER, "")?;
        Ok(Self(Arc::new(Service { endpoint, model: at.model, timeout: at.timeout })))
    }
}

impl SpeechSynthesis for ElevenLabs {
    fn provider(&self) -> &'static str {
        "elevenlabs"
    }

    fn host(&self) -> Option<Arc<str>> {
        self.0.endpoint.host()
    }

    fn say(&self, sentence: Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> {
        if !sentence.has_words() {
            return stream::empty().boxed();
        }
        let speaking = Speaking {
            service: self.0.clone(),
            making: Arc::new(Mutex::new(Making::of(&sentence.text, sentence.speed))),
            sentence,
            socket: None,
            pieces: VecDeque::new(),
            has_audio: false,
            deadline: None,
            is_over: false,
        };
        stream::unfold(speaking, |mut speaking| async { speaking.next().await.map(|piece| (piece, speaking)) }).boxed()
    }
}

impl Service {
    /// Opens a connection that makes the audio of a sentence.
    async fn open(&self, sentence: &Sentence, patience: Duration) -> Result<WebSocket, NoAnswer> {
        let voice = sentence.voice.as_deref().map(str::trim).filter(|voice| !voice.is_empty()).unwrap_or(DEFAULT_VOICE);
        let path = ["v1", "text-to-speech", voice, "stream-input"];
        // Whole sentences need no buffering, and each message contains the times of its own audio.
        let mut query =
            vec![("model_id", &*self.model), ("output_format", "pcm_24000"), ("auto_mode", "true"), ("sync_alignment", "true")];
        let language = language_code(&sentence.language).filter(|_| self.model.contains(WITH_LANGUAGE));
        query.extend(language.as_deref().map(|language| ("language_code", language)));
        // The audio of a sentence may arrive in one message, which is then longer than 1 MiB.
        let audio_bytes = 2 * most_samples(&sentence.text, sentence.speed) * 4 / 3;
        let max_message = MAX_MESSAGE_BYTES.max(audio_bytes + LARGE);
        let mut socket = self.endpoint.open_socket(&path, &query, max_message, patience).await?;
        wire::asking(&sentence.text, sentence.speed).into_iter().for_each(|message| socket.send_text(message));
        Ok(socket)
    }
}

/// A sentence in progress. Dropping it ends the connection, and so the synthesis.
struct Speaking {
    service: Arc<Service>,
    sentence: Sentence,
    making: Arc<Mutex<Making>>,
    socket: Option<WebSocket>,
    /// The pieces of the last message.
    pieces: VecDeque<Piece>,
    has_audio: bool,
    /// The deadline of the next audio.
    deadline: Option<Instant>,
    is_over: bool,
}

impl Speaking {
    async fn next(&mut self) -> Option<Result<Piece, NoAnswer>> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some(Ok(piece));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.advance().await {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }

    /// Opens the connection, or receives a message.
    async fn advance(&mut self) -> Result<(), NoAnswer> {
        let patience = self.service.timeout;
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + patience);
        let Some(socket) = &mut self.socket else {
            self.socket = Some(self.service.open(&self.sentence, deadline.saturating_duration_since(Instant::now())).await?);
            return Ok(());
        };
        let failures = &self.service.endpoint.failures;
        let Ok(received) = timeout_at(deadline, socket.next()).await else {
            return Err(if self.has_audio { failures.stalled(patience) } else { NoAnswer::TimedOut { after: patience } });
        };
        let pieces = match received {
            Received::Text(text) => match read(&self.making, text).await.map_err(|broken| failures.in_answer(broken))? {
                Made::Pieces(pieces) => pieces,
                Made::All(pieces) => {
                    self.is_over = true;
                    if let Some(socket) = self.socket.take() {
                        socket.close(NORMAL_CLOSURE);
                    }
                    pieces
                }
                Made::Failed(code, message) => return Err(self.failed(&code, &message, None)),
            },
            Received::Closed { code, reason, .. } => return Err(self.failed("", &reason, Some(code))),
            // The protocol has no binary messages.
            Received::Binary(_) | Received::Drained => Vec::new(),
        };
        if pieces.iter().any(|piece| matches!(piece, Piece::Audio(_))) {
            (self.has_audio, self.deadline) = (true, None);
        }
        self.pieces.extend(pieces);
        Ok(())
    }

    /// Classifies an error by its code and message, or by the close of the connection. The documentation does not list all codes, and some are part
    /// of the message.
    fn failed(&self, code: &str, message: &str, closed: Option<Option<u16>>) -> NoAnswer {
        let failures = &self.service.endpoint.failures;
        let said = format!("{code} {message}").to_lowercase().replace('_', " ");
        let says = |words: &[&str]| words.iter().any(|words| said.contains(words));
        let is_unknown = says(&["not exist", "not found", "invalid voice", "invalid model", "not supported"]);
        let message = if message.is_empty() { code } else { message };
        let status = match closed {
            _ if says(&["voice"]) && is_unknown => return failures.unknown_voice(message),
            _ if says(&["api key", "authenti", "unauthori", "permission"]) => 401,
            _ if says(&["quota", "credit", "payment", "subscription"]) => 402,
            _ if says(&["model"]) && is_unknown => 404,
            _ if says(&["too many", "concurren", "rate limit", "busy", "went wrong", "timeout"]) => 429,
            Some(code) => return failures.closed(code, message),
            None => 400,
        };
        failures.in_answer(Broken::failed(Some(status), message.to_owned()))
    }
}

/// Parses a message. A large one is parsed on a blocking thread, so that it does not block this one.
async fn read(making: &Arc<Mutex<Making>>, text: String) -> Result<Made, Broken> {
    if text.len() <= LARGE {
        return making.lock().process_message(&text);
    }
    let making = making.clone();
    let reading = spawn_blocking(move || making.lock().process_message(&text));
    reading.await.unwrap_or_else(|error| Err(Broken::Unreadable(error.to_string())))
}
