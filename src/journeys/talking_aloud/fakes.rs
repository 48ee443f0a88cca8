//! Services that do what a test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::BoxStream;
use tokio::sync::mpsc::{Receiver, Sender};

use crate::adapters::speech::rehearsed::RehearsedSpeech;
use crate::domain::moment::Moment;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Segment, Sound, SpeechRecognition};
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis};

type Listens = dyn Fn(Expectation, Receiver<Sound>, Sender<Recognised>) -> BoxFuture<'static, Result<(), NoAnswer>> + Send + Sync;
type Says = dyn Fn(Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> + Send + Sync;

/// Ears that count their streams.
pub struct Ears {
    listens: Box<Listens>,
    recognises_words: bool,
    asked: AtomicUsize,
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Ears {
    /// Ears that return words, also partial results.
    pub fn new<R>(listens: impl Fn(Receiver<Sound>, Sender<Recognised>) -> R + Send + Sync + 'static) -> Arc<Self>
    where
        R: Future<Output = Result<(), NoAnswer>> + Send + 'static,
    {
        Self::of(true, Box::new(move |_, sounds, results| listens(sounds, results).boxed()))
    }

    /// The built-in ones.
    pub fn rehearsed() -> Arc<Self> {
        let listens = |expectation, sounds, results| async move { RehearsedSpeech.listen(expectation, sounds, results).await };
        Self::of(false, Box::new(move |expectation, sounds, results| listens(expectation, sounds, results).boxed()))
    }

    fn of(recognises_words: bool, listens: Box<Listens>) -> Arc<Self> {
        let [asked, open, most] = [(); 3].map(|()| AtomicUsize::new(0));
        Arc::new(Self { listens, recognises_words, asked, open, most })
    }

    /// How many streams were opened.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// How many streams are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The most streams that were open at a time.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

/// Counts a stream as open until it is dropped.
struct Open<'a>(&'a Ears);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl SpeechRecognition for Ears {
    fn provider(&self) -> &'static str {
        "ears"
    }

    fn host(&self) -> Option<Arc<str>> {
        Some("ears.example".into())
    }

    fn recognises_words(&self) -> bool {
        self.recognises_words
    }

    fn has_partials(&self) -> bool {
        self.recognises_words
    }

    async fn listen(
        &self,
        expectation: Expectation,
        sounds: Receiver<Sound>,
        results: Sender<Recognised>,
    ) -> Result<(), NoAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.most.fetch_max(self.open.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let _open = Open(self);
        (self.listens)(expectation, sounds, results).await
    }
}

/// The only final of an utterance.
pub fn final_of(text: &str, started: Moment, ended: Moment, is_answer: bool) -> Recognised {
    Recognised::Final(Segment {
        id: format!("fake-{}", started.as_micros()).into(),
        text: text.into(),
        is_verbatim: true,
        started,
        ended,
        voiced: None,
        no_speech: None,
        confidence: None,
        is_last: true,
        is_answer,
    })
}

/// A mouth that counts the sentences.
pub struct Mouth {
    says: Box<Says>,
    asked: AtomicUsize,
}

impl Mouth {
    pub fn new(says: impl Fn(Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { says: Box::new(says), asked: AtomicUsize::new(0) })
    }

    /// How many sentences it was asked for.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl SpeechSynthesis for Mouth {
    fn provider(&self) -> &'static str {
        "mouth"
    }

    fn host(&self) -> Option<Arc<str>> {
        Some("mouth.example".into())
    }

    fn say(&self, sentence: Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        (self.says)(sentence)
    }
}

/// A failure of a mouth.
pub fn failed() -> NoAnswer {
    NoAnswer::Unreachable { endpoint: "https://mouth.example".into(), detail: "the line is bad".to_owned() }
}
