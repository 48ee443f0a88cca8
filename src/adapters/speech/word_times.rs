//! Computes the times of a sentence's words from the times of characters or words that a service returns.
//!
//! A service may omit punctuation and white space, or change case. If it returns a different word, the times from that word on are unknown.

use std::time::Duration;

use crate::domain::voice::heard::{WordTime, word_ranges};

/// The words of a sentence, and how far their times are known.
pub(super) struct WordTimes {
    /// The characters that are not white space, in order.
    chars: Vec<Char>,
    /// The number of characters whose time is known or will not be known.
    next: usize,
    /// The word of the previous character, and the beginning of that word.
    begun: Option<(usize, Duration)>,
    /// The completed words that were not yet returned by `take`.
    ready: Vec<WordTime>,
    /// The end of the last completed word.
    end: Duration,
}

struct Char {
    char: char,
    /// The byte offset of the end of its word in the text. It identifies the word.
    text_end: usize,
    /// Whether the word is complete with this character: only punctuation follows.
    is_last: bool,
}

impl WordTimes {
    pub fn new(text: &str) -> Self {
        let mut chars: Vec<Char> = Vec::new();
        let mut start = 0;
        for word in word_ranges(text) {
            let first = chars.len();
            let of_word = text[start..word.text_end].chars().filter(|char| !char.is_whitespace());
            chars.extend(of_word.map(|char| Char { char, text_end: word.text_end, is_last: false }));
            let last =
                chars.iter().skip(first).rposition(|char| char.char.is_alphanumeric()).map_or(chars.len() - 1, |at| first + at);
            chars[last].is_last = true;
            start = word.text_end;
        }
        Self { chars, next: 0, begun: None, ready: Vec::new(), end: Duration::ZERO }
    }

    /// Adds characters that were spoken from `start` to `end`.
    pub fn add(&mut self, spoken: &str, start: Duration, end: Duration) {
        let spoken: Vec<char> = spoken.chars().filter(|char| !char.is_whitespace()).collect();
        let (length, count) = (end.saturating_sub(start), (spoken.len() as u32).max(1));
        let time = |char: u32| start.saturating_add(length.saturating_mul(char) / count);
        for (number, char) in (0..).zip(spoken) {
            self.add_char(char, time(number), time(number + 1));
        }
    }

    fn add_char(&mut self, spoken: char, start: Duration, end: Duration) {
        let rest = self.chars.get(self.next..).unwrap_or_default();
        let skipped = if spoken.is_alphanumeric() {
            let Some(skipped) = rest.iter().position(|char| char.char.is_alphanumeric()) else { return };
            if !is_same(rest[skipped].char, spoken) {
                self.next = self.chars.len();
                return;
            }
            skipped
        } else {
            if rest.first().is_none_or(|char| char.char != spoken) {
                return;
            }
            0
        };
        let char = &rest[skipped];
        self.next += skipped + 1;
        let start = self.begun.filter(|(word, _)| *word == char.text_end).map_or(start.max(self.end), |(_, start)| start);
        self.begun = Some((char.text_end, start));
        if char.is_last {
            self.end = end.max(start);
            self.ready.push(WordTime { text_end: char.text_end, start, end: self.end });
        }
    }

    /// Returns the times of newly completed words.
    pub fn take(&mut self) -> Vec<WordTime> {
        std::mem::take(&mut self.ready)
    }
}

fn is_same(char: char, other: char) -> bool {
    char == other || char.to_lowercase().eq(other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The words with their times in milliseconds, if these are spoken for 100 ms each.
    fn timed<'a>(text: &'a str, spoken: &[&str]) -> Vec<(&'a str, u128, u128)> {
        let mut times = WordTimes::new(text);
        for (number, spoken) in (0..).zip(spoken) {
            times.add(spoken, ms(100 * number), ms(100 * number + 100));
        }
        let mut from = 0;
        let words = times.take().into_iter().map(|word| {
            let shown = text[from..word.text_end].trim();
            from = word.text_end;
            (shown, word.start.as_millis(), word.end.as_millis())
        });
        words.collect()
    }

    #[test]
    fn characters_are_joined_to_words() {
        let times = timed("Hi, you!", &["H", "i", ",", " ", "y", "o", "u", "!", " "]);

        assert_eq!(times, [("Hi,", 0, 200), ("you!", 400, 700)]);
    }

    #[test]
    fn whole_words_may_lack_punctuation_and_case() {
        assert_eq!(
            timed("“Hello”, World – yes.", &["hello", "world", "yes"]),
            [("“Hello”,", 0, 100), ("World", 100, 200), ("– yes.", 200, 300)]
        );
    }

    #[test]
    fn a_word_of_several_characters_in_a_script_without_spaces_is_divided() {
        assert_eq!(timed("你好。 OK", &["你好。", "OK"]), [("你", 0, 33), ("好。", 33, 66), ("OK", 100, 200)]);
    }

    #[test]
    fn symbols_have_the_times_that_are_told() {
        assert_eq!(
            timed("2 × 3 🦀", &["2", " ", "×", " ", "3", "🦀"]),
            [("2", 0, 100), ("×", 200, 300), ("3", 400, 500), ("🦀", 500, 600)]
        );
    }

    #[test]
    fn other_words_end_the_times() {
        assert_eq!(timed("I am 3 now", &["I", "am", "three", "now"]), [("I", 0, 100), ("am", 100, 200)]);
    }

    #[test]
    fn a_word_is_complete_only_with_its_last_letter() {
        let mut times = WordTimes::new("one two");

        times.add("on", ms(0), ms(200));
        assert_eq!(times.take(), []);
        times.add("e", ms(200), ms(300));
        assert_eq!(times.take(), [WordTime { text_end: 3, start: ms(0), end: ms(300) }]);
        assert_eq!(times.take(), []);
    }

    proptest! {
        #[test]
        fn times_ascend_and_fit_the_text_whatever_is_told(
            text in "[a-cB ,.é你😀\u{301}]{0,12}",
            spoken in prop::collection::vec(("[a-cB ,.é你😀\u{301}]{0,3}", any::<u64>(), any::<u64>()), 0..12),
        ) {
            let mut times = WordTimes::new(&text);
            let mut all = Vec::new();
            for (spoken, start, end) in spoken {
                times.add(&spoken, Duration::from_nanos(start), Duration::from_nanos(end));
                all.extend(times.take());
            }
            prop_assert!(all.is_sorted_by(|one, next| one.text_end < next.text_end && one.end <= next.start));
            prop_assert!(all.iter().all(|word| word.start <= word.end && text.is_char_boundary(word.text_end)));
        }

        #[test]
        fn every_word_that_is_spoken_has_a_time(text in "[a-c ,.é你\u{301}]{0,20}") {
            let mut times = WordTimes::new(&text);
            for (number, char) in (0..).zip(text.chars()) {
                times.add(&char.to_string(), ms(number), ms(number + 1));
            }
            let ends: Vec<_> = times.take().into_iter().map(|word| word.text_end).collect();
            prop_assert_eq!(ends, word_ranges(&text).map(|word| word.text_end).collect::<Vec<_>>());
        }
    }
}
