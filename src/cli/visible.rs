//! Writes what comes from outside so that a terminal obeys nothing in it, and all of it can be seen.

use std::path::Path;

use crate::domain::prompt::is_invisible;

/// A text of several lines; control characters other than line ends and tabs, and what cannot be seen, are written out.
pub(super) fn lines(text: &str) -> String {
    written(text, |char| char.is_control() && !matches!(char, '\n' | '\t'))
}

/// A text in one line, the same way.
pub(super) fn line(text: &str) -> String {
    written(text, char::is_control)
}

/// A path in one line, the same way.
pub(super) fn path(path: &Path) -> String {
    written(&path.to_string_lossy(), char::is_control)
}

fn written(text: &str, is_obeyed: impl Fn(char) -> bool) -> String {
    let mut seen = String::with_capacity(text.len());
    for char in text.chars() {
        if is_obeyed(char) || is_invisible(char) {
            seen.extend(char.escape_unicode());
        } else {
            seen.push(char);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out_and_the_rest_stays() {
        assert_eq!(lines("a\u{1b}[31m\u{9b}b\u{202e}\r\n\tcafé ☕"), "a\\u{1b}[31m\\u{9b}b\\u{202e}\\u{d}\n\tcafé ☕");
        assert_eq!(path(Path::new("/a b/\u{1b}]0;x\u{7}\n.backup")), "/a b/\\u{1b}]0;x\\u{7}\\u{a}.backup");
    }
}
