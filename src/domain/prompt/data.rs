//! Escapes text that people wrote, so that it cannot be mistaken for any other part of a prompt.

use std::borrow::Cow;
use std::fmt::Write;

use crate::marks::{begins_mark, begins_separator};
use crate::text::{is_hidden, is_invisible, is_joining, one_line, seen};

/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Appends the content of a JSON string.
///
/// Escapes more than JSON requires: every [hidden](is_hidden) character, and the first character of each possible delimiter of the prompt or
/// [mark](begins_mark) of a model (`</messages>`, `<|im_start|>`, `[INST]`). So the result contains no line break, delimiter or mark.
pub(super) fn escape_into(line: &mut String, text: &str) {
    #[cfg(any(test, feature = "samples"))]
    crate::conversation::poison::check_prompt_text(text);
    let mut rest = text.chars();
    let mut before = None;
    loop {
        // Most characters need no attention.
        let unread = rest.as_str();
        let plain = unread.bytes().position(|byte| !is_plain(byte)).unwrap_or(unread.len());
        if let Some(last) = plain.checked_sub(1) {
            line.push_str(&unread[..plain]);
            (before, rest) = (Some(char::from(unread.as_bytes()[last])), unread[plain..].chars());
        }
        let Some(c) = rest.next() else { break };
        let is_hidden = is_hidden(before, c, rest.clone().next());
        before = Some(c);
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if c.is_control() || is_hidden || begins_mark(c, rest.as_str()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String never fails.
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
            c => line.push(c),
        }
    }
}

/// Whether a byte is a visible ASCII character that is never escaped.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'[' | b']')
}

/// The maximum weight of a character in a JSON string. See `weight`.
pub(super) fn escaped_weight(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if matches!(c, '<' | '[' | ']') || c.is_control() || is_invisible(c) || is_joining(c) => 6 * c.len_utf16(),
        c => char_weight(c),
    }
}

/// The weight of a text: its size in quarters of a token. An ASCII character weighs one, any other character two.
pub(super) fn weight(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_weight).sum() }
}

/// The weight of a character, in quarters of a token.
pub(super) const fn char_weight(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// Cuts the middle out of a text so that it has at most this weight, and inserts a mark. Empty if not even the mark fits.
pub(super) fn cut_middle(text: &str, most: usize, weigh: impl Fn(char) -> usize) -> Cow<'_, str> {
    // No character weighs more than six for each of its bytes.
    if text.len() * 6 <= most || text.chars().map(&weigh).sum::<usize>() <= most {
        return Cow::Borrowed(text);
    }
    let mark = |left_out: usize| format!(" [{left_out} characters left out] ");
    let Some(room) = most.checked_sub(weight(&mark(text.len()))) else { return Cow::Borrowed("") };
    let head = bytes_within(text.chars(), room.div_ceil(2), &weigh);
    let tail = bytes_within(text.chars().rev(), room / 2, &weigh);
    let (start, end) = (&text[..head], &text[text.len() - tail..]);
    let left_out = text[head..text.len() - tail].chars().count();
    Cow::Owned([start, &mark(left_out), end].concat())
}

/// The beginning of a text, with at most this weight. It ends with a line, a sentence or a word where that loses less than half. A mark gives the
/// number of missing characters. Empty if not even the mark fits.
pub(super) fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    if weight(text) <= most {
        return Cow::Borrowed(text);
    }
    let mark = |left_out: usize| format!("\n[{left_out} characters left out]");
    let Some(room) = most.checked_sub(weight(&mark(text.len()))) else { return Cow::Borrowed("") };
    let head = &text[..bytes_within(text.chars(), room, char_weight)];
    let ends = [head.rfind('\n'), head.rfind(". ").map(|at| at + 1), head.rfind(char::is_whitespace)];
    let end = ends.into_iter().flatten().find(|end| *end >= head.len() / 2).unwrap_or(head.len());
    let kept = head[..end].trim_end();
    Cow::Owned([kept, &mark(text[kept.len()..].chars().count())].concat())
}

/// A name in one line, without invisible characters. It has at most 64 characters and is never empty.
pub(super) fn plain_name(name: &str) -> String {
    let plain = one_line(name, MAX_NAME_CHARS);
    if plain.is_empty() { "somebody".into() } else { plain }
}

/// A plain name for use outside data. It contains no [mark](begins_mark) of a model.
pub(super) fn unmarked_name(name: &str) -> String {
    let mut unmarked = plain_name(name);
    // After removing the first character of a mark, the character before it may begin another one.
    while let Some((at, _)) = unmarked.char_indices().find(|(at, c)| begins_mark(*c, &unmarked[at + c.len_utf8()..])) {
        unmarked.remove(at);
    }
    if unmarked.trim().is_empty() { "somebody".into() } else { unmarked }
}

/// A companion's statement as its own turn: without hidden characters, and with a space in each [mark](begins_mark) of a model to break it.
pub(super) fn plain_words(text: &str) -> String {
    #[cfg(any(test, feature = "samples"))]
    crate::conversation::poison::check_prompt_text(text);
    let visible: String = seen(text).filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let mut words = String::with_capacity(visible.len());
    for (at, c) in visible.char_indices() {
        words.push(c);
        if begins_mark(c, &visible[at + c.len_utf8()..]) {
            words.push(' ');
        }
    }
    if words.trim().is_empty() { "…".into() } else { words }
}

/// A description of a companion, which may be written by a stranger, for example in an imported card. Each [separator](begins_separator) of turns or
/// parts of a prompt in it begins with a round bracket instead.
pub(super) fn unseparated(text: &str) -> Cow<'_, str> {
    let begins = |(at, c): (usize, char)| begins_separator(c, &text[at + c.len_utf8()..]);
    let may_begin = |byte: u8| !byte.is_ascii() || matches!(byte, b'<' | b'&' | b'[' | b']');
    if !text.bytes().any(may_begin) || !text.char_indices().any(begins) {
        return Cow::Borrowed(text);
    }
    text.char_indices().map(|(at, c)| if begins((at, c)) { '(' } else { c }).collect()
}

/// The number of bytes of the longest prefix with at most the weight `most`.
fn bytes_within(chars: impl Iterator<Item = char>, most: usize, weigh: impl Fn(char) -> usize) -> usize {
    let mut sum = 0;
    chars
        .take_while(|c| {
            sum += weigh(*c);
            sum <= most
        })
        .map(char::len_utf8)
        .sum()
}
