//! Recognises stop words and backchannel in transcripts (docs/design/voice.md ).

use std::collections::BTreeSet;

use super::super::names::is_unspaced;

/// The maximum number of words in a companion's name that is skipped before a stop word.
const MOST_NAME_WORDS: usize = 8;

/// The stop words and the backchannel of one language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordLists {
    /// Stop phrases, each split into words.
    stop: Vec<Vec<String>>,
    backchannel: BTreeSet<String>,
}

impl WordLists {
    pub const fn empty() -> Self {
        Self { stop: Vec::new(), backchannel: BTreeSet::new() }
    }

    /// Builds the lists from stop phrases, and from words that only show that a person listens. Case and punctuation are ignored.
    pub fn new<'a>(stop: impl IntoIterator<Item = &'a str>, backchannel: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            stop: stop.into_iter().map(words).filter(|phrase| !phrase.is_empty()).collect(),
            backchannel: backchannel.into_iter().flat_map(words).collect(),
        }
    }

    /// Whether a text begins with a stop word (docs/design/voice.md A-26). Companions' names before the stop word are skipped; `is_name` decides
    /// whether a text is such a name.
    pub fn begins_with_stop(&self, text: &str, is_name: impl Fn(&str) -> bool) -> bool {
        let words = words(without_names(text, is_name));
        self.stop_at(&words).is_some()
    }

    pub fn is_only_stop(&self, text: &str) -> bool {
        let words = words(text);
        let mut rest = &words[..];
        while let Some(length) = self.stop_at(rest) {
            rest = &rest[length..];
        }
        rest.is_empty() && !words.is_empty()
    }

    /// Whether a text is only backchannel: it has words, and every word is on the list (docs/design/voice.md A-27).
    pub fn is_backchannel(&self, text: &str) -> bool {
        let words = words(text);
        !words.is_empty() && words.iter().all(|word| self.backchannel.contains(word))
    }

    /// The number of words in the longest stop phrase that `words` begin with. In scripts without spaces the last word may continue after the phrase.
    fn stop_at(&self, words: &[String]) -> Option<usize> {
        let begins = |phrase: &&Vec<String>| {
            let (last, first) = phrase.split_last()?;
            let found = words.get(..phrase.len())?;
            let fits = found[first.len()] == *last || found[first.len()].starts_with(&**last) && last.ends_with(is_unspaced);
            (found[..first.len()] == *first && fits).then_some(phrase.len())
        };
        self.stop.iter().filter_map(|phrase| begins(&phrase)).max()
    }
}

/// The words of a text, in lower case and without punctuation. Apostrophes and other marks inside a word are removed.
pub fn words(text: &str) -> Vec<String> {
    let is_between = |c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’') && !is_mark(c);
    let kept = |word: &str| word.chars().filter(|c| c.is_alphanumeric() || is_mark(*c)).flat_map(char::to_lowercase).collect();
    text.split(is_between).map(kept).filter(|word: &String| !word.is_empty()).collect()
}

/// Whether a character is a mark that belongs to the letter before it, such as a vowel sign.
fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

/// The text without the names at its beginning.
fn without_names(text: &str, is_name: impl Fn(&str) -> bool) -> &str {
    let mut rest = text;
    while let Some(end) = name_at(rest, &is_name) {
        rest = &rest[end..];
    }
    rest
}

/// The end of the longest name at the beginning of a text.
fn name_at(text: &str, is_name: impl Fn(&str) -> bool) -> Option<usize> {
    let start = text.len() - text.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
    let is_part = |c: char| c.is_alphanumeric() || is_mark(c);
    let mut ends = Vec::new();
    let mut before = None;
    for (at, c) in text[start..].char_indices().chain([(text.len() - start, ' ')]) {
        if !is_part(c) && before.is_some_and(is_part) {
            ends.push(start + at);
            if ends.len() == MOST_NAME_WORDS {
                break;
            }
        }
        before = Some(c);
    }
    ends.into_iter().rev().find(|end| is_name(&text[start..*end]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lists() -> WordLists {
        WordLists::new(
            ["stop", "wait", "hold on", "no no", "don't", "止まって"],
            ["mhm", "yeah", "right", "okay", "uh huh", "d’accord"],
        )
    }

    fn is_name(text: &str) -> bool {
        ["aria", "mira vale", "アリア"].contains(&&*text.to_lowercase())
    }

    #[test]
    fn stop_words_count_at_the_beginning() {
        for (text, expected) in [
            ("Stop!", true),
            ("wait, I know", true),
            ("Hold on a second", true),
            ("no. No!", true),
            ("Don’t", true),
            ("Aria, stop", true),
            ("Mira Vale… Aria: wait", true),
            ("アリア、止まってください", true),
            ("hold", false),
            ("no", false),
            ("the bus stop", false),
            ("stopping", false),
            ("Bob, stop", false),
            ("Mira, stop", false),
            ("Aria", false),
            ("", false),
        ] {
            assert_eq!(lists().begins_with_stop(text, is_name), expected, "{text}");
        }
    }

    #[test]
    fn stop_words_alone_are_told_from_those_with_more_behind() {
        for (text, expected) in
            [("stop", true), ("Stop, stop! Hold on.", true), ("stop it", false), ("Aria, stop", false), ("", false)]
        {
            assert_eq!(lists().is_only_stop(text), expected, "{text}");
        }
    }

    #[test]
    fn backchannel_has_no_other_words() {
        for (text, expected) in [
            ("Mhm.", true),
            ("yeah, right… OKAY", true),
            ("uh-huh", true),
            ("D'accord", true),
            ("yeah but", false),
            ("?!", false),
            ("", false),
        ] {
            assert_eq!(lists().is_backchannel(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), stop in any::<String>()) {
            let lists = WordLists::new([&*stop], [&*text]);
            lists.begins_with_stop(&text, is_name);
            lists.begins_with_stop(&format!("aria {stop}{text}"), |_| true);
            lists.is_only_stop(&text);
            prop_assert_eq!(lists.is_backchannel(&text), !words(&text).is_empty());
        }
    }
}
