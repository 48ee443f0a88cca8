//! Speech synthesis by Cartesia: one WebSocket for all sentences. Each sentence has a context of its own.
//!
//! Protocol: <https://docs.cartesia.ai/2026-03-01/api-reference/tts/websocket>

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
pub(crate) mod fuzz;
mod link;
mod making;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::rand;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use reqwest::header::HeaderName;
use tokio::time::{Instant, timeout_at};

use self::link::{End, Link, Listening, Opener};
use super::service::At;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis};
use crate::settings::Problem;

const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// The voice of the API's documentation, which every account may use.
const DEFAULT_VOICE: &str = "a0e99841-438c-4a64-b679-ae501e7d6091";

#[derive(Clone)]
pub struct Cartesia(Arc<Service>);

struct Service {
    opener: Arc<Opener>,
    model: Arc<str>,
    /// The connection that was opened last.
    link: Mutex<Option<Link>>,
    /// The random prefix of context names. All contexts of an account share one namespace.
    prefix: String,
    contexts: AtomicU64,
}

impl Cartesia {
    /// Creates a client for the service at an address.
    ///
    /// # Errors
    /// Returns an error if the address cannot be used, or if this machine has no random numbers.
    pub fn new(at: At) -> Result<Self, Problem> {
        let mut random = [0; 8];
        rand::fill(&mut random).map_err(|_| Problem::new("provider", "cannot be used: this machine has no random numbers"))?;
        let service = at.service(KEY_HEADER, "")?;
        Ok(Self(Arc::new(Service {
            opener: Arc::new(Opener { service, timeout: at.timeout }),
            model: at.model,
            link: Mutex::new(None),
            prefix: format!("{:016x}", u64::from_ne_bytes(random)),
            contexts: AtomicU64::new(0),
        })))
    }
}

impl SpeechSynthesis for Cartesia {
    fn provider(&self) -> &'static str {
        "cartesia"
    }

    fn host(&self) -> Option<Arc<str>> {
        self.0.opener.service.host()
    }

    fn say(&self, sentence: Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> {
        if !sentence.has_words() {
            return stream::empty().boxed();
        }
        let speaking = Speaking {
            service: self.0.clone(),
            sentence,
            listening: None,
            has_asked: false,
            may_repeat: false,
            deadline: None,
            has_begun: false,
            is_over: false,
        };
        stream::unfold(speaking, |mut speaking| async { speaking.next().await.map(|piece| (piece, speaking)) }).boxed()
    }
}

impl Service {
    /// The shared connection, and whether it existed before. A connection that has ended is replaced.
    fn link(&self) -> (Link, bool) {
        let mut link = self.link.lock();
        match &*link {
            Some(open) if open.is_open() => (open.clone(), true),
            _ => (link.insert(Link::open(self.opener.clone())).clone(), false),
        }
    }

    fn ask(&self, sentence: &Sentence) -> (Listening, bool) {
        let (link, is_shared) = self.link();
        let context: Arc<str> = format!("{}-{}", self.prefix, self.contexts.fetch_add(1, Ordering::Relaxed)).into();
        let voice = sentence.voice.as_deref().map(str::trim).filter(|voice| !voice.is_empty()).unwrap_or(DEFAULT_VOICE);
        let request = wire::asking(&context, &self.model, voice, sentence);
        (link.say(context, request, sentence), is_shared)
    }
}

/// A sentence in progress.
struct Speaking {
    service: Arc<Service>,
    sentence: Sentence,
    listening: Option<Listening>,
    has_asked: bool,
    /// Whether to repeat the request if the connection is lost. An existing connection may have ended unnoticed.
    may_repeat: bool,
    /// The deadline of the next audio.
    deadline: Option<Instant>,
    has_begun: bool,
    is_over: bool,
}

impl Speaking {
    async fn next(&mut self) -> Option<Result<Piece, NoAnswer>> {
        if self.is_over {
            return None;
        }
        let piece = self.receive().await.transpose();
        self.is_over = !matches!(piece, Some(Ok(_)));
        if self.is_over {
            self.listening = None;
        }
        piece
    }

    async fn receive(&mut self) -> Result<Option<Piece>, NoAnswer> {
        let patience = self.service.opener.timeout;
        let failures = &self.service.opener.service.failures;
        loop {
            let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + patience);
            let listening = match &mut self.listening {
                Some(listening) => listening,
                None => {
                    let (listening, is_shared) = self.service.ask(&self.sentence);
                    self.may_repeat = is_shared && !std::mem::replace(&mut self.has_asked, true);
                    self.listening.insert(listening)
                }
            };
            let Ok(received) = timeout_at(deadline, listening.next()).await else {
                return Err(if self.has_begun { failures.stalled(patience) } else { NoAnswer::TimedOut { after: patience } });
            };
            match received {
                Ok(piece) => {
                    if matches!(piece, Piece::Audio(_)) {
                        self.deadline = None;
                    }
                    self.has_begun = true;
                    return Ok(Some(piece));
                }
                Err(Some(End::All)) => return Ok(None),
                Err(Some(End::Failed(error))) => return Err(error.clone()),
                Err(None | Some(End::Lost(_))) if self.may_repeat && !self.has_begun => self.listening = None,
                Err(Some(End::Lost(error))) => return Err(error.clone()),
                Err(None) => return Err(failures.cut()),
            }
        }
    }
}
