//! The built-in voice and ears: no network, no weights, and always the same audio for the same text (docs/design/voice.md ).
//!
//! The voice murmurs: it has the syllables, the melody and the timing of speech, and no words that can be understood. The ears hear that somebody speaks,
//! and not what.

#[cfg(test)]
pub(crate) mod fuzz;
mod plan;
mod synthesiser;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use self::plan::{Plan, PlannedWord};
use self::synthesiser::Synthesiser;
use crate::domain::voice::heard::WordTime;

/// The samples in a second of what the voice says.
pub const SAMPLE_RATE: u32 = 24_000;
/// The samples of one frame: 20 ms.
pub const FRAME_SAMPLES: usize = 480;

/// The words of speech that nobody recognised, by its duration: what a segment of real audio reads.
pub fn unrecognised(duration: Duration) -> String {
    format!("(speech, {:.1} s)", duration.as_secs_f64())
}

/// How a companion sounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Voice {
    /// The middle of its melody, in hertz, 95 to 215.
    pitch: f64,
    /// How much higher its formants are than those of a long vocal tract, 1 to 1.2.
    formants: f64,
    /// How fast it speaks, 1 is usual.
    pace: f64,
}

impl Voice {
    /// The voice of the companion with this id, at a speed of 0.5 to 2.
    pub fn of(id: &str, speed: f64) -> Self {
        let mut seed = hash(id);
        let mut between = |least: f64, most: f64| {
            seed = mix(seed);
            least + (most - least) * (seed >> 11) as f64 / (1_u64 << 53) as f64
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
        Plan::new(text.into(), self).map(move |word| {
            let start = samples;
            let end = start + word.voiced();
            samples = end + u64::from(word.pause);
            WordTime { text_end: word.text_end, start: duration(start), end: duration(end) }
        })
    }

    /// How long the audio of a text is, to its last frame. Zero if the text is blank.
    pub fn duration(self, text: impl Into<Arc<str>>) -> Duration {
        let samples: u64 = Plan::new(text.into(), self).map(|word| word.voiced() + u64::from(word.pause)).sum();
        duration(samples.next_multiple_of(FRAME_SAMPLES as u64))
    }

    /// Speaks a text, frame by frame. What is kept beside the text does not grow with it.
    pub fn speak(self, text: impl Into<Arc<str>>) -> Spoken {
        Spoken { plan: Plan::new(text.into(), self), word: None, phone: 0, left: 0, synthesiser: Synthesiser::new(self) }
    }
}

/// The audio of a text: frames of 20 ms, mono at 24 kHz. The last one ends in silence.
pub struct Spoken {
    plan: Plan,
    word: Option<PlannedWord>,
    /// The number of the phone of the word. After the last one comes the pause.
    phone: usize,
    /// The samples that are left of the phone or the pause.
    left: u32,
    synthesiser: Synthesiser,
}

impl Iterator for Spoken {
    type Item = [i16; FRAME_SAMPLES];

    fn next(&mut self) -> Option<Self::Item> {
        let is_over = self.left == 0 && !self.advance();
        if is_over {
            return None;
        }
        let mut frame = [0; FRAME_SAMPLES];
        for sample in &mut frame {
            if self.left == 0 && !self.advance() {
                // Silence to the end of the frame.
                break;
            }
            self.left -= 1;
            let phone = self.word.as_ref().and_then(|word| word.phones.get(self.phone));
            *sample = self.synthesiser.sample(phone);
        }
        Some(frame)
    }
}

impl Spoken {
    /// Goes on to the next phone or pause that has samples. False: there is none.
    fn advance(&mut self) -> bool {
        loop {
            match &self.word {
                Some(word) if self.phone < word.phones.len() => {
                    self.phone += 1;
                    self.left = word.phones.get(self.phone).map_or(word.pause, |phone| phone.samples);
                }
                _ => {
                    let Some(word) = self.plan.next() else { return false };
                    (self.phone, self.left) = (0, word.phones.first().map_or(word.pause, |phone| phone.samples));
                    self.word = Some(word);
                }
            }
            if self.left > 0 {
                return true;
            }
        }
    }
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
