//! Makes ids safe for a log line: text from outside must not look like a field, a line or a colour of ours.

use std::fmt::{self, Write};

use crate::domain::text::is_invisible;

/// The maximum length of a written id, in characters.
const LONGEST: usize = 200;

/// An id as one word. Control and format characters, white space and `=` become `_`. An empty id becomes `-`.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a>(pub &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_char('-');
        }
        self.0.chars().take(LONGEST).try_for_each(|char| f.write_char(if is_plain(char) { char } else { '_' }))
    }
}

fn is_plain(char: char) -> bool {
    // Invisible characters, and those that change the direction of writing, can make a line look like another.
    let is_format = is_invisible(char) || matches!(char, '\u{200c}' | '\u{200d}');
    !(char.is_control() || char.is_whitespace() || is_format || char == '=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_id_is_not_changed() {
        assert_eq!(Plain("discord:1234").to_string(), "discord:1234");
        assert_eq!(Plain("console:café-☕").to_string(), "console:café-☕");
    }

    #[test]
    fn no_id_can_look_like_another_field_or_line() {
        assert_eq!(Plain("a decision=YES\nb\u{1b}[31m\u{2028}\u{202e}").to_string(), "a_decision_YES_b_[31m__");
        assert_eq!(Plain("a\u{61c}\u{200d}\u{e0041}\u{9b}b").to_string(), "a____b");
    }

    #[test]
    fn an_id_is_always_one_word_of_bounded_length() {
        assert_eq!(Plain("").to_string(), "-");
        assert_eq!(Plain(&"x".repeat(1_000)).to_string().len(), LONGEST);
    }
}
