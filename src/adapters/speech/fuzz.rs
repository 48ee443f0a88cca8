//! Rules for what services for speech return, whatever they send.

use std::time::Duration;

use crate::domain::voice::heard::WordTime;
use crate::ports::audio::SPOKEN_RATE;
use crate::ports::speech_synthesis::Piece;

/// The sentence that is spoken.
pub(super) const SENTENCE: &str = "One two, three: “fünf” 6!";

/// Checks the pieces of [`SENTENCE`]: its words ascend, in the text and in time, up to `latest` or, without it, within the audio.
/// `bytes` is the length of the input.
pub(super) fn check_pieces(pieces: &[Piece], latest: Option<Duration>, bytes: usize) {
    let samples: usize = pieces.iter().map(|piece| if let Piece::Audio(samples) = piece { samples.len() } else { 0 }).sum();
    assert!(2 * samples <= bytes, "{samples} samples of {bytes} bytes");
    let latest = latest.unwrap_or_else(|| Duration::from_secs_f64(samples as f64 / f64::from(SPOKEN_RATE)));
    let words = pieces.iter().flat_map(|piece| if let Piece::Words(words) = piece { words.as_slice() } else { &[] });
    let words: Vec<&WordTime> = words.collect();
    assert!(words.is_sorted_by(|one, next| one.text_end < next.text_end && one.end <= next.start), "{words:?}");
    for WordTime { text_end, start, end } in words {
        assert!(
            SENTENCE.is_char_boundary(*text_end) && start <= end && *end <= latest,
            "{text_end} {start:?} {end:?} of {latest:?}"
        );
    }
}
