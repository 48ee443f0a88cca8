//! Splits texts into words, and reduces the words to forms that do not depend on accents, inflection and punctuation.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use any_ascii::any_ascii_char;
use foldhash::fast::RandomState;
use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript as _};
use unicode_segmentation::UnicodeSegmentation;

use super::topic::LISTS;

/// The hash of a word. Collisions are rare.
pub type Word = u32;

/// The characters that may separate the parts of one number.
const IN_NUMBERS: &[char] = &[' ', '\u{a0}', '\u{202f}', '-', '.', ',', '/', '\'', '(', ')'];
/// The most of these characters between two digits.
const MAX_GAP: usize = 2;
/// The fewest digits of a number that is also indexed without its separators.
const LONG_NUMBER: usize = 4;
/// The digits at the end of a telephone number that do not depend on how its country and its area are written.
const SUBSCRIBER: usize = 9;

/// The stemmers of the supported languages.
pub struct Words {
    stemmers: Vec<Stemmer>,
    /// The names of the same languages.
    pub(super) languages: Vec<&'static str>,
    /// The forms of all words without a topic.
    pub(super) without_topic: HashSet<Word>,
}

impl Words {
    pub fn new(languages: &[Algorithm]) -> Self {
        let stemmers: Vec<_> = languages.iter().map(|language| Stemmer::new(*language)).collect();
        let languages = languages.iter().map(|language| language.name()).collect();
        let mut forms = Vec::new();
        let mut reader = WordReader { stemmers: &stemmers, known: HashMap::default() };
        LISTS.iter().flat_map(|lists| lists.words.iter().chain(&lists.talk)).for_each(|word| reader.read(word, &mut forms));
        Self { stemmers, languages, without_topic: forms.into_iter().collect() }
    }

    /// A reader for several texts.
    pub fn reader(&self) -> WordReader<'_> {
        WordReader { stemmers: &self.stemmers, known: HashMap::default() }
    }

    /// The words of a text that are about a topic.
    pub fn topic(&self, text: &str) -> HashSet<Word> {
        let mut words = Vec::new();
        self.reader().read(text, &mut words);
        words.into_iter().filter(|word| !self.without_topic.contains(word)).collect()
    }
}

/// Reads the words of texts. Caches the forms of each word.
pub struct WordReader<'a> {
    stemmers: &'a [Stemmer],
    known: HashMap<Box<str>, Box<[Word]>, RandomState>,
}

impl WordReader<'_> {
    /// Appends the forms of the words of a text.
    pub(super) fn read(&mut self, text: &str, words: &mut Vec<Word>) {
        each_word(text, |word, is_spaceless| self.forms_of(word, is_spaceless, words));
    }

    /// Appends the forms of a word, or the pairs of a run without spaces.
    pub(super) fn forms_of(&mut self, word: &str, is_spaceless: bool, words: &mut Vec<Word>) {
        if is_spaceless { pairs(word, words) } else { self.forms(word, words) }
    }

    /// Appends the forms of a word: its stems in each language without accents, and the stems of the word without accents.
    fn forms(&mut self, word: &str, words: &mut Vec<Word>) {
        if let Some(known) = self.known.get(word) {
            return words.extend(known);
        }
        let first = words.len();
        let mut add = |form: &str| {
            let form = hash(&folded(form));
            if !words[first..].contains(&form) {
                words.push(form);
            }
        };
        let mut variants = vec![Cow::Borrowed(word)];
        if !word.is_ascii() {
            variants.push(folded(word));
            // German without its special letters.
            variants.push(word.replace('ä', "ae").replace('ö', "oe").replace('ü', "ue").into());
        }
        for variant in variants {
            self.stemmers.iter().for_each(|stemmer| add(&stemmer.stem(&variant)));
            if self.stemmers.is_empty() {
                add(&variant);
            }
        }
        self.known.insert(word.into(), words[first..].into());
    }
}

/// Calls `with` for each word of a text, in lower case. The flag marks runs of a script without spaces. Numbers and compounds with separators are also
/// given without them, and words with an apostrophe also without their shorter part.
pub(super) fn each_word(text: &str, mut with: impl FnMut(&str, bool)) {
    if text.is_ascii() {
        let text = text.to_ascii_lowercase();
        return each_spaced_word(&text, text.unicode_word_indices(), |word| with(word, false));
    }
    let plain: String = text.nfkc().flat_map(char::to_lowercase).map(plain_char).collect();
    let mut rest = plain.as_str();
    while let Some(first) = rest.chars().next() {
        let is_spaceless = is_of_spaceless_script(first);
        let end = rest.find(|char| is_of_spaceless_script(char) != is_spaceless).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        match is_spaceless {
            true => with(part, true),
            false => {
                let is_word = |(_, word): &(usize, &str)| word.starts_with(is_emoji) || word.contains(char::is_alphanumeric);
                each_spaced_word(part, part.split_word_bound_indices().filter(is_word), |word| with(word, false));
            }
        }
    }
}

fn each_spaced_word<'a>(text: &'a str, words: impl Iterator<Item = (usize, &'a str)>, mut with: impl FnMut(&str)) {
    let (mut end, mut before) = (0, "");
    let has_apostrophe = text.contains('\'');
    for (start, word) in words {
        with(word);
        if &text[end..start] == "-" && ![before, word].concat().contains(|char: char| char.is_ascii_digit()) {
            with(&[before, word].concat());
        }
        // An elided article ("l'été"), and an ending after a name ("İstanbul'daki").
        match Some(word)
            .filter(|_| has_apostrophe)
            .and_then(|word| word.split_once('\''))
            .map(|(article, noun)| (article, article.chars().count(), noun, noun.chars().count()))
        {
            Some((_, ..=2, noun, 3..)) => with(noun),
            Some((name, 3.., _, 2..)) => with(name),
            _ => {}
        }
        (end, before) = (start + word.len(), word);
    }
    // Numbers without their separators, and without the letters before or after them.
    let mut rest = text;
    while let Some(first) = rest.bytes().position(|byte| byte.is_ascii_digit()) {
        let mut gap = 0;
        let is_in_number = |(_, char): &(usize, char)| {
            gap = if char.is_ascii_digit() { 0 } else { gap + 1 };
            gap == 0 || gap <= MAX_GAP && IN_NUMBERS.contains(char)
        };
        let number = rest[first..].char_indices().take_while(is_in_number);
        let (places, digits): (Vec<usize>, String) = number.filter(|(_, char)| char.is_ascii_digit()).unzip();
        if digits.len() >= LONG_NUMBER {
            with(&digits);
            // A telephone number is also found without its country code.
            digits.len().checked_sub(SUBSCRIBER).filter(|code| *code > 0).into_iter().for_each(|code| with(&digits[code..]));
        }
        rest = &rest[first + places.last().map_or(0, |last| last + 1)..];
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

/// A character with one form of the apostrophe, and with the digits of ASCII.
fn plain_char(char: char) -> char {
    match char {
        '’' => '\'',
        '‐' | '‑' | '–' => '-',
        char if char.is_numeric() && !char.is_ascii() => {
            any_ascii_char(char).chars().next().filter(char::is_ascii_digit).unwrap_or(char)
        }
        char => char,
    }
}

/// A word in lower case without accents and special letters.
pub(super) fn folded(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(word);
    }
    let unmarked = word.nfd().filter(|char| !('\u{300}'..='\u{36f}').contains(char)).nfc();
    let is_latin = |char: char| char.script() == Script::Latin;
    let plain = |char| if is_latin(char) { any_ascii_char(char).to_lowercase() } else { String::from(char) };
    Cow::Owned(unmarked.map(plain).collect())
}

fn is_emoji(char: char) -> bool {
    matches!(char, '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether a character belongs to a script that is written without spaces, or to one with inflections but without a stemmer.
pub fn is_of_spaceless_script(char: char) -> bool {
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
pub(super) fn hash(word: &str) -> Word {
    word.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
