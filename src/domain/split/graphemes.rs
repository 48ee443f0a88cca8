//! Finds the boundaries of grapheme clusters, which people see as one character.

use unicode_normalization::char::is_combining_mark;

/// Whether a text may be split between `before` and `after`: not before a mark, a variation selector or a skin tone, not around a joiner, not within
/// a flag or a line break. This covers the part of Unicode's grapheme clusters (UAX 29) that emoji and accents need.
pub(crate) fn may_break(before: &str, after: &str) -> bool {
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else { return true };
    let extends = is_combining_mark(next)
        || matches!(next, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}');
    let within_flag = is_flag_letter(next) && before.chars().rev().take_while(|c| is_flag_letter(*c)).count() % 2 == 1;
    !(extends || last == '\u{200d}' || within_flag || (last == '\r' && next == '\n'))
}

/// Whether a character is one of the two that make a flag.
fn is_flag_letter(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}
