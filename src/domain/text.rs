//! Decides which characters of a text are visible, and shortens and escapes texts for error messages, logs and terminals.

use std::borrow::Cow;

/// The beginning of a text, with at most `most_chars` characters.
pub fn first(text: &str, most_chars: usize) -> &str {
    text.char_indices().nth(most_chars).map_or(text, |(end, _)| &text[..end])
}

/// The end of a text, with at most `most_chars` characters.
pub fn last(text: &str, most_chars: usize) -> &str {
    let begin = most_chars.checked_sub(1).map_or(Some(text.len()), |before| Some(text.char_indices().nth_back(before)?.0));
    begin.map_or(text, |begin| &text[begin..])
}

/// The beginning of a text, with at most `most_bytes` bytes. Does not split characters.
pub fn first_bytes(text: &str, most_bytes: usize) -> &str {
    let end = (0..=most_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// The end of a text, with at most `most_bytes` bytes. Does not split characters.
pub fn last_bytes(text: &str, most_bytes: usize) -> &str {
    let begin = (text.len().saturating_sub(most_bytes)..text.len()).find(|begin| text.is_char_boundary(*begin));
    &text[begin.unwrap_or(text.len())..]
}

/// A text with at most `most_chars` characters, plus `…` if it had more.
pub fn shortened(text: &str, most_chars: usize) -> Cow<'_, str> {
    shortened_with(text, most_chars, "…")
}

/// Like [`shortened`], with another mark.
pub fn shortened_with<'a>(text: &'a str, most_chars: usize, mark: &str) -> Cow<'a, str> {
    match first(text, most_chars) {
        begin if begin.len() < text.len() => Cow::Owned([begin, mark].concat()),
        _ => Cow::Borrowed(text),
    }
}

/// An untrusted text in one line. Replaces each control and each invisible character with a space.
pub fn spaced(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c }).collect()
}

/// A text with control and invisible characters escaped, so that it cannot control a terminal, and all of it is visible. Characters for which
/// `is_kept` returns true are not escaped.
pub fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() || is_invisible(c)) && !is_kept(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A text in one line, without invisible characters, cut to `most` characters plus `…`. Empty if no visible text is left.
pub fn one_line(text: &str, most: usize) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let visible: Cow<'_, str> = match is_plain {
        true => text.into(),
        false => seen(text).map(|c| if c.is_control() { ' ' } else { c }).collect(),
    };
    let words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&words, most).into_owned()
}

/// The visible characters of a text, with the joiners and variation selectors that they need.
pub fn seen(text: &str) -> impl Iterator<Item = char> {
    with_visibility(text).filter_map(|(c, is_hidden)| (!is_hidden).then_some(c))
}

/// The first hidden character of a text. None if there is none. Texts that differ only in hidden characters look the same.
pub fn first_hidden(text: &str) -> Option<char> {
    with_visibility(text).find_map(|(c, is_hidden)| is_hidden.then_some(c))
}

/// The characters of a text, each with whether it is [hidden](is_hidden).
fn with_visibility(text: &str) -> impl Iterator<Item = (char, bool)> {
    let (mut rest, mut before) = (text.chars(), None);
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let is_hidden = is_hidden(before, c, rest.clone().next());
        before = Some(c);
        Some((c, is_hidden))
    })
}

/// Whether a text has no visible character.
pub fn is_blank(text: &str) -> bool {
    // U+2800 is rendered as a blank.
    seen(text).all(|c| c.is_whitespace() || c.is_control() || is_joining(c) || c == '\u{2800}')
}

/// A text with HTML's special characters escaped.
pub fn in_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char => escaped.push(char),
        }
    }
    escaped
}

/// Whether a character is hidden between its two neighbours: it is [invisible](is_invisible), or it is a joiner or a variation selector that no
/// script and no emoji needs there.
///
/// A run of such characters, or one after each letter, can hide a whole text. A single one is needed after a character beyond ASCII (joiners also
/// before one). Emoji also need U+FE0F U+200D between their parts, and U+FE0F U+20E3 after a digit, `#` or `*` (Unicode Technical Standard 51).
pub(super) fn is_hidden(before: Option<char>, c: char, after: Option<char>) -> bool {
    if !is_joining(c) {
        return is_invisible(c);
    }
    let needs = |beside: Option<char>| beside.is_some_and(|beside| !beside.is_ascii() && is_seen(beside));
    let is_run = |beside: Option<char>| beside.is_some_and(|beside| is_joining(beside) || is_invisible(beside));
    let is_needed = match (before, c, after) {
        (Some('\u{fe0f}'), '\u{200d}', after) => needs(after),
        (before, '\u{fe0f}', Some('\u{200d}')) => needs(before),
        (before, _, after) if is_run(before) || is_run(after) => false,
        (Some('0'..='9' | '#' | '*'), '\u{fe0f}', Some('\u{20e3}')) => true,
        (before, '\u{200c}' | '\u{200d}', after) => needs(before) || needs(after),
        (before, _, _) => needs(before),
    };
    !is_needed
}

fn is_seen(c: char) -> bool {
    !(is_joining(c) || is_invisible(c) || c.is_control() || c.is_whitespace())
}

/// Whether a character joins or separates its neighbours, or selects the form of the one before it.
pub const fn is_joining(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Whether a character is invisible, and changes how others look or can hide text: line and direction marks, zero widths, fillers, tags, shorthand
/// controls, and the variation selectors that can encode whole texts. These are the characters with the property Default_Ignorable_Code_Point
/// (Unicode Character Database, DerivedCoreProperties.txt), and the separators, annotation marks and the place of an object.
///
/// The joiners U+200C and U+200D and the first sixteen variation selectors are not included. Many scripts and emoji need them, and [`seen`] keeps
/// them there.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'
        | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!([first("äöü", 2), first("äöü", 3), first("äöü", 0)], ["äö", "äöü", ""]);
        assert_eq!([last("äöü", 2), last("äöü", 9), last("äöü", 0)], ["öü", "äöü", ""]);
        assert_eq!([first_bytes("äöü", 3), first_bytes("äöü", 9), first_bytes("äöü", 1)], ["ä", "äöü", ""]);
        assert_eq!([last_bytes("äöü", 3), last_bytes("äöü", 9), last_bytes("äöü", 1)], ["ü", "äöü", ""]);
    }

    #[test]
    fn a_mark_shows_that_something_was_cut() {
        assert_eq!([shortened("äöü", 2), shortened("äöü", 3), shortened_with("äöü", 1, " […]")], ["äö…", "äöü", "ä […]"]);
    }

    #[test]
    fn no_text_controls_a_terminal() {
        assert_eq!(spaced("a\u{1b}[2J\n\u{202e}b"), "a [2J  b");
        assert_eq!(escaped("a\u{1b}[2J\n\u{202e}é", |c| c == '\n'), "a\\u{1b}[2J\n\\u{202e}é");
    }
}
