//! The final results of speech recognition, and whether each becomes a message (docs/design/voice.md A-9).

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::id::{CompanionId, PersonId, Seq};
use super::super::moment::Moment;
use super::super::named::named;
use super::echo::PlayedWords;
use super::words::WordLists;

/// A segment with less voiced audio than this is noise.
pub const LEAST_VOICED: Duration = Duration::from_millis(300);
/// A segment is noise if the recogniser's probability of "no speech" is above this.
pub const MOST_NO_SPEECH: f64 = 0.6;

/// A final recognition result that has words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub seq: Seq,
    pub from: PersonId,
    pub text: Arc<str>,
    /// The beginning of the first voiced hop.
    pub started: Moment,
    /// The end of the last voiced hop.
    pub ended: Moment,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addressed: Vec<CompanionId>,
    pub kind: Kind,
    /// Whether a person typed the words instead of saying them (docs/design/voice.md A-70).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_typed: bool,
}

named! {
    /// The class of a segment. It is decided when the segment is journaled.
    pub enum Kind {
        /// Words: they become a message, or a part of one.
        Words = "words",
        /// Words during a reply that only show that a person listens. They become a message that triggers nothing.
        Backchannel = "backchannel",
        /// Too little voice for words, or text that was not spoken. The page shows it greyed; it is not a message.
        Noise = "noise",
        /// A companion's own words, picked up from the loudspeaker. The segment is dropped.
        Echo = "echo",
    }
}

impl Kind {
    /// Whether a segment of this kind becomes a message.
    pub const fn is_message(self) -> bool {
        matches!(self, Self::Words | Self::Backchannel)
    }
}

/// A segment before it is journaled: the input of [`kind_of`].
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    pub text: &'a str,
    /// The beginning of the first voiced hop.
    pub started: Moment,
    /// The end of the last voiced hop.
    pub ended: Moment,
    /// The sum of the voiced hops between `started` and `ended`. `None` where no detector runs.
    pub voiced: Option<Duration>,
    /// The probability that the segment is not speech. `None` if the recogniser does not report it.
    pub no_speech: Option<f64>,
    /// Whether the recogniser invented the text ([`is_invented`](super::invented::is_invented)).
    pub is_invented: bool,
    /// Whether it was said during a spoken reply, or while one was being prepared.
    pub is_during_reply: bool,
    /// Whether it begins with a stop word. Companions' names before the stop word are skipped.
    pub begins_with_stop: bool,
}

/// Decides the kind of a segment. The checks run in this order: noise, echo, backchannel, words (docs/design/voice.md ). A stop word
/// is never an echo.
pub fn kind_of(heard: &Heard<'_>, lists: &WordLists, played: &PlayedWords) -> Kind {
    let is_short = heard.voiced.is_some_and(|voiced| voiced < LEAST_VOICED);
    if is_short || heard.is_invented || heard.no_speech.is_some_and(|probability| probability > MOST_NO_SPEECH) {
        Kind::Noise
    } else if !heard.begins_with_stop && played.is_echo(heard.text, heard.started) {
        Kind::Echo
    } else if heard.is_during_reply && lists.is_backchannel(heard.text) {
        Kind::Backchannel
    } else {
        Kind::Words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Heard<'_> = Heard {
        text: "mhm",
        started: Moment::ZERO,
        ended: Moment::from_micros(2_000_000),
        voiced: Some(LEAST_VOICED),
        no_speech: Some(MOST_NO_SPEECH),
        is_invented: false,
        is_during_reply: false,
        begins_with_stop: false,
    };

    #[test]
    fn a_segment_with_little_voice_is_noise() {
        let lists = WordLists::new([], ["mhm"]);
        let kind = |heard: Heard<'_>| kind_of(&heard, &lists, &PlayedWords::default());

        assert_eq!(kind(WORDS), Kind::Words);
        assert_eq!(kind(Heard { voiced: Some(LEAST_VOICED - Duration::from_micros(1)), ..WORDS }), Kind::Noise);
        assert_eq!(kind(Heard { no_speech: Some(0.61), ..WORDS }), Kind::Noise);
        assert_eq!(kind(Heard { is_invented: true, ..WORDS }), Kind::Noise);
        assert_eq!(kind(Heard { voiced: None, no_speech: None, ..WORDS }), Kind::Words);
    }

    #[test]
    fn backchannel_counts_only_during_a_reply_and_echo_always() {
        let lists = WordLists::new([], ["mhm"]);
        let mut played = PlayedWords::default();

        assert_eq!(kind_of(&Heard { is_during_reply: true, ..WORDS }, &lists, &played), Kind::Backchannel);
        played.add(WORDS.ended, "mhm");
        assert_eq!(kind_of(&Heard { is_during_reply: true, ..WORDS }, &lists, &played), Kind::Echo);
        assert_eq!(kind_of(&WORDS, &lists, &played), Kind::Echo);

        assert_eq!(kind_of(&Heard { begins_with_stop: true, ..WORDS }, &lists, &played), Kind::Words, "a stop word");
    }
}
