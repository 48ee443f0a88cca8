//! Escapes untrusted text, so that it cannot control the terminal and all of it is visible.

use std::fmt::Write as _;
use std::path::Path;

use crate::domain::text::{escaped, is_invisible};

/// Escapes a text of several lines. Line ends and tabs are kept. Other control characters and invisible characters are escaped.
pub fn lines(text: &str) -> String {
    escaped(text, |char| matches!(char, '\n' | '\t'))
}

/// Like [`lines`], with continuation lines indented, so that a line end in a name cannot fake a line of output.
pub fn paragraph(text: &str) -> String {
    lines(text).replace('\n', "\n  ")
}

/// Escapes a name or another text of one line. Line ends and tabs are escaped too.
pub fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Escapes a path, on one line.
pub fn path(path: &Path) -> String {
    line(&path.to_string_lossy())
}

/// Escapes a JSON text. The value does not change, because such characters occur only in strings.
pub fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if (char.is_control() && char != '\n') || is_invisible(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                // Writing to a String does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(char);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HOSTILE: &str = "a\u{1b}[31m\u{9b}b\u{202e}\u{e0041}\r\n\tcafé ☕";

    #[test]
    fn control_and_invisible_characters_are_escaped_and_the_rest_stays() {
        assert_eq!(lines(HOSTILE), "a\\u{1b}[31m\\u{9b}b\\u{202e}\\u{e0041}\\r\n\tcafé ☕");
        assert_eq!(line(HOSTILE), "a\\u{1b}[31m\\u{9b}b\\u{202e}\\u{e0041}\\r\\n\\tcafé ☕");
        assert_eq!(path(Path::new("/a b/\u{1b}]0;x\u{7}\n.backup")), "/a b/\\u{1b}]0;x\\u{7}\\n.backup");
    }

    #[test]
    fn escaped_json_has_the_same_value_and_no_control_characters() {
        let object = json!({ HOSTILE: [HOSTILE, 1] });

        let text = json(&format!("{object:#}"));

        assert!(!text.contains(|char: char| (char.is_control() && char != '\n') || is_invisible(char)), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), object);
    }
}
