//! Synthesis: one request for each sentence. The audio is forwarded as it arrives.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};

use super::pcm::{ADVICE, Pcm};
use super::{PROVIDER, Server};
use crate::adapters::endpoint::body::{MAX_ERROR_BYTES, is_json, media_type, whole};
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::told::Told;
use crate::adapters::speech::service::At;
use crate::adapters::speech::spoken_audio::no_audio;
use crate::ports::audio::SPOKEN_RATE;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis};
use crate::settings::Problem;

/// The voice of companions without a voice setting. Every server of this API should support it.
const DEFAULT_VOICE: &str = "alloy";
/// Media types of audio that is neither PCM nor WAV.
const OTHERS: [&str; 9] =
    ["audio/mpeg", "audio/mp3", "audio/ogg", "audio/opus", "audio/webm", "audio/flac", "audio/x-flac", "audio/aac", "audio/mp4"];

/// Speech synthesis at an OpenAI-compatible server: `POST /audio/speech`.
pub struct OpenAiSynthesis {
    server: Arc<Server>,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: &'a str,
    voice: &'a str,
    response_format: &'static str,
    /// Omitted for the usual speed, because some models refuse the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<f64>,
}

/// A response whose audio arrives.
struct Speaking {
    server: Arc<Server>,
    response: Response,
    pcm: Pcm,
    /// The deadline of the first audio.
    by: Instant,
    has_begun: bool,
}

impl OpenAiSynthesis {
    /// Creates a client for this model.
    ///
    /// # Errors
    /// Returns an error if the address cannot be used.
    pub fn new(at: At) -> Result<Self, Problem> {
        Ok(Self { server: Arc::new(Server::new(at, "audio/speech")?) })
    }
}

impl SpeechSynthesis for OpenAiSynthesis {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn host(&self) -> Option<Arc<str>> {
        self.server.service.host()
    }

    fn say(&self, sentence: Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> {
        if !sentence.has_words() {
            return stream::empty().boxed();
        }
        let beginning = Speaking::begin(self.server.clone(), sentence);
        stream::once(beginning).map_ok(|speaking| stream::try_unfold(speaking, Speaking::next)).try_flatten().boxed()
    }
}

impl Speaking {
    async fn begin(server: Arc<Server>, sentence: Sentence) -> Result<Self, NoAnswer> {
        let Sentence { text, voice, speed, .. } = sentence;
        let speed = speed.clamp(0.5, 2.0);
        let body = Body {
            model: &server.model,
            input: &text,
            voice: voice.as_deref().unwrap_or(DEFAULT_VOICE),
            response_format: "pcm",
            speed: ((speed - 1.0).abs() > 0.005).then_some(speed),
        };
        let body = serde_json::to_vec(&body).map_err(|error| server.broken(Broken::Request(error.to_string())))?;
        let by = Instant::now() + server.timeout;
        let response = match server.post("application/json", body, by).await? {
            Ok(response) => response,
            Err(refusal) => return Err(server.refused(&refusal)),
        };
        let speaking = Self { server, response, pcm: Pcm::of(&text, speed), by, has_begun: false };
        match media_type(&speaking.response).as_str() {
            kind if is_json(kind) => Err(speaking.json_error().await),
            kind if kind.starts_with("text/") => Err(speaking.server.service.failures.not_an_answer(kind, "audio", b"")),
            kind if OTHERS.contains(&kind) => Err(speaking.server.broken(Broken::Audio(format!("it sent {kind}; {ADVICE}")))),
            _ => match named_rate(&speaking.response) {
                Some(rate) if rate != SPOKEN_RATE => {
                    Err(speaking.server.broken(Broken::Audio(format!("it sent audio at {rate} Hz; {ADVICE}"))))
                }
                _ => Ok(speaking),
            },
        }
    }

    /// Reads an error from a success response: some servers send errors with the status 200.
    async fn json_error(self) -> NoAnswer {
        let reading = whole(self.response, MAX_ERROR_BYTES, self.server.timeout, &self.server.service.failures);
        match timeout_at(self.by, reading).await {
            Ok(Ok(body)) => self.server.broken(Broken::Told(Box::new(Told::of(&body)))),
            Ok(Err(error)) => error,
            Err(_) => self.server.late(),
        }
    }

    /// The next samples. After an error the stream ends.
    async fn next(mut self) -> Result<Option<(Piece, Self)>, NoAnswer> {
        loop {
            let chunk = if self.has_begun {
                let patience = self.server.timeout;
                timeout(patience, self.response.chunk()).await.map_err(|_| self.server.service.failures.stalled(patience))?
            } else {
                timeout_at(self.by, self.response.chunk()).await.map_err(|_| self.server.late())?
            };
            let Some(chunk) = chunk.map_err(|broke| self.server.service.failures.of_connection(broke))? else {
                return if self.has_begun { Ok(None) } else { Err(self.server.broken(no_audio())) };
            };
            let samples = self.pcm.feed(&chunk).map_err(|broken| self.server.broken(broken))?;
            if !samples.is_empty() {
                self.has_begun = true;
                return Ok(Some((Piece::Audio(samples), self)));
            }
        }
    }
}

/// The sample rate in the media type, as in `audio/pcm;rate=24000`.
fn named_rate(response: &Response) -> Option<u32> {
    let named = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    named.split(';').find_map(|parameter| parameter.trim().strip_prefix("rate=")?.trim_matches('"').parse().ok())
}
