//! Makes the text that is sent to speech synthesis: replaces words that a voice mispronounces, and text that is not read aloud (docs/design/voice.md
//! A-61, A-63).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::heard::WordTime;
use super::unspoken::unspoken;

/// The spoken form of a text, with a mapping back to the displayed text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pronounced {
    pub text: String,
    replaced: Vec<Replaced>,
    /// The start time of a replaced word while only some words of its pronunciation have been mapped.
    begun: Option<Duration>,
}

/// A replaced range of the text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Replaced {
    spoken: Range<usize>,
    shown: Range<usize>,
}

impl Pronounced {
    /// Replaces whole words regardless of case. If several entries match at one place, the longest one wins. Blocks of code, addresses and stage
    /// directions are replaced by the rules of docs/design/voice.md A-61.
    pub fn new(shown: &str, pronounce: &BTreeMap<Arc<str>, Arc<str>>) -> Self {
        let mut found = Self::default();
        let (mut at, mut is_within_word) = (0, false);
        let mut unspoken = unspoken(shown).into_iter().peekable();
        while let Some(next) = shown[at..].chars().next() {
            if let Some((range, spoken)) = unspoken.next_if(|(range, _)| range.start == at) {
                at = range.end;
                found.replace(range, spoken);
                is_within_word = false;
                continue;
            }
            let words = pronounce.iter().filter(|_| !is_within_word);
            let matches = words.filter_map(|(word, spoken)| Some((length_of(word, &shown[at..])?, spoken)));
            if let Some((length, spoken)) = matches.max_by_key(|(length, _)| *length) {
                found.replace(at..at + length, spoken.trim());
                at += length;
                is_within_word = true;
            } else {
                found.text.push(next);
                at += next.len_utf8();
                is_within_word = next.is_alphanumeric();
            }
        }
        found
    }

    /// Without a list of pronunciations.
    pub fn plain(shown: &str) -> Self {
        Self::new(shown, &BTreeMap::new())
    }

    pub fn is_silent(&self) -> bool {
        !self.text.contains(char::is_alphanumeric)
    }

    fn replace(&mut self, shown: Range<usize>, spoken: &str) {
        let begin = self.text.len();
        self.text.push_str(spoken);
        self.replaced.push(Replaced { spoken: begin..self.text.len(), shown });
    }

    /// Maps word times of the spoken text to words of the displayed text.
    pub fn shown(&mut self, spoken: Vec<WordTime>) -> Vec<WordTime> {
        spoken.into_iter().filter_map(|word| self.shown_word(word)).collect()
    }

    fn shown_word(&mut self, word: WordTime) -> Option<WordTime> {
        let before = self.replaced.iter().take_while(|replaced| replaced.spoken.start < word.text_end).last();
        let text_end = match before {
            Some(replaced) if word.text_end < replaced.spoken.end => {
                // All words of one pronunciation count as one word.
                self.begun.get_or_insert(word.start);
                return None;
            }
            Some(replaced) => replaced.shown.end + (word.text_end - replaced.spoken.end),
            None => word.text_end,
        };
        Some(WordTime { text_end, start: self.begun.take().unwrap_or(word.start), end: word.end })
    }
}

/// The byte length of `word` at the beginning of a text, if the text begins with it as a whole word.
fn length_of(word: &str, text: &str) -> Option<usize> {
    let mut rest = text.chars();
    for expected in word.chars() {
        let found = rest.next()?;
        if !found.to_lowercase().eq(expected.to_lowercase()) {
            return None;
        }
    }
    let is_whole = rest.clone().next().is_none_or(|next| !next.is_alphanumeric());
    is_whole.then(|| text.len() - rest.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pronounced(shown: &str) -> Pronounced {
        let words = [("Vale", "vail"), ("Nginx", "engine x"), ("New York", "noo york"), ("New", "noo"), ("C++", "see plus plus")];
        let words = words.map(|(word, spoken)| (word.into(), spoken.into()));
        Pronounced::new(shown, &words.into())
    }

    fn word(text_end: usize, start: u64, end: u64) -> WordTime {
        WordTime { text_end, start: Duration::from_millis(start), end: Duration::from_millis(end) }
    }

    #[test]
    fn whole_words_are_replaced_whatever_their_case() {
        assert_eq!(pronounced("Vale and NGINX, in New York.").text, "vail and engine x, in noo york.");
        assert_eq!(pronounced("Valentine, prevale, new; C++, C++20").text, "Valentine, prevale, noo; see plus plus, C++20");
        assert_eq!(pronounced("İstanbul ist größer.").text, "İstanbul ist größer.");
        assert_eq!(pronounced("").text, "");
    }

    #[test]
    fn addresses_code_and_directions_are_not_read_out() {
        let shown = "*smiles* Ask Nginx at https://vale.example/a?b=c now:\n```\nx = 1\n```";
        let mut found = pronounced(shown);
        assert_eq!(found.text, "Ask engine x at vale.example now:\ncode");

        let end_of = |part: &str| shown.find(part).unwrap() + part.len();
        let words =
            found.shown(vec![word(3, 0, 100), word(12, 200, 300), word(15, 400, 500), word(28, 600, 700), word(38, 800, 900)]);

        let ends: Vec<_> = words.iter().map(|word| word.text_end).collect();
        assert_eq!(ends, [end_of("Ask"), end_of("Nginx"), end_of("at"), end_of("b=c"), shown.len()]);
        assert!(pronounced("*waves.* ").is_silent() && !found.is_silent());
    }

    #[test]
    fn times_are_those_of_the_words_that_are_shown() {
        let mut found = pronounced("Ask Nginx, Vale.");
        assert_eq!(found.text, "Ask engine x, vail.");

        let first = found.shown(vec![word(3, 0, 200), word(10, 250, 500)]);
        let second = found.shown(vec![word(13, 520, 600), word(19, 700, 900)]);

        assert_eq!(first, [word(3, 0, 200)]);
        assert_eq!(second, [word(10, 250, 600), word(16, 700, 900)]);
    }
}
