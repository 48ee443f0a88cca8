//! Reads a chat of SillyTavern: a file of lines of JSON, the first about the chat, each other one a message. A chat of a group has the same form.
//!
//! Programs write these files differently, so everything but the words of a message may be missing. Of several versions of an answer (`swipes`), the
//! chosen one counts. Messages that are hidden from the model (`is_system`) are left out.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::domain::message::{Author, ImportedMessage, Role};
use crate::domain::moment::Moment;
use crate::domain::named::named;
use crate::domain::text::{is_blank, one_line, shortened_with};

/// The most messages of a file.
pub const MOST_MESSAGES: usize = 5_000;

/// The longest name, in characters.
const MOST_NAME: usize = 63;

/// What newer programs write as the names in the first line.
const UNUSED: &str = "unused";

/// The messages of a file, oldest first, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chat {
    pub messages: Vec<ImportedMessage>,
    /// The number of messages that are hidden from the model, or empty.
    pub left_out: usize,
    /// The number of lines that are no message.
    pub unreadable: usize,
    /// The number of texts that were too long and lost their end.
    pub cut: usize,
    /// The author's note of the file, if it has one.
    pub note: Option<String>,
}

named! {
    /// The reason why a file is not a chat, as the key of the text for users.
    pub enum NotAChat {
        NotText = "refusals.chat_not_text",
        NoMessages = "refusals.chat_empty",
        TooMany = "refusals.chat_too_long",
    }
}

/// Reads a chat. `user` is the name for the person of the chat, instead of the one in the file. A text has at most `most_chars` characters. Times without a time zone are in `zone`.
///
/// # Errors
/// Returns an error if the file has no messages, or too many.
pub fn read_chat(bytes: &[u8], user: Option<&str>, most_chars: usize, zone: &TimeZone) -> Result<Chat, NotAChat> {
    let text = std::str::from_utf8(bytes).map_err(|_| NotAChat::NotText)?;
    let (mut chat, mut names) = (Chat::default(), ["User".to_owned(), "Character".to_owned()]);
    for line in text.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty()) {
        let Ok(Value::Object(fields)) = serde_json::from_str(line) else {
            chat.unreadable += 1;
            continue;
        };
        let of = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        let is_on = |key: &str| fields.get(key).is_some_and(|value| value == true || value == "true");
        let swipe = fields.get("swipe_id").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok()).unwrap_or_default();
        let swiped = fields.get("swipes").and_then(|swipes| swipes.get(swipe)?.as_str()).unwrap_or_default();
        let words = if is_blank(of("mes")) { swiped } else { of("mes") };
        if !fields.contains_key("mes") && swiped.is_empty() {
            // The first line.
            for (name, key) in names.iter_mut().zip(["user_name", "character_name"]) {
                *name = Some(one_line(of(key), MOST_NAME))
                    .filter(|given| !given.is_empty() && given != UNUSED)
                    .unwrap_or_else(|| name.clone());
            }
            chat.unreadable += usize::from(!chat.messages.is_empty());
            let note =
                fields.get("chat_metadata").and_then(|about| about.get("note_prompt")?.as_str()).filter(|note| !is_blank(note));
            chat.note = note.map(|note| shortened_with(note, most_chars, "…").into_owned()).or(chat.note);
            continue;
        }
        if is_on("is_system") || is_blank(words) {
            chat.left_out += 1;
            continue;
        }
        if chat.messages.len() == MOST_MESSAGES {
            return Err(NotAChat::TooMany);
        }
        let is_scene = fields.get("extra").and_then(|extra| extra.get("type")?.as_str()) == Some("narrator");
        let is_character = !is_scene && !is_on("is_user");
        let [in_file, character] = &names;
        let named = Some(one_line(of("name"), MOST_NAME)).filter(|name| !name.is_empty());
        let name: Arc<str> = match user {
            Some(user) if !is_character => user.into(),
            _ => named.as_deref().unwrap_or(if is_character { character } else { in_file }).into(),
        };
        let speaker: &str = if is_character { &name } else { character };
        let words = words.replace("\r\n", "\n").replace("{{user}}", user.unwrap_or(in_file)).replace("{{char}}", speaker);
        let words: String = words.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        let text: Arc<str> = shortened_with(&words, most_chars, "…").into();
        chat.cut += usize::from(*text != *words);
        let from = if is_character { Author { id: name.clone(), name, role: Role::Bot } } else { Author::of_name(name) };
        let at = fields.get("send_date").and_then(|date| moment(date, zone));
        chat.messages.push(ImportedMessage { from, text, is_scene, at });
    }
    if chat.messages.is_empty() { Err(NotAChat::NoMessages) } else { Ok(chat) }
}

/// The time of a message, in one of the forms that SillyTavern wrote over the years.
fn moment(date: &Value, zone: &TimeZone) -> Option<Moment> {
    let at = match date {
        Value::Number(number) => {
            let number = number.as_i64()?;
            // Seconds until the year 5138, otherwise milliseconds.
            if number < 100_000_000_000 { Timestamp::from_second(number) } else { Timestamp::from_millisecond(number) }.ok()?
        }
        Value::String(text) => {
            // Browsers write a narrow space before “PM”.
            let text = text.replace(['\u{202f}', '\u{a0}'], " ");
            let text = text.trim();
            // Milliseconds follow the seconds, with or without a space.
            let text = text.strip_suffix("ms").map_or(text, |at| at.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end());
            let civil = |form: &str| Some(DateTime::strptime(form, text).ok()?.to_zoned(zone.clone()).ok()?.timestamp());
            let forms = [
                "%B %d, %Y %I:%M%p",
                "%B %d, %Y %I:%M %p",
                "%b %d, %Y, %I:%M %p",
                "%b %d, %Y, %I:%M:%S %p",
                "%B %d, %Y, %I:%M %p",
                "%Y-%m-%d@%Hh%Mm%Ss",
                "%Y-%m-%d @%Hh %Mm %Ss",
            ];
            text.parse().ok().or_else(|| forms.into_iter().find_map(civil))?
        }
        _ => return None,
    };
    u64::try_from(at.as_microsecond()).ok().map(Moment::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Result<Chat, NotAChat> {
        read_chat(lines.as_bytes(), None, 20, &TimeZone::UTC)
    }

    #[test]
    fn another_name_for_the_person_counts_in_the_texts_too() {
        let lines = "{\"user_name\":\"Ana\",\"character_name\":\"Mira\"}\n{\"mes\":\"Hi {{user}}.\"}";

        let chat = read_chat(lines.as_bytes(), Some("Zoe"), 20, &TimeZone::UTC).unwrap();

        assert_eq!(&*chat.messages[0].text, "Hi Zoe.");
    }

    #[test]
    fn names_times_chosen_versions_and_hidden_messages_are_read() {
        let chat = read(concat!(
            "\u{feff}{\"user_name\":\"Ana\",\"character_name\":\"Mira\",\"chat_metadata\":{\"note_prompt\":\"Stay brief.\"}}\n",
            "{\"name\":\"Mira\",\"is_user\":false,\"send_date\":\"2023-10-13@20h22m03s562ms\",\"mes\":\"Hi {{user}}.\"}\n\n",
            "{\"name\":\"Ana\",\"is_user\":true,\"send_date\":\"October 13, 2023 8:23pm\",\"mes\":\"Hello\\u0007!\"}\n",
            "{\"name\":\"Mira\",\"swipes\":[\"One.\",\"Two.\"],\"swipe_id\":1,\"mes\":\"\",\"send_date\":\"Oct 13, 2023, 8:24\u{202f}PM\"}\n",
            "{\"name\":\"Mira\",\"is_system\":true,\"mes\":\"Hidden.\"}\n",
            "{\"name\":\"Sys\",\"mes\":\"Night falls.\",\"extra\":{\"type\":\"narrator\"},\"send_date\":\"2023-10-13T20:25:00Z\"}\n",
            "{broken\n[1]\n{\"mes\":\"012345678901234567890123\",\"is_user\":true,\"send_date\":\"soon\"}",
        ))
        .unwrap();

        let at = |minute: u64, second: u64| Some(Moment::from_micros((1_697_228_400 + minute * 60 + second) * 1_000_000));
        let shown: Vec<_> =
            chat.messages.iter().map(|one| (one.from.role, &*one.from.name, &*one.text, one.is_scene, one.at)).collect();
        let expected = [
            (Role::Bot, "Mira", "Hi Ana.", false, at(2, 3)),
            (Role::Person, "Ana", "Hello!", false, at(3, 0)),
            (Role::Bot, "Mira", "Two.", false, at(4, 0)),
            (Role::Person, "Sys", "Night falls.", true, at(5, 0)),
            (Role::Person, "Ana", "01234567890123456789…", false, None),
        ];
        assert_eq!(shown, expected);
        assert_eq!((chat.left_out, chat.unreadable, chat.cut, chat.note.as_deref()), (1, 2, 1, Some("Stay brief.")));
    }

    #[test]
    fn a_file_without_messages_or_with_too_many_is_refused() {
        let many = "{\"mes\":\"x\"}\n".repeat(MOST_MESSAGES + 1);

        assert_eq!(read("{\"user_name\":\"Ana\"}\nno\n"), Err(NotAChat::NoMessages));
        assert_eq!(read(&many), Err(NotAChat::TooMany));
        assert_eq!(read_chat(&[0xff, 0xfe], None, 20, &TimeZone::UTC), Err(NotAChat::NotText));
    }
}
