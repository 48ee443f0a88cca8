//! Speech recognition: returns the transcript of one person's speech.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc::{Receiver, Sender};

pub use crate::domain::call::Sound;
use crate::domain::moment::Moment;
use crate::language_model::NoAnswer;

/// Hints for the recogniser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The language, as the name of a table of `speech.words`.
    pub language: Arc<str>,
    /// Names that are likely to be said: those of the companions and people present.
    pub names: Vec<Arc<str>>,
}

/// A recognition result.
#[derive(Clone, Debug, PartialEq)]
pub enum Recognised {
    /// Words that may still change.
    Partial {
        text: Arc<str>,
        /// When the first word began.
        started: Moment,
    },
    /// Words that do not change any more. They may be empty.
    Final(Segment),
}

/// A final result.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// An id that is unique for the person in the call, without words or names. The same audio gets the same id.
    pub id: Arc<str>,
    /// The words. May be empty.
    pub text: Arc<str>,
    /// Whether the text is a transcript. If not, it only shows that something was said: it addresses no companion, and stops nothing.
    pub is_verbatim: bool,
    /// The beginning of the first voiced hop.
    pub started: Moment,
    /// The end of the last voiced hop.
    pub ended: Moment,
    /// The sum of the voiced hops. `None` unless our own detector cut the segment.
    pub voiced: Option<Duration>,
    /// The probability that it is no speech, from 0 to 1. `None` if the recogniser does not report it.
    pub no_speech: Option<f64>,
    /// The recogniser's confidence, in thousandths. `None` if it reports none.
    pub confidence: Option<u16>,
    /// Whether it completes the utterance (docs/design/voice.md A-10).
    pub is_last: bool,
    /// Whether the service has returned something for it. If not, the segment only ends an utterance, and does not show that the service works.
    pub is_answer: bool,
}

/// A speech recognition service.
#[async_trait]
pub trait SpeechRecognition: Send + Sync + 'static {
    /// The provider, as in the span attribute `gen_ai.provider.name`.
    fn provider(&self) -> &'static str;

    /// The host that receives audio. `None` if audio stays on this machine.
    fn host(&self) -> Option<Arc<str>>;

    /// Whether it returns words. Without words, speech is only detected.
    fn recognises_words(&self) -> bool;

    /// Whether it returns partial results. Without them, segments are cut at 15 s.
    fn has_partials(&self) -> bool;

    /// Recognises the speech of one person until `sounds` is closed and all results are returned, or until `results` is closed. Each stretch has
    /// exactly one final that completes its utterance. Finals are sent in order, with times within the audio.
    ///
    /// # Errors
    /// Returns an error if the connection failed. The caller calls again, and repeats the audio since the last final.
    async fn listen(
        &self,
        expectation: Expectation,
        sounds: Receiver<Sound>,
        results: Sender<Recognised>,
    ) -> Result<(), NoAnswer>;
}
