//! What all targets need: reading bytes as texts, and rules that hold in many places.

use std::borrow::Cow;

/// Stands between the texts of one input.
const SEPARATOR: char = '\u{1f}';

/// Bytes as the text that a lenient reader makes of them.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The texts of an input, never none.
pub(crate) fn parts(text: &str) -> Vec<&str> {
    text.split(SEPARATOR).collect()
}

/// Valid inputs that are texts.
pub(crate) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Whether a text stands in one line and steers no terminal.
pub(crate) fn is_plain_line(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// Whether a text has at most so many characters.
pub(crate) fn is_bounded(text: &str, most: usize) -> bool {
    text.chars().nth(most).is_none()
}
