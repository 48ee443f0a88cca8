//! What a typed text is as speech: when it begins and ends, and when a recogniser would have its words (docs/design/voice.md A-70).

use std::time::Duration;

/// What a segment has instead of a recogniser, if its words were typed.
pub const TYPED: &str = "typed";
const WORDS_PER_SEC: f64 = 2.5;
const PARTIAL_SECS: f64 = 0.4;
/// The time from the end of speech to the final result.
const FINAL_AFTER: Duration = Duration::from_millis(300);

/// A text that is said, with at most [`Said::MOST_WORDS`] words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sound<'a> {
    /// The first voiced hop.
    Start,
    /// The recogniser has words that may still change.
    Partial(&'a str),
    /// The end of the last voiced hop.
    End,
    /// The recogniser returns all words as final.
    Final(&'a str),
}

/// The text is too long to be said at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {} words; say it in parts", Said::MOST_WORDS)]
pub struct TooLong;

impl Said {
    pub const MOST_WORDS: usize = 500;

    /// A text that is to be said. White space only stands between its words.
    ///
    /// # Errors
    /// It has too many words.
    pub fn new(text: &str) -> Result<Self, TooLong> {
        let words: Vec<_> = text.split_whitespace().take(Self::MOST_WORDS + 1).collect();
        if words.len() > Self::MOST_WORDS { Err(TooLong) } else { Ok(Self { text: words.join(" ") }) }
    }

    /// How long the speech lasts, from its start to its end. A text without words lasts as long as one word.
    pub fn duration(&self) -> Duration {
        secs(self.text.split(' ').count() as f64 / WORDS_PER_SEC)
    }

    /// What happens, in order, with the time since the start: words at 2.5 a second, a partial result every 0.4 s, and the final result 0.3 s after the
    /// end.
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
