//! Validates names, texts and ids in requests.

use std::sync::Arc;

use serde_json::json;

use super::problem::Problem;
use crate::domain::conversation::EVENT_ID;
use crate::domain::reminders::KIND as REMINDER;
use crate::domain::text::{first, first_hidden, is_blank};
use crate::domain::tools::CONFIRMED_CALL;
use crate::ports::backend::Detail;
use crate::ports::backend::room::{RoomId, is_plain_id};

/// The longest name of a person, in characters.
const MAX_NAME_CHARS: usize = 64;
/// The longest id of a message or an event, in characters.
pub(super) const MAX_ID_CHARS: usize = 128;
/// The longest kind of an event, in characters.
const MAX_KIND_CHARS: usize = 32;

/// Validates a name and returns it trimmed. It must have 1 to 64 characters, at least one of them visible. Control and bidirectional formatting
/// characters are refused, because they can make one name look like another.
pub(super) fn name(field: &str, text: &str) -> Result<Arc<str>, Problem> {
    let text = text.trim();
    let chars = text.chars().count();
    if !(1..=MAX_NAME_CHARS).contains(&chars) {
        return Err(Problem::invalid(field, Detail::of("refusals.length", json!({ "chars": chars, "most": MAX_NAME_CHARS }))));
    }
    if let Some(char) = text.chars().find(|char| char.is_control() || is_line_break(*char) || is_bidi_control(*char)) {
        return Err(Problem::invalid(field, Detail::of("refusals.control_character", json!({ "char": code_point(char) }))));
    }
    if is_blank(text) {
        return Err(Problem::invalid(field, Detail::key("refusals.invisible_name")));
    }
    Ok(text.into())
}

/// Validates a name of a companion. It refuses invisible characters, too, because they can make one name read like another.
pub(super) fn companion_name(field: &str, text: &str) -> Result<Arc<str>, Problem> {
    let name = name(field, text)?;
    match first_hidden(&name) {
        Some(hidden) => {
            Err(Problem::invalid(field, Detail::of("refusals.hidden_character", json!({ "char": code_point(hidden) }))))
        }
        None => Ok(name),
    }
}

/// Validates the text of a message: 1 to `max_chars` characters, at least one of them visible. Line ends become `\n`. Other control characters
/// except `\t` are refused rather than removed, so that the stored text is the text that was sent.
pub(super) fn text(field: &str, text: &str, max_chars: usize) -> Result<Arc<str>, Problem> {
    let text = if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.to_owned() };
    if is_blank(&text) {
        return Err(Problem::invalid(field, Detail::key("refusals.invisible_text")));
    }
    let chars = text.chars().count();
    if chars > max_chars {
        return Err(Problem::invalid(field, Detail::of("refusals.too_long", json!({ "chars": chars, "most": max_chars }))));
    }
    if let Some(char) = text.chars().find(|char| char.is_control() && !matches!(char, '\n' | '\t')) {
        return Err(Problem::invalid(field, Detail::of("refusals.control_in_text", json!({ "char": code_point(char) }))));
    }
    Ok(text.into())
}

/// Validates an opaque id from outside: 1 to `max_chars` characters, without control characters.
pub(super) fn opaque_id(field: &str, text: &str, max_chars: usize) -> Result<(), Problem> {
    let chars = text.chars().count();
    if !(1..=max_chars).contains(&chars) {
        return Err(Problem::invalid(field, format!("has {chars} characters, must have from 1 to {max_chars}")));
    }
    if text.chars().any(char::is_control) {
        return Err(Problem::invalid(field, "contains a control character; remove it"));
    }
    Ok(())
}

/// Validates the id that a client gives to a message or an event.
pub(super) fn message_id(field: &str, text: &str) -> Result<(), Problem> {
    opaque_id(field, text, MAX_ID_CHARS)?;
    if text.starts_with(EVENT_ID) {
        return Err(Problem::invalid(
            field,
            format!("begins with {EVENT_ID:?}, as the ids of this server's own events do; choose another"),
        ));
    }
    Ok(())
}

/// Validates the kind of an event: 1 to 32 of `a-z 0-9 _`.
pub(super) fn kind(field: &str, text: &str) -> Result<(), Problem> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if [CONFIRMED_CALL, REMINDER].contains(&text) {
        return Err(Problem::invalid(field, format!("{text:?} is a kind of this server's own events; choose another")));
    }
    if (1..=MAX_KIND_CHARS).contains(&text.len()) && text.bytes().all(is_allowed) {
        return Ok(());
    }
    let shown = first(text, MAX_NAME_CHARS);
    Err(Problem::invalid(
        field,
        format!("{shown:?} is not a kind: it must have 1 to {MAX_KIND_CHARS} of a-z, digits and _, such as raid"),
    ))
}

/// Parses the id of a room.
pub(super) fn room(field: &str, text: &str) -> Result<RoomId, Problem> {
    RoomId::parse(text).ok_or_else(|| {
        let detail = "a console room's id has 1 to 64 letters A-Z and a-z, digits, _ and -; a channel of another platform is given by its \
                      whole id, such as discord:1234";
        Problem::invalid(field, format!("{:?} is not a valid id: {detail}", first(text, MAX_NAME_CHARS)))
    })
}

/// Validates the id of a companion.
pub(super) fn companion_id(field: &str, text: &str) -> Result<(), Problem> {
    if is_plain_id(text) { Ok(()) } else { Err(not_plain(field, text)) }
}

fn not_plain(field: &str, text: &str) -> Problem {
    let id = first(text, MAX_NAME_CHARS);
    Problem::invalid(field, format!("{id:?} is not a valid id: it must have 1 to 64 letters A-Z and a-z, digits, _ and -"))
}

/// A character in Unicode notation: `U+202E`.
fn code_point(char: char) -> String {
    format!("U+{:04X}", u32::from(char))
}

fn is_line_break(char: char) -> bool {
    matches!(char, '\u{2028}' | '\u{2029}')
}

/// Marks, embeddings, overrides and isolates of the Unicode bidirectional algorithm (UAX #9).
fn is_bidi_control(char: char) -> bool {
    matches!(char, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_name_is_trimmed_and_otherwise_unchanged() {
        let names = ["  Ana ", "José Ñ", "山田", "👩\u{200D}🚀"].map(|text| name("from", text).unwrap());

        assert_eq!(names.map(|name| name.to_string()), ["Ana", "José Ñ", "山田", "👩\u{200D}🚀"]);
        assert!(name("from", &"🦀".repeat(64)).is_ok());
    }

    #[test]
    fn a_misleading_or_invisible_name_is_refused() {
        let long = "x".repeat(65);
        let names = [
            "",
            "   ",
            "\u{200B}",
            "\u{2800}\u{3164}",
            "a\u{202E}b",
            "a\u{2066}b",
            "a\u{200F}",
            "a\nb",
            "a\u{0}b",
            "a\u{2028}b",
            &long,
        ];

        assert_eq!(names.map(|text| name("from", text).is_err()), [true; 11]);
    }

    #[test]
    fn line_ends_are_normalized_and_tabs_are_allowed_in_a_text() {
        assert_eq!(&*text("text", "a\r\nb\rc\td", 10).unwrap(), "a\nb\nc\td");
    }

    #[test]
    fn a_text_with_other_control_characters_is_refused() {
        let problem = text("text", "bell \u{7}", 10).unwrap_err();

        assert!(problem.detail().contains("U+0007"));
    }

    #[test]
    fn the_length_of_a_text_is_measured_in_characters() {
        assert!(text("text", "ääää", 4).is_ok());
        assert!(text("text", "äääää", 4).is_err());
        assert!(text("text", " \u{200B}\n", 4).is_err());
    }
}
