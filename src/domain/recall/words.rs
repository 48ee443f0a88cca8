//! Splits texts into words, and reduces the words to their stems.

use std::collections::HashMap;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript as _};
use unicode_segmentation::UnicodeSegmentation;

/// The hash of a word. Collisions are rare.
pub type Word = u32;

/// The stemmers of the supported languages.
pub struct Words {
    stemmers: Vec<Stemmer>,
}

impl Words {
    pub fn new(languages: &[Algorithm]) -> Self {
        Self { stemmers: languages.iter().map(|language| Stemmer::new(*language)).collect() }
    }

    /// The words of a text.
    pub fn of(&self, text: &str) -> Vec<Word> {
        let mut words = Vec::new();
        self.reader().read(text, &mut words);
        words
    }

    /// A reader for several texts.
    pub fn reader(&self) -> WordReader<'_> {
        WordReader { stemmers: &self.stemmers, known: HashMap::new() }
    }
}

/// Reads the words of texts. Caches the stems of each word.
pub struct WordReader<'a> {
    stemmers: &'a [Stemmer],
    known: HashMap<Box<str>, Box<[Word]>>,
}

impl WordReader<'_> {
    /// Appends the words of a text.
    pub(super) fn read(&mut self, text: &str, words: &mut Vec<Word>) {
        if text.is_ascii() {
            return text.to_ascii_lowercase().unicode_words().for_each(|word| self.stems(word, words));
        }
        let plain: String = text.nfkc().flat_map(char::to_lowercase).map(|char| if char == '’' { '\'' } else { char }).collect();
        let mut rest = plain.as_str();
        while let Some(first) = rest.chars().next() {
            let is_spaceless = is_of_spaceless_script(first);
            let end = rest.find(|char| is_of_spaceless_script(char) != is_spaceless).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            rest = after;
            if is_spaceless {
                pairs(part, words);
            } else {
                part.unicode_words().for_each(|word| self.stems(word, words));
            }
        }
    }

    /// Appends the stems of a word, one for each language.
    fn stems(&mut self, word: &str, words: &mut Vec<Word>) {
        if let Some(known) = self.known.get(word) {
            return words.extend(known);
        }
        let first = words.len();
        for stemmer in self.stemmers {
            let word = hash(&stemmer.stem(word));
            if !words[first..].contains(&word) {
                words.push(word);
            }
        }
        if self.stemmers.is_empty() {
            words.push(hash(word));
        }
        self.known.insert(word.into(), words[first..].into());
    }
}

/// Appends the pairs of neighbouring characters, because word boundaries are not marked.
fn pairs(run: &str, words: &mut Vec<Word>) {
    let mut starts = run.char_indices().map(|(at, _)| at).chain([run.len()]);
    let (mut first, mut second) = (starts.next().unwrap_or_default(), starts.next().unwrap_or_default());
    let mut is_alone = true;
    for third in starts {
        words.push(hash(&run[first..third]));
        (first, second) = (second, third);
        is_alone = false;
    }
    if is_alone {
        words.push(hash(&run[first..second]));
    }
}

/// Whether a character belongs to a script that is written without spaces, or to one with inflections but without a stemmer.
fn is_of_spaceless_script(char: char) -> bool {
    !char.is_ascii()
        && char.is_alphanumeric()
        && matches!(
            char.script(),
            Script::Han
                | Script::Hiragana
                | Script::Katakana
                | Script::Hangul
                | Script::Bopomofo
                | Script::Thai
                | Script::Lao
                | Script::Khmer
                | Script::Myanmar
        )
}

/// FNV-1a.
fn hash(word: &str) -> Word {
    word.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
