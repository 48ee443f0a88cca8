//! Decides which characters of a text are visible, and writes texts in one line.

/// A text in one line, without invisible characters, cut to `most` characters plus `…`. Empty if nothing is left.
pub fn one_line(text: &str, most: usize) -> String {
    let visible: String = seen(text).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut plain: String = words.chars().take(most).collect();
    if plain.len() < words.len() {
        plain.push('…');
    }
    plain
}

/// The visible characters of a text, with the joiners and variation selectors that they need.
pub fn seen(text: &str) -> impl Iterator<Item = char> {
    with_visibility(text).filter_map(|(c, is_hidden)| (!is_hidden).then_some(c))
}

/// The first hidden character of a text. Texts that differ only in hidden characters look the same.
pub fn first_hidden(text: &str) -> Option<char> {
    with_visibility(text).find_map(|(c, is_hidden)| is_hidden.then_some(c))
}

/// Each character, and whether it is [hidden](is_hidden).
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
    // U+2800 is drawn as a blank.
    seen(text).all(|c| c.is_whitespace() || c.is_control() || is_joining(c) || c == '\u{2800}')
}

/// Whether a character is hidden between its two neighbours: it is [invisible](is_invisible), or it is a joiner or a variation selector that no
/// script and no emoji needs there.
///
/// Runs of such characters can hide a whole text, and so can one after every letter. One at a time is needed after a character beyond ASCII (joiners
/// also before one). Emoji also need U+FE0F U+200D between their parts, and U+FE0F U+20E3 after a digit, `#` or `*` (Unicode Technical Standard 51).
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
/// (Unicode Character Database, DerivedCoreProperties.txt), and the separators and annotation marks.
///
/// The joiners U+200C and U+200D and the first sixteen variation selectors are not included. Many scripts and emoji need them, and [`seen`] keeps
/// them there.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'
        | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
