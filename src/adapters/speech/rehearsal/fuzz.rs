//! Fuzz target for the built-in voice: any text is spoken, in bounded time, and its word times fit it.

use super::*;
use crate::fuzzing::text;

/// Plans all of a text, and speaks the beginning of it.
pub(crate) fn speak(bytes: &[u8]) {
    let text: Arc<str> = text(bytes).into();
    let voice = Voice::of(text.get(..3).unwrap_or_default(), f64::from(bytes.first().copied().unwrap_or(1)) / 100.0);

    let words: Vec<WordTime> = voice.words(text.clone()).collect();

    assert_eq!(words.is_empty(), text.trim().is_empty());
    let duration = words.last().map_or(Duration::ZERO, |word| word.end);
    assert!(duration <= Duration::from_secs(20) * (1 + text.chars().count() as u32), "{duration:?} for {} bytes", text.len());
    assert!(words.is_sorted_by(|one, next| one.text_end < next.text_end && one.end <= next.start));
    assert!(words.iter().all(|word| word.start <= word.end && text.is_char_boundary(word.text_end)));
    assert!(voice.speak(text).take(10).flatten().all(|sample| sample.unsigned_abs() < 23_198));
}
