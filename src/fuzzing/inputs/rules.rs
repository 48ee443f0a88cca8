//! Helpers for all targets: they read bytes as texts, and check common rules.

use std::borrow::Cow;

/// Separates the texts of one input.
const SEPARATOR: char = '\u{1f}';

/// Decodes bytes as text and replaces invalid UTF-8.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The texts of an input. There is always at least one.
pub fn parts(text: &str) -> Vec<&str> {
    text.split(SEPARATOR).collect()
}

/// Turns texts into valid inputs.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Whether a text is one line without control characters.
pub fn is_plain_line(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// Whether a text has at most `most` characters.
pub fn is_bounded(text: &str, most: usize) -> bool {
    text.chars().nth(most).is_none()
}
