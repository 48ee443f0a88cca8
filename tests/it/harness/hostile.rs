//! Text that would forge a log line or control a terminal, and checks that it did not.

/// A line end, a colour, a title, a direction mark and an invisible character. The text is short enough for the close reason of a WebSocket.
pub const HOSTILE: &str = "x\n2026-01-01T00:00:00Z  INFO forged decision=YES\r\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J\u{202e}desrever\u{2066}\u{e0041}";

/// Whether a character controls a terminal, or changes the direction of the text after it.
pub fn controls_terminal(char: char) -> bool {
    (char.is_control() && char != '\n') || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a line begins like every line of the log in this format.
pub fn is_log_line(line: &str, form: &str) -> bool {
    if form == "json" {
        return serde_json::from_str::<serde_json::Value>(line).is_ok();
    }
    let is_dated = line.get(..27).is_some_and(|at| at.ends_with('Z') && at.as_bytes()[10] == b'T');
    is_dated && !line.starts_with("2026-01-01")
}
