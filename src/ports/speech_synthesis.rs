//! Speech synthesis: makes the audio of companions' speech.

use std::sync::Arc;

use futures_util::stream::BoxStream;

use super::audio::SPOKEN_RATE;
use super::language_model::NoAnswer;
pub use crate::domain::call::playback::Piece;
use crate::domain::id::CompanionId;

/// A sentence to be spoken.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    /// The companion that says it.
    pub companion: CompanionId,
    pub text: Arc<str>,
    /// The language, as the name of a table of `speech.words`.
    pub language: Arc<str>,
    /// The name of the voice at the provider. `None`: the provider's choice.
    pub voice: Option<Arc<str>>,
    /// The pace, from 0.5 to 2; 1 is the voice's own.
    pub speed: f64,
}

impl Sentence {
    /// Whether there are words to say. Some services refuse punctuation without words.
    pub fn has_words(&self) -> bool {
        self.text.chars().any(char::is_alphanumeric)
    }
}

/// The maximum number of samples for a text: one second for each four characters, longer at a slower pace, plus five seconds.
pub fn most_samples(text: &str, speed: f64) -> usize {
    // A pace above 1 does not shorten the limit. NaN counts as 1.
    let pace = if speed < 1.0 { speed.max(0.5) } else { 1.0 };
    let secs = 5.0 + text.chars().count() as f64 / 4.0 / pace;
    (secs * f64::from(SPOKEN_RATE)) as usize
}

/// A speech synthesis service.
pub trait SpeechSynthesis: Send + Sync + 'static {
    /// The provider, as in the span attribute `gen_ai.provider.name`.
    fn provider(&self) -> &'static str;

    /// The host that receives the words. `None` if they stay on this machine.
    fn host(&self) -> Option<Arc<str>>;

    /// Makes the audio of a sentence, piece by piece. An error ends the stream. A text without words has no pieces, which is not an error. Dropping
    /// the stream cancels the work.
    fn say(&self, sentence: Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audio_of_a_text_may_be_as_long_as_slow_speech() {
        let secs = |text: &str, speed| most_samples(text, speed) as f64 / f64::from(SPOKEN_RATE);

        assert_eq!(
            [secs("", 1.0), secs("Eight ch", 1.0), secs("Eight ch", 2.0), secs("Eight ch", f64::NAN)],
            [5.0, 7.0, 7.0, 7.0]
        );
        assert_eq!([secs("Eight ch", 0.5), secs("Eight ch", 0.0), secs("Eight ch", f64::NEG_INFINITY)], [9.0; 3]);
    }
}
