//! The built-in synthesis and recognition: no network, no weights, and always the same audio for the same text (docs/design/voice.md ).
//!
//! The voice murmurs: it has the syllables, the melody and the timing of speech, but no intelligible words. The recogniser detects speech, but
//! returns no transcript.

#[cfg(test)]
pub(crate) mod fuzz;
mod murmur;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use unicode_normalization::char::decompose_canonical;

use self::murmur::{HUM, Murmur, Sound, VOWELS};
use crate::domain::names::is_unspaced;
use crate::domain::voice::heard::{WordTime, word_ranges};

/// The sample rate of the voice, in Hz.
pub const SAMPLE_RATE: u32 = 24_000;
/// The number of samples in one frame: 20 ms.
pub const FRAME_SAMPLES: usize = 480;

/// The level of the hum that begins a syllable, relative to a vowel.
const HUM_LEVEL: f64 = 0.35;
/// The lengths of a hum and of a vowel, in milliseconds.
const HUM_MILLIS: f64 = 100.0;
const VOWEL_MILLIS: f64 = 150.0;
/// The maximum number of syllables in a word.
const MOST_SYLLABLES: usize = 20;
/// The factor by which the last vowel before a pause is longer.
const FINAL_LENGTH: f64 = 1.35;

/// The text of a segment of real audio without a transcript. It states the duration of the speech.
pub fn unrecognised(duration: Duration) -> String {
    format!("(speech, {:.1} s)", duration.as_secs_f64())
}

/// The voice parameters of a companion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Voice {
    /// The centre of the melody, in hertz, 95 to 215.
    pitch: f64,
    /// The ratio of the formants to those of a long vocal tract, 1 to 1.2.
    formants: f64,
    /// The pace of the speech; 1 is the usual pace.
    pace: f64,
}

impl Voice {
    /// The voice of the companion with this id, at a speed of 0.5 to 2.
    pub fn of(id: &str, speed: f64) -> Self {
        let mut seed = hash(id);
        let mut between = |least: f64, most: f64| {
            seed = mix(seed);
            least + (most - least) * fraction(seed)
        };
        let height = between(0.0, 1.0);
        Self {
            pitch: 95.0 * (215.0_f64 / 95.0).powf(height),
            formants: 1.0 + 0.15 * height + between(0.0, 0.05),
            pace: between(0.92, 1.08) * if speed.is_finite() { speed.clamp(0.5, 2.0) } else { 1.0 },
        }
    }

    /// The words of a text with their exact times.
    pub fn words(self, text: impl Into<Arc<str>>) -> impl Iterator<Item = WordTime> {
        let mut samples = 0;
        self.plan(text.into()).map(move |word| {
            let start = samples;
            let end = start + word.sounds.iter().map(|sound| u64::from(sound.samples)).sum::<u64>();
            samples = end + u64::from(word.pause);
            WordTime { text_end: word.text_end, start: duration(start), end: duration(end) }
        })
    }

    /// Speaks a text in frames of 20 ms, mono at 24 kHz. The last frame is padded with silence. Apart from the text, the memory use is constant.
    pub fn speak(self, text: impl Into<Arc<str>>) -> impl Iterator<Item = [i16; FRAME_SAMPLES]> {
        let mut murmur = Murmur::new(self);
        let sounds = self.plan(text.into()).flat_map(|word| {
            let pause = Sound { formants: &HUM, samples: word.pause, pitch: 1.0, level: 0.0 };
            word.sounds.into_iter().chain([pause])
        });
        let mut samples = sounds.flat_map(|sound| (0..sound.samples).map(move |_| sound)).map(move |sound| murmur.sample(sound));
        std::iter::from_fn(move || {
            let mut frame = [0; FRAME_SAMPLES];
            frame[0] = samples.next()?;
            frame[1..].iter_mut().zip(&mut samples).for_each(|(at, sample)| *at = sample);
            Some(frame)
        })
    }

    /// The words of a text, one after the other.
    fn plan(self, text: Arc<str>) -> impl Iterator<Item = Word> {
        // The byte offset of the end of the last word, and the number of words since the last pause.
        let (mut at, mut words) = (0, 0_u32);
        std::iter::from_fn(move || {
            let rest = &text[at..];
            let length = word_ranges(rest).next()?.text_end;
            let word = rest[..length].trim_start();
            let is_last = rest[length..].trim_start().is_empty();
            let end = match end_of(word) {
                End::Nothing | End::Clause if is_last => End::Sentence,
                end => end,
            };
            let sounds = self.sounds(word, end, f64::from(words));
            let pause = match end {
                End::Nothing => 0.0,
                End::Clause => 150.0,
                End::Sentence | End::Question => 300.0,
            };
            words = if end == End::Nothing { words.saturating_add(1) } else { 0 };
            at += length;
            Some(Word { text_end: at, sounds, pause: self.samples(pause) })
        })
    }

    /// The sounds of a word. The pitch falls towards the next pause, long words have an accent, and the end of a sentence is audible.
    fn sounds(self, word: &str, end: End, words_before: f64) -> Vec<Sound> {
        let vowels = vowels(word);
        let fall = (1.12 - 0.03 * words_before).max(0.94) * (0.97 + 0.06 * fraction(mix(hash(word))));
        let loudness = (1.0 - 0.02 * words_before).max(0.85);
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
            let hum = Sound { formants: &HUM, samples: self.samples(HUM_MILLIS), pitch, level: level * HUM_LEVEL };
            [hum, Sound { formants: &VOWELS[*vowel], samples: self.samples(VOWEL_MILLIS * length), pitch, level }]
        };
        vowels.iter().enumerate().flat_map(syllable).collect()
    }

    fn samples(self, millis: f64) -> u32 {
        (millis / 1_000.0 / self.pace * f64::from(SAMPLE_RATE)).round() as u32
    }
}

/// A word, and the pause after it.
struct Word {
    /// The byte offset of its end in the text.
    text_end: usize,
    sounds: Vec<Sound>,
    /// In samples.
    pause: u32,
}

/// The unit that ends with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Nothing,
    Clause,
    Sentence,
    Question,
}

/// Finds the unit that ends with a word, from the characters after its last letter.
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

/// The vowels of a word's syllables, by index. Adjacent vowels are one syllable. A digit, a character of a script without spaces, and every second
/// letter of another script are one syllable each.
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

fn duration(samples: u64) -> Duration {
    Duration::from_micros(samples * 1_000_000 / u64::from(SAMPLE_RATE))
}

/// FNV-1a with 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The next number of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
const fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Maps a number to the range from 0 to 1.
const fn fraction(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}
