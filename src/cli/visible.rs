//! Writes what comes from outside so that a terminal obeys nothing in it, and all of it can be seen.

use std::fmt::Write as _;
use std::path::Path;

use crate::domain::text::is_invisible;

/// A text of several lines; control characters other than line ends and tabs, and what cannot be seen, are written out.
pub(super) fn lines(text: &str) -> String {
    written(text, |char| char.is_control() && !matches!(char, '\n' | '\t'))
}

/// The same where other lines may stand below: a line end in a name begins no line of its own.
pub(super) fn paragraph(text: &str) -> String {
    lines(text).replace('\n', "\n  ")
}

/// A name, or a text that has one line, the same way: its line ends and tabs are written out, too.
pub(super) fn line(text: &str) -> String {
    written(text, char::is_control)
}

/// A path in one line, the same way.
pub(super) fn path(path: &Path) -> String {
    line(&path.to_string_lossy())
}

/// A JSON text that says the same: what is written out in it stands in its strings.
pub(super) fn json(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for char in text.chars() {
        if (char.is_control() && char != '\n') || is_invisible(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                // Writing to a text does not fail.
                let _ = write!(seen, "\\u{unit:04x}");
            }
        } else {
            seen.push(char);
        }
    }
    seen
}

fn written(text: &str, is_obeyed: impl Fn(char) -> bool) -> String {
    let mut seen = String::with_capacity(text.len());
    for char in text.chars() {
        if is_obeyed(char) || is_invisible(char) {
            seen.extend(char.escape_default());
        } else {
            seen.push(char);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HOSTILE: &str = "a\u{1b}[31m\u{9b}b\u{202e}\u{e0041}\r\n\tcafé ☕";

    #[test]
    fn what_a_terminal_obeys_is_written_out_and_the_rest_stays() {
        assert_eq!(lines(HOSTILE), "a\\u{1b}[31m\\u{9b}b\\u{202e}\\u{e0041}\\r\n\tcafé ☕");
        assert_eq!(line(HOSTILE), "a\\u{1b}[31m\\u{9b}b\\u{202e}\\u{e0041}\\r\\n\\tcafé ☕");
        assert_eq!(path(Path::new("/a b/\u{1b}]0;x\u{7}\n.backup")), "/a b/\\u{1b}]0;x\\u{7}\\n.backup");
    }

    #[test]
    fn json_says_the_same_without_what_a_terminal_obeys() {
        let object = json!({ HOSTILE: [HOSTILE, 1] });

        let told = json(&format!("{object:#}"));

        assert!(!told.contains(|char: char| (char.is_control() && char != '\n') || is_invisible(char)), "{told:?}");
        assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), object);
    }
}
