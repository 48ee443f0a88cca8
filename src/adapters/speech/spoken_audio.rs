//! Collects the audio of a sentence and the times of its words, as a service returns them in pieces: signed 16 bits, little-endian, mono.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::word_times::WordTimes;
use crate::adapters::endpoint::failure::Broken;
use crate::ports::audio::SPOKEN_RATE;
use crate::ports::speech_synthesis::{Piece, most_samples};

/// The maximum size of one character's time in a message, with separators: an escaped surrogate pair, and two numbers.
const MAX_TIME_BYTES: usize = 64;

pub(super) struct SpokenAudio {
    words: WordTimes,
    /// The first byte of a sample whose second byte is in the next piece.
    half: Option<u8>,
    samples: usize,
    most_samples: usize,
    /// The number of characters of the text, and of the characters without a time so far.
    chars: usize,
    untimed: usize,
}

/// The error of a synthesis that ended without a sample.
pub(super) fn no_audio() -> Broken {
    Broken::Audio("it sent no audio; does it have this voice?".to_owned())
}

impl SpokenAudio {
    /// No audio yet, for a text that is spoken at this speed.
    pub fn of(text: &str, speed: f64) -> Self {
        // The text is sent with a space before and after it.
        let chars = text.chars().count() + 2;
        let most_samples = most_samples(text, speed);
        Self { words: WordTimes::new(text), half: None, samples: 0, most_samples, chars, untimed: chars }
    }

    /// Whether times of this size in a message can belong to this text. Larger ones are not parsed.
    pub const fn may_be_times(&self, bytes: usize) -> bool {
        bytes <= MAX_TIME_BYTES * (self.chars + 2)
    }

    /// The duration of the audio so far.
    pub fn length(&self) -> Duration {
        Duration::from_micros((self.samples as u64).saturating_mul(1_000_000) / u64::from(SPOKEN_RATE))
    }

    /// Checks the completed audio.
    ///
    /// # Errors
    /// Returns an error if there is no audio.
    pub fn check_whole(&self) -> Result<(), Broken> {
        if self.samples == 0 { Err(no_audio()) } else { Ok(()) }
    }

    /// Decodes the next audio from base64.
    ///
    /// # Errors
    /// Returns an error if the audio cannot be decoded, or exceeds the limit for this text.
    pub fn add_base64(&mut self, audio: &str) -> Result<Vec<i16>, Broken> {
        let bytes = STANDARD.decode(audio).map_err(|error| Broken::Unreadable(format!("audio in base64: {error}")))?;
        let mut samples = Vec::with_capacity(bytes.len() / 2 + 1);
        for byte in bytes {
            match self.half.take() {
                Some(low) => samples.push(i16::from_le_bytes([low, byte])),
                None => self.half = Some(byte),
            }
        }
        self.samples += samples.len();
        if self.samples > self.most_samples {
            return Err(Broken::TooLong);
        }
        Ok(samples)
    }

    /// Adds characters that were spoken from `start` to `end`. Times are in seconds from the beginning of the audio, and limited to `within`.
    /// Characters beyond the length of the text are ignored.
    pub fn add_times(&mut self, spoken: &str, start: f64, end: f64, within: Duration) {
        let Some(untimed) = self.untimed.checked_sub(spoken.chars().count().max(1)) else { return };
        self.untimed = untimed;
        let time = |secs: f64| Duration::try_from_secs_f64(secs.max(0.0)).unwrap_or(within).min(within);
        self.words.add(spoken, time(start), time(end));
    }

    /// The samples and the new word times, as pieces.
    pub fn pieces(&mut self, samples: Vec<i16>) -> Vec<Piece> {
        let words = Some(self.words.take()).filter(|words| !words.is_empty()).map(Piece::Words);
        let audio = (!samples.is_empty()).then_some(Piece::Audio(samples));
        words.into_iter().chain(audio).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_may_lie_in_two_pieces() {
        let mut audio = SpokenAudio::of("One", 1.0);

        let added =
            [&[1, 0, 2][..], &[], &[0], &[255, 255, 0], &[128]].map(|bytes| audio.add_base64(&STANDARD.encode(bytes)).unwrap());

        assert_eq!(added.concat(), [1, 2, -1, i16::MIN]);
        assert_eq!(audio.length(), Duration::from_micros(4_000_000 / 24_000));
    }

    #[test]
    fn more_audio_than_the_text_can_have_is_refused() {
        let (mut audio, second) = (SpokenAudio::of("Eight ch", 1.0), STANDARD.encode(vec![1; 48_000]));

        assert!((0..7).all(|_| audio.add_base64(&second).is_ok()));
        assert_eq!(audio.add_base64(&second), Err(Broken::TooLong));
    }

    #[test]
    fn no_more_times_are_taken_than_the_text_has_characters() {
        let mut audio = SpokenAudio::of("a b c", 1.0);
        for _ in 0..100 {
            audio.add_times(".", 0.0, 0.1, Duration::from_secs(1));
        }

        audio.add_times("a", 0.0, 0.1, Duration::from_secs(1));

        assert_eq!(audio.pieces(Vec::new()), []);
        assert!(audio.may_be_times(200) && !audio.may_be_times(1_000));
    }
}
