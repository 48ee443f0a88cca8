//! Writes what people wrote so that it cannot be taken for anything else.

use std::borrow::Cow;
use std::fmt::Write;

use super::marks::begins_mark;
use crate::domain::text::{is_hidden, is_invisible, is_joining, one_line};

/// At most this many characters of a name are shown.
const NAME_AT_MOST: usize = 64;

/// Appends the inside of a JSON string.
///
/// Beyond what JSON asks for, everything that [hides](is_hidden) is escaped, and the first character of everything that could be one of the
/// prompt's delimiters or a [mark](begins_mark) of a model's own (`</messages>`, `<|im_start|>`, `[INST]`): no text holds a line break, a
/// delimiter or a mark.
pub(super) fn escape_into(line: &mut String, text: &str) {
    #[cfg(test)]
    crate::domain::conversation::poison::is_worded(text);
    let mut rest = text.chars();
    let mut before = None;
    while let Some(c) = rest.next() {
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

/// The weight of a character in a JSON string, at most: see `weight`.
pub(super) fn escaped_weight(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if matches!(c, '<' | '[' | ']') || c.is_control() || is_invisible(c) || is_joining(c) => 6 * c.len_utf16(),
        c => char_weight(c),
    }
}

/// The size of a text in quarters of a token: an ASCII character is one, any other two.
pub(super) fn weight(text: &str) -> usize {
    text.chars().map(char_weight).sum()
}

/// The size of a character in quarters of a token.
pub(super) const fn char_weight(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// A text of at most this weight: what is too much is taken from its middle, and the place is marked. Empty if not even a mark fits.
pub(super) fn cut_middle(text: &str, most: usize, weigh: impl Fn(char) -> usize) -> Cow<'_, str> {
    let total: usize = text.chars().map(&weigh).sum();
    if total <= most {
        return Cow::Borrowed(text);
    }
    let mark = |left_out: usize| format!(" [{left_out} characters left out] ");
    let Some(room) = most.checked_sub(weight(&mark(text.len()))) else { return Cow::Borrowed("") };
    let head = reach(text.chars(), room.div_ceil(2), &weigh);
    let tail = reach(text.chars().rev(), room / 2, &weigh);
    let (start, end) = (&text[..head], &text[text.len() - tail..]);
    let left_out = text[head..text.len() - tail].chars().count();
    Cow::Owned([start, &mark(left_out), end].concat())
}

/// A name in one line: without invisible characters, at most 64 characters long, and never empty.
pub(super) fn plain_name(name: &str) -> String {
    let plain = one_line(name, NAME_AT_MOST);
    if plain.is_empty() { "somebody".into() } else { plain }
}

/// A name as it may stand outside of data: a plain one, in which no [mark](begins_mark) of a model's own begins.
pub(super) fn unmarked_name(name: &str) -> String {
    let mut unmarked = plain_name(name);
    // Without the first character of a mark, the one before it may begin another.
    while let Some((at, _)) = unmarked.char_indices().find(|(at, c)| begins_mark(*c, &unmarked[at + c.len_utf8()..])) {
        unmarked.remove(at);
    }
    if unmarked.trim().is_empty() { "somebody".into() } else { unmarked }
}

/// How many bytes of characters weigh at most this.
fn reach(chars: impl Iterator<Item = char>, most: usize, weigh: impl Fn(char) -> usize) -> usize {
    let mut sum = 0;
    chars
        .take_while(|c| {
            sum += weigh(*c);
            sum <= most
        })
        .map(char::len_utf8)
        .sum()
}
