//! Speech recognition: returns the words of what one person says.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc::{Receiver, Sender};

pub use crate::domain::call::Sound;
use crate::domain::moment::Moment;
use crate::language_model::NoAnswer;

/// What the recogniser should expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The language, as the name of a table of `speech.words`.
    pub language: Arc<str>,
    /// Names that are likely to be said: those of the companions and people present.
    pub names: Vec<Arc<str>>,
}

/// What a recogniser returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Recognised {
    /// Words that may change.
    Partial {
        text: Arc<str>,
        /// When the first one was begun.
        started: Moment,
    },
    /// Words that do not change any more, or none.
    Final(Segment),
}

/// A final result.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// An id that is unique for the person in the call, without words or names. The same audio gets the same id.
    pub id: Arc<str>,
    /// The words. May be empty.
    pub text: Arc<str>,
    /// Whether the text is what was said. Otherwise it tells only that something was said, addresses nobody, and stops nothing.
    pub is_verbatim: bool,
    /// The beginning of the first voiced hop.
    pub started: Moment,
    /// The end of the last voiced hop.
    pub ended: Moment,
    /// The sum of the voiced hops, if the own detector cut the segment.
    pub voiced: Option<Duration>,
    /// The probability that it is no speech, from 0 to 1.
    pub no_speech: Option<f64>,
    /// How sure the recogniser is, in thousandths.
    pub confidence: Option<u16>,
    /// Whether it is all of the utterance (docs/design/voice.md A-10).
    pub is_last: bool,
    /// Whether the service has returned something for it. Otherwise it only ends an utterance, and does not show that the service works.
    pub is_answer: bool,
}

/// Ears for companions.
#[async_trait]
pub trait SpeechRecognition: Send + Sync + 'static {
    /// The provider, as in the span attribute `gen_ai.provider.name`.
    fn provider(&self) -> &'static str;

    /// The host to which it sends audio. `None`: none, audio stays on this machine.
    fn host(&self) -> Option<Arc<str>>;

    /// Whether it returns words. Without them speech is only detected.
    fn recognises_words(&self) -> bool;

    /// Whether it returns partial results. Without them segments are cut at 15 s.
    fn has_partials(&self) -> bool;

    /// Listens to one person until `sounds` is closed and all results are returned, or until nobody takes them. Each stretch has one final that is the
    /// last of its utterance. Finals come in order, with times within the audio.
    ///
    /// # Errors
    /// The connection failed. The caller listens again, and repeats the audio since the last final.
    async fn listen(
        &self,
        expectation: Expectation,
        sounds: Receiver<Sound>,
        results: Sender<Recognised>,
    ) -> Result<(), NoAnswer>;
}
