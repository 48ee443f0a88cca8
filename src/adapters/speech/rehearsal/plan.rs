//! Plans how a text is spoken: the sounds of each word with their lengths and their melody, and the pauses.

use std::sync::Arc;

use super::phones::{CONSONANTS, Shape, Sound, VOWELS, sound};
use super::{SAMPLE_RATE, Voice, hash, mix};
use crate::domain::names::is_unspaced;
use crate::domain::voice::heard::word_ranges;

/// A word has no more sounds. The rest of it is silent.
const MOST_PHONES: usize = 40;
/// The pause after a sentence, in milliseconds.
const SENTENCE_PAUSE: f64 = 300.0;
/// The pause within a sentence, at a comma.
const CLAUSE_PAUSE: f64 = 150.0;
/// The last vowel before a pause is this much longer.
const FINAL_LENGTH: f64 = 1.35;

/// One sound of a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phone {
    pub(super) shape: &'static Shape,
    pub(super) samples: u32,
    /// The pitch, as a multiple of the voice's.
    pub(super) pitch: f64,
    /// How loud it is, from 0 to 1.
    pub(super) stress: f64,
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
}

impl Iterator for Plan {
    type Item = PlannedWord;

    fn next(&mut self) -> Option<PlannedWord> {
        let rest = &self.text[self.at..];
        let length = word_ranges(rest).next()?.text_end;
        let word = rest[..length].trim_start();
        let end = if rest[length..].trim_start().is_empty() { end_of(word).max_sentence() } else { end_of(word) };
        let mut phones = Vec::new();
        for (shape, share) in shapes(word) {
            let samples = self.samples(shape.millis * share);
            phones.push(Phone { shape, samples, pitch: 1.0, stress: 1.0 });
        }
        self.intone(&mut phones, word, end);
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

impl Plan {
    /// Gives a word its melody: it falls towards the next pause, long words have an accent, and the end of a sentence is heard.
    fn intone(&self, phones: &mut [Phone], word: &str, end: End) {
        let fraction = (mix(hash(word)) >> 11) as f64 / (1_u64 << 53) as f64;
        let words = f64::from(self.words);
        let fall = (1.12 - 0.03 * words).max(0.94);
        let level = (1.0 - 0.02 * words).max(0.85);
        let is_vowel = |phone: &Phone| is_vowel(phone.shape);
        let vowels = phones.iter().filter(|phone| is_vowel(phone)).count();
        let has_accent = vowels > 1 || phones.len() > 3;
        let mut before = 0;
        for phone in phones.iter_mut() {
            let is_accent = has_accent && before == 0;
            phone.pitch = fall * (0.97 + 0.06 * fraction) * if is_accent { 1.09 } else { 1.0 };
            phone.stress = level * if is_accent { 1.0 } else { 0.8 };
            before += usize::from(is_vowel(phone));
        }
        let tone = match end {
            End::Nothing => return,
            End::Clause => 1.06,
            End::Sentence => 0.8,
            End::Question => 1.3,
        };
        let last = phones.iter().rposition(is_vowel).unwrap_or(0);
        for phone in phones.iter_mut().skip(last) {
            phone.pitch *= tone;
        }
        if let Some(phone) = phones.get_mut(last) {
            phone.samples = (f64::from(phone.samples) * FINAL_LENGTH).round() as u32;
        }
    }
}

impl End {
    /// The end of the text is the end of a sentence.
    fn max_sentence(self) -> Self {
        if self == Self::Question { self } else { Self::Sentence }
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

fn is_vowel(shape: &Shape) -> bool {
    VOWELS.contains(shape)
}

/// The sounds of a word, each with the share of its usual length.
fn shapes(word: &str) -> Vec<(&'static Shape, f64)> {
    let mut shapes: Vec<(&'static Shape, f64)> = Vec::new();
    let mut letters = 0;
    for c in word.chars().filter(|c| c.is_alphanumeric()) {
        if shapes.len() >= MOST_PHONES {
            break;
        }
        let sound = match sound(c, is_unspaced(c)) {
            Some(Sound::Letter(number)) => {
                letters += 1;
                if letters % 2 == 0 { Sound::Vowel(number % VOWELS.len()) } else { Sound::Consonant(number % CONSONANTS.len()) }
            }
            Some(sound) => sound,
            None => continue,
        };
        let consonants = shapes.iter().rev().take_while(|(shape, _)| !is_vowel(shape)).count();
        match sound {
            Sound::Vowel(number) => match shapes.last_mut() {
                // A second vowel is the end of the first one; more are not heard.
                Some((last, share)) if is_vowel(last) => {
                    if *share == 1.0 && **last != VOWELS[number] {
                        *share = 0.65;
                        shapes.push((&VOWELS[number], 0.6));
                    }
                }
                _ => shapes.push((&VOWELS[number], 1.0)),
            },
            // Of the consonants between two vowels, two are heard; a double one is one.
            Sound::Consonant(number) => {
                let is_double = shapes.last().is_some_and(|(last, _)| **last == CONSONANTS[number]);
                if consonants < 2 && !is_double {
                    shapes.push((&CONSONANTS[number], 1.0));
                }
            }
            Sound::Syllable(consonant, vowel) => shapes.extend([(&CONSONANTS[consonant], 1.0), (&VOWELS[vowel], 1.0)]),
            Sound::Letter(_) => {}
        }
    }
    // "brr" is hummed.
    if !shapes.is_empty() && !shapes.iter().any(|(shape, _)| is_vowel(shape)) {
        shapes.push((&VOWELS[1], 0.8));
    }
    shapes
}
