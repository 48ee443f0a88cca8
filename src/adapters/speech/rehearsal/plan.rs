//! Plans how a text is spoken: the syllables of each word with their lengths and their melody, and the pauses.

use std::sync::Arc;

use unicode_normalization::char::decompose_canonical;

use super::{SAMPLE_RATE, Voice, hash, mix};
use crate::domain::names::is_unspaced;
use crate::domain::voice::heard::word_ranges;

/// The three lowest formants of a, e, i, o and u, in hertz (Peterson and Barney 1952, men, a little towards the middle).
static VOWELS: [[f64; 3]; 5] = [
    [700.0, 1_150.0, 2_440.0],
    [520.0, 1_750.0, 2_450.0],
    [330.0, 2_050.0, 2_700.0],
    [520.0, 920.0, 2_400.0],
    [350.0, 980.0, 2_300.0],
];
/// Those of the hum that begins a syllable.
static HUM: [f64; 3] = [300.0, 1_300.0, 2_300.0];
/// The level of the hum. That of a vowel is 1.
const HUM_LEVEL: f64 = 0.35;
/// The lengths of a hum and of a vowel, in milliseconds.
const HUM_MILLIS: f64 = 100.0;
const VOWEL_MILLIS: f64 = 150.0;
/// A word has no more syllables.
const MOST_SYLLABLES: usize = 20;
/// The pause after a sentence, in milliseconds.
const SENTENCE_PAUSE: f64 = 300.0;
/// The pause within a sentence, at a comma.
const CLAUSE_PAUSE: f64 = 150.0;
/// The last vowel before a pause is this much longer.
const FINAL_LENGTH: f64 = 1.35;

/// One sound of a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phone {
    /// In hertz, for a long vocal tract.
    pub(super) formants: &'static [f64; 3],
    pub(super) samples: u32,
    /// The pitch, as a multiple of the voice's.
    pub(super) pitch: f64,
    /// How loud it is, from 0 to 1.
    pub(super) level: f64,
}

/// A word, and the pause after it.
#[derive(Clone, Debug)]
pub(super) struct PlannedWord {
    /// Its end in the text, in bytes.
    pub(super) text_end: usize,
    pub(super) phones: Vec<Phone>,
    /// In samples.
    pub(super) pause: u32,
}

impl PlannedWord {
    /// Its length without the pause, in samples.
    pub(super) fn voiced(&self) -> u64 {
        self.phones.iter().map(|phone| u64::from(phone.samples)).sum()
    }
}

/// What ends with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Nothing,
    Clause,
    Sentence,
    Question,
}

/// The words of a text, one after the other.
pub(super) struct Plan {
    text: Arc<str>,
    voice: Voice,
    /// The end of the last word in the text, in bytes.
    at: usize,
    /// The number of words since the last pause.
    words: u32,
}

impl Plan {
    pub(super) const fn new(text: Arc<str>, voice: Voice) -> Self {
        Self { text, voice, at: 0, words: 0 }
    }

    fn samples(&self, millis: f64) -> u32 {
        (millis / 1_000.0 / self.voice.pace * f64::from(SAMPLE_RATE)).round() as u32
    }

    /// The sounds of a word. The melody falls towards the next pause, long words have an accent, and the end of a sentence is heard.
    fn phones(&self, word: &str, end: End) -> Vec<Phone> {
        let vowels = vowels(word);
        let fraction = (mix(hash(word)) >> 11) as f64 / (1_u64 << 53) as f64;
        let words = f64::from(self.words);
        let fall = (1.12 - 0.03 * words).max(0.94) * (0.97 + 0.06 * fraction);
        let loudness = (1.0 - 0.02 * words).max(0.85);
        let syllable = |(number, vowel): (usize, &usize)| {
            let (accent, stress) = if number == 0 && vowels.len() > 1 { (1.09, 1.0) } else { (1.0, 0.8) };
            let (tone, length) = match end {
                _ if number + 1 < vowels.len() => (1.0, 1.0),
                End::Nothing => (1.0, 1.0),
                End::Clause => (1.06, FINAL_LENGTH),
                End::Sentence => (0.8, FINAL_LENGTH),
                End::Question => (1.3, FINAL_LENGTH),
            };
            let (pitch, level) = (fall * accent * tone, loudness * stress);
            let hum = Phone { formants: &HUM, samples: self.samples(HUM_MILLIS), pitch, level: level * HUM_LEVEL };
            let samples = self.samples(VOWEL_MILLIS * length);
            [hum, Phone { formants: &VOWELS[*vowel], samples, pitch, level }]
        };
        vowels.iter().enumerate().flat_map(syllable).collect()
    }
}

impl Iterator for Plan {
    type Item = PlannedWord;

    fn next(&mut self) -> Option<PlannedWord> {
        let rest = &self.text[self.at..];
        let length = word_ranges(rest).next()?.text_end;
        let word = rest[..length].trim_start();
        let is_last = rest[length..].trim_start().is_empty();
        let end = match end_of(word) {
            End::Nothing | End::Clause if is_last => End::Sentence,
            end => end,
        };
        let phones = self.phones(word, end);
        let pause = match end {
            End::Nothing => 0.0,
            End::Clause => CLAUSE_PAUSE,
            End::Sentence | End::Question => SENTENCE_PAUSE,
        };
        self.words = if end == End::Nothing { self.words.saturating_add(1) } else { 0 };
        self.at += length;
        Some(PlannedWord { text_end: self.at, phones, pause: self.samples(pause) })
    }
}

/// What ends with a word, by the characters after its last letter.
fn end_of(word: &str) -> End {
    let marks = || word.chars().rev().take(8).take_while(|c| !c.is_alphanumeric());
    if marks().any(|c| "?？؟".contains(c)) {
        End::Question
    } else if marks().any(|c| ".!…。！।".contains(c)) {
        End::Sentence
    } else if marks().any(|c| ",;:、，；：،—–".contains(c)) {
        End::Clause
    } else {
        End::Nothing
    }
}

/// The vowels of a word's syllables, by their numbers. Vowels after each other are one syllable, and so is a digit, a character of a script without
/// spaces, and every second letter of another script.
fn vowels(word: &str) -> Vec<usize> {
    let mut vowels = Vec::new();
    let (mut is_vowel, mut letters) = (false, 0);
    for c in word.chars().filter(|c| c.is_alphanumeric()) {
        let mut base = None;
        decompose_canonical(c.to_lowercase().next().unwrap_or(c), |part| base = base.or(Some(part)));
        let base = base.unwrap_or(c);
        let vowel = "aeiou".find(base).or((base == 'y').then_some(2));
        let mut other = || match c {
            '\u{ac00}'..='\u{d7a3}' => true,
            _ if c.is_numeric() || is_unspaced(c) => true,
            _ if base.is_ascii_alphabetic() => false,
            _ => {
                letters += 1;
                letters % 2 == 0
            }
        };
        match vowel {
            Some(vowel) if !is_vowel => vowels.push(vowel),
            None if other() => vowels.push(c as usize % VOWELS.len()),
            _ => {}
        }
        is_vowel = vowel.is_some();
        if vowels.len() == MOST_SYLLABLES {
            break;
        }
    }
    // "brr" is hummed.
    if vowels.is_empty() && word.contains(char::is_alphanumeric) {
        vowels.push(1);
    }
    vowels
}
