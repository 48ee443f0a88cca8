//! Recognises echo: the companions' own words, which a microphone picks up from the loudspeaker (docs/design/voice.md A-28).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::moment::Moment;
use super::super::names::is_unspaced;
use super::words::words;

/// How long after playback a word can return as echo.
pub const ECHO_WINDOW: Duration = Duration::from_secs(5);
/// For how long played words are kept. It is longer than the echo window, because a segment arrives some time after it was said.
const KEPT: Duration = Duration::from_secs(30);
/// A text is an echo if at least this percentage of its words was played.
const ECHO_PERCENT: usize = 80;

/// The words that any companion has played in a channel in the last 30 seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayedWords {
    played: VecDeque<(Moment, String)>,
}

impl PlayedWords {
    /// Adds a text whose playback ended at `at`.
    pub fn add(&mut self, at: Moment, text: &str) {
        self.played.extend(heard_words(text).into_iter().map(|word| (at, word)));
        while self.played.front().is_some_and(|(played, _)| at.since(*played) > KEPT) {
            self.played.pop_front();
        }
    }

    /// Whether at least 80 % of a text's words were played after `started` − 5 s, where `started` is the time at which the person began to speak the
    /// text (docs/design/voice.md A-28). Each played word matches at most one word of the text.
    pub fn is_echo(&self, text: &str, started: Moment) -> bool {
        let mut recent: BTreeMap<&str, usize> = BTreeMap::new();
        for (played, word) in &self.played {
            if started.since(*played) <= ECHO_WINDOW {
                *recent.entry(word).or_default() += 1;
            }
        }
        let words = heard_words(text);
        let repeated = words.iter().filter(|word| {
            let left = recent.get_mut(word.as_str()).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        });
        !words.is_empty() && repeated.count() * 100 >= words.len() * ECHO_PERCENT
    }
}

/// The words of a text. In scripts without spaces each character is a word, because playback can report a position in the middle of a sentence.
fn heard_words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for word in words(text) {
        if word.chars().any(is_unspaced) {
            all.extend(word.chars().map(String::from));
        } else {
            all.push(word);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn a_text_that_was_just_played_is_an_echo() {
        let mut played = PlayedWords::default();
        played.add(at(10), "The weather is fine,");
        played.add(at(11), " and so are we.");

        assert!(played.is_echo("weather is fine and", at(12)));
        assert!(played.is_echo("the weather was fine and", at(12)), "four of five words");
        assert!(!played.is_echo("is the weather bad", at(12)), "three of four words");
        assert!(!played.is_echo("fine fine", at(12)), "it was played once");
        assert!(!played.is_echo("…", at(12)));
        assert!(played.is_echo("the weather", at(15)));
        assert!(!played.is_echo("the weather", at(16)));
        assert!(played.is_echo("so are we", at(16)));
    }

    #[test]
    fn in_scripts_without_spaces_a_part_of_a_sentence_is_an_echo() {
        let mut played = PlayedWords::default();
        played.add(at(10), "今日は");
        played.add(at(11), "静か");
        played.add(at(11), "です。");

        assert!(played.is_echo("日は静かです", at(12)));
        assert!(!played.is_echo("明日は雨です", at(12)));
    }

    #[test]
    fn old_words_are_forgotten() {
        let mut played = PlayedWords::default();
        played.add(at(1), "one");
        played.add(at(32), "two");

        assert_eq!(played.played.len(), 1);
    }
}
