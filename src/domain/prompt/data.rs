//! Writes what people wrote so that it cannot be taken for anything else.

use std::borrow::Cow;
use std::fmt::Write;

use super::marks::begins_mark;

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

/// A text in one line: without invisible characters, and without what comes after this many others. Empty if nothing is left.
pub fn one_line(text: &str, most: usize) -> String {
    let visible: String = seen(text).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut plain: String = words.chars().take(most).collect();
    if plain.len() < words.len() {
        plain.push('…');
    }
    plain
}

/// What can be seen of a text, with the joiners and variation selectors that it needs for that.
pub fn seen(text: &str) -> impl Iterator<Item = char> {
    told_apart(text).filter_map(|(c, is_hidden)| (!is_hidden).then_some(c))
}

/// The first character of a text that shows nothing where it stands: what differs in it alone reads the same.
pub fn first_hidden(text: &str) -> Option<char> {
    told_apart(text).find_map(|(c, is_hidden)| is_hidden.then_some(c))
}

/// Each character, and whether it [hides](is_hidden).
fn told_apart(text: &str) -> impl Iterator<Item = (char, bool)> {
    let (mut rest, mut before) = (text.chars(), None);
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let is_hidden = is_hidden(before, c, rest.clone().next());
        before = Some(c);
        Some((c, is_hidden))
    })
}

/// Whether nothing of a text can be seen.
pub fn is_blank(text: &str) -> bool {
    // U+2800 is drawn as a blank.
    seen(text).all(|c| c.is_whitespace() || c.is_control() || is_joining(c) || c == '\u{2800}')
}

/// Whether a character shows nothing where it stands, between these two: one that is [invisible](is_invisible), and a joiner or a variation
/// selector that no script and no emoji asks for.
///
/// Runs of them can hide a whole text, and so can one after every letter. They are asked for one at a time, behind a character beyond
/// ASCII (the joiners before one, too), and as U+FE0F U+200D in an emoji of several, U+FE0F and U+20E3 behind a digit, `#` or `*` (Unicode
/// Technical Standard 51).
fn is_hidden(before: Option<char>, c: char, after: Option<char>) -> bool {
    if !is_joining(c) {
        return is_invisible(c);
    }
    let needs = |beside: Option<char>| beside.is_some_and(|beside| !beside.is_ascii() && is_seen(beside));
    let is_run = |beside: Option<char>| beside.is_some_and(|beside| is_joining(beside) || is_invisible(beside));
    let is_asked_for = match (before, c, after) {
        (Some('\u{fe0f}'), '\u{200d}', after) => needs(after),
        (before, '\u{fe0f}', Some('\u{200d}')) => needs(before),
        (before, _, after) if is_run(before) || is_run(after) => false,
        (Some('0'..='9' | '#' | '*'), '\u{fe0f}', Some('\u{20e3}')) => true,
        (before, '\u{200c}' | '\u{200d}', after) => needs(before) || needs(after),
        (before, _, _) => needs(before),
    };
    !is_asked_for
}

fn is_seen(c: char) -> bool {
    !(is_joining(c) || is_invisible(c) || c.is_control() || c.is_whitespace())
}

/// Whether a character joins its neighbours, keeps them apart or says which form the one before it takes.
pub const fn is_joining(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Whether a character cannot be seen, and changes how others are or hides what is said: line and direction marks, zero widths, fillers,
/// tags, shorthand controls, and the variation selectors in which whole texts can be hidden. These are the characters with the property
/// Default_Ignorable_Code_Point (Unicode Character Database, DerivedCoreProperties.txt), and the separators and annotation marks.
///
/// The joiners U+200C and U+200D and the first sixteen variation selectors are not among them: many scripts and emoji need them, where
/// [`seen`] leaves them.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'
        | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
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
