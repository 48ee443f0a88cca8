//! Simulates speech for a typed text: its onset and offset, and the results that a recogniser would return (docs/design/voice.md A-70).

use std::time::Duration;

/// The name of the recogniser in a segment whose words were typed.
pub const TYPED: &str = "typed";
const WORDS_PER_SEC: f64 = 2.5;
const PARTIAL_SECS: f64 = 0.4;
/// The time from the end of speech to the final result.
const FINAL_AFTER: Duration = Duration::from_millis(300);

/// A typed text that counts as speech, with at most [`Said::MOST_WORDS`] words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sound<'a> {
    /// The onset: the beginning of the first voiced hop.
    Start,
    /// A partial result: the words so far, which may still change.
    Partial(&'a str),
    /// The end of the last voiced hop.
    End,
    /// The final result, with all words.
    Final(&'a str),
}

/// The text has more than [`Said::MOST_WORDS`] words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {} words; say it in parts", Said::MOST_WORDS)]
pub struct TooLong;

impl Said {
    pub const MOST_WORDS: usize = 500;

    /// Splits a text into words. White space is normalised to one space between words.
    ///
    /// # Errors
    /// Returns an error if the text has more than [`Said::MOST_WORDS`] words.
    pub fn new(text: &str) -> Result<Self, TooLong> {
        let words: Vec<_> = text.split_whitespace().take(Self::MOST_WORDS + 1).collect();
        if words.len() > Self::MOST_WORDS { Err(TooLong) } else { Ok(Self { text: words.join(" ") }) }
    }

    /// The duration of the speech. A text without words lasts as long as one word.
    pub fn duration(&self) -> Duration {
        secs(self.text.split(' ').count() as f64 / WORDS_PER_SEC)
    }

    /// The simulated events in order, each with its time since the start: 2.5 words a second, a partial result every 0.4 s, and the final result 0.3
    /// s after the end.
    pub fn sounds(&self) -> impl Iterator<Item = (Duration, Sound<'_>)> {
        let partials = (1_u32..).zip(self.text.match_indices(' '));
        let partials = partials.map(|(count, (at, _))| (secs(f64::from(count) * PARTIAL_SECS), Sound::Partial(&self.text[..at])));
        let end = self.duration();
        std::iter::once((Duration::ZERO, Sound::Start))
            .chain(partials)
            .chain([(end, Sound::End), (end + FINAL_AFTER, Sound::Final(&self.text))])
    }
}

fn secs(secs: f64) -> Duration {
    Duration::from_micros((secs * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_said_at_two_and_a_half_words_a_second() {
        let said = Said::new("  so\nit  is ").unwrap();
        let at = Duration::from_millis;

        let expected = [
            (at(0), Sound::Start),
            (at(400), Sound::Partial("so")),
            (at(800), Sound::Partial("so it")),
            (at(1_200), Sound::End),
            (at(1_500), Sound::Final("so it is")),
        ];
        assert!(said.sounds().eq(expected), "{:?}", said.sounds().collect::<Vec<_>>());
    }

    #[test]
    fn a_text_without_words_is_speech_without_words() {
        let said = Said::new(" \n").unwrap();
        let at = Duration::from_millis;

        assert!(said.sounds().eq([(at(0), Sound::Start), (at(400), Sound::End), (at(700), Sound::Final(""))]));
    }

    #[test]
    fn a_text_with_too_many_words_is_refused() {
        assert!(Said::new(&"so ".repeat(500)).is_ok_and(|said| said.duration() == Duration::from_secs(200)));
        assert_eq!(Said::new(&"so ".repeat(501)), Err(TooLong));
    }
}
