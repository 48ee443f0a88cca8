//! Writes one message as one line of JSON. The line depends on the message and its reader, not on the rest of the prompt, except that the message
//! that it replies to is quoted only while the message is new, and that a text without enough room is cut.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::Said;
use super::data::{cut_middle, escape_into, escaped_weight, plain_name, weight};
use crate::id::CompanionId;
use crate::message::{Author, Cut, Message, Quoted, Role};
use crate::moment::Moment;
use crate::note::Note;
use crate::tools::built_in::Poll;

/// A message is shown with its time after a silence of this length. The first message of a day is, too.
const GAP: Duration = Duration::from_secs(600);
/// The weight of the beginning of a line with a time.
pub(super) const STAMP_WEIGHT: usize = 32;

/// The companion that reads a line. Its own messages have the role `you`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) id: &'a CompanionId,
    pub(super) name: &'a str,
}

/// A message as the end of a line that begins with [`beginning`]. It weighs at most `most`. None if that is impossible.
pub(super) fn line_end(said: &Said, reader: Option<Reader<'_>>, most: usize) -> Option<String> {
    let message = &*said.message;
    let own = reader.filter(|reader| message.is_by(reader.id));
    let role = if own.is_none() && message.is_event() { "event" } else { role_of(&message.from, reader) };
    let mut line = format!("\"who\":\"#{}\",\"role\":\"{role}\",", tag(&message.from));
    if let Some(kind) = &message.kind {
        line.push_str("\"kind\":\"");
        escape_into(&mut line, &plain_name(kind));
        line.push_str("\",");
    }
    if message.is_transcribed_note() {
        line.push_str("\"form\":\"voice note\",");
    }
    line.push_str("\"from\":\"");
    escape_into(&mut line, &plain_name(own.map_or(&message.from.name, |reader| reader.name)));
    line.push_str("\",");
    if let Some(quoted) = &said.quoted {
        line.push_str(&quote(quoted, reader, most / 4));
    }
    line.push_str("\"text\":");
    end_with_text(line, message, own.is_some(), "}\n", most)
}

/// The line of a message without its text and a quote weighs less.
const FRAME: usize = 2_000;

/// Whether the text of a message has so much room that it is certainly shown whole, with nothing that depends on the room.
pub(super) fn is_whole(said: &Said, room: usize) -> bool {
    // No character weighs more than six for each of its bytes.
    said.quoted.is_none()
        && said.message.cut.is_none()
        && poll_of(&said.message).is_none()
        && said.message.text.len() * 6 + FRAME <= room
}

/// [`line_end`] for readers that are not the author. It is kept if the text is whole.
pub(super) fn kept_line_end(said: &Said, most: usize) -> Option<Arc<str>> {
    if !is_whole(said, most) {
        return line_end(said, None, most).map(Arc::from);
    }
    Some(said.line.get(&said.message, false, || line_end(said, None, most).unwrap_or_default()))
}

/// A message as a speaker's name and a text: `Ana: "It rains."`. It weighs at most `most`. None if that is impossible.
pub(super) fn short_line(said: &Said, reader: Reader<'_>, has_namesake: bool, most: usize) -> Option<String> {
    let message = &*said.message;
    let is_own = message.is_by(reader.id);
    let mut line = String::new();
    // A colon in a name would look like its end.
    escape_into(&mut line, &plain_name(if is_own { reader.name } else { &message.from.name }).replace(':', " "));
    if has_namesake {
        line.push_str(&format!(" #{}", tag(&message.from)));
    }
    if let Some(kind) = &message.kind {
        line.push_str(" (");
        escape_into(&mut line, &plain_name(kind));
        line.push(')');
    }
    line.push_str(": ");
    end_with_text(line, message, is_own, "\n", most)
}

/// A note as its author's name and a text: `Ana, noted: "Ana's cat is called Mora."`. It weighs at most `most`. None if that is impossible.
pub(super) fn note_line(note: &Note, has_namesake: bool, most: usize) -> Option<String> {
    let mut line = String::new();
    escape_into(&mut line, &plain_name(&note.said_by.name));
    if has_namesake {
        line.push_str(&format!(" #{}", tag(&note.said_by)));
    }
    if let Some(about) = note.about.as_ref().filter(|_| note.is_hearsay()) {
        line.push_str(" about ");
        escape_into(&mut line, &plain_name(&about.name));
    }
    line.push_str(", noted: \"");
    escape_into(&mut line, &note.text);
    line.push_str("\"\n");
    (weight(&line) <= most).then_some(line)
}

/// Appends the text of a message, cut so that the line weighs at most `most`.
fn end_with_text(mut line: String, message: &Message, is_own: bool, end: &str, most: usize) -> Option<String> {
    line.push('"');
    let room = most.checked_sub(weight(&line) + weight(end) + 1)?;
    let mut mark = message.cut.as_deref().map(|cut| cut_mark(cut, &message.text, is_own, room / 4)).unwrap_or_default();
    if let Some(poll) = poll_of(message) {
        mark.push('\n');
        mark.push_str(&cut_middle(&poll.to_string(), room / 4, escaped_weight));
    }
    let room = room.checked_sub(mark.chars().map(escaped_weight).sum())?;
    escape_into(&mut line, &cut_middle(&message.text, room, escaped_weight));
    escape_into(&mut line, &mark);
    line.push('"');
    line.push_str(end);
    Some(line)
}

/// A line that informs a companion of the poll below its statement. The poll in the line weighs at most `room`.
pub(super) fn poll_line(poll: &Poll, room: usize, is_short: bool) -> String {
    let poll = cut_middle(&poll.to_string(), room, escaped_weight).into_owned();
    event_line("poll", &poll, is_short)
}

pub(super) fn poll_of(message: &Message) -> Option<&Poll> {
    message.calls.iter().find_map(|call| call.poll.as_deref())
}

fn role_of(from: &Author, reader: Option<Reader<'_>>) -> &'static str {
    match from.role {
        Role::Companion if reader.is_some_and(|reader| *from.id == *reader.id.as_str()) => "you",
        Role::Companion => "companion",
        Role::Person => "person",
        Role::Bot => "bot",
    }
}

/// The quote of the message that a message replies to. Its text weighs at most `room`.
fn quote(Quoted { from, text, .. }: &Quoted, reader: Option<Reader<'_>>, room: usize) -> String {
    let mut quote = format!("\"replies_to\":{{\"who\":\"#{}\",\"role\":\"{}\",\"from\":\"", tag(from), role_of(from, reader));
    escape_into(&mut quote, &plain_name(&from.name));
    quote.push_str("\",\"text\":\"");
    escape_into(&mut quote, &cut_middle(text, room, escaped_weight));
    quote.push_str("\"},");
    quote
}

/// The mark after the text of a statement that was cut off. For its author, the mark contains the unheard words, which weigh at most `room`.
fn cut_mark(cut: &Cut, heard: &str, is_own: bool, room: usize) -> String {
    let by = cut.by.as_ref().map(|by| format!(" by {}", plain_name(&by.name))).unwrap_or_default();
    match unheard(cut, heard, room).filter(|_| is_own) {
        Some(unheard) => format!(" — [cut off{by} here; nobody heard the rest: {unheard}]"),
        None => format!(" — [cut off{by} here]"),
    }
}

/// A line that informs a companion that its statement was cut off. The unheard words in the line weigh at most `room`.
pub(super) fn cut_line(cut: &Cut, heard: &str, room: usize, is_short: bool) -> String {
    let by = cut.by.as_ref().map(|by| format!(" by {}", plain_name(&by.name))).unwrap_or_default();
    let rest = unheard(cut, heard, room).map(|unheard| format!(" Nobody heard the rest: {unheard}")).unwrap_or_default();
    event_line("cut off", &format!("You were cut off{by} there.{rest}"), is_short)
}

fn event_line(kind: &str, text: &str, is_short: bool) -> String {
    let (mut line, end) = if is_short {
        (format!("({kind}): \""), "\"\n")
    } else {
        (format!("{{\"role\":\"event\",\"kind\":\"{kind}\",\"text\":\""), "\"}\n")
    };
    escape_into(&mut line, text);
    line + end
}

fn unheard(cut: &Cut, heard: &str, room: usize) -> Option<String> {
    let unheard = cut.full.strip_prefix(heard.trim_end()).map(str::trim)?;
    Some(cut_middle(unheard, room, escaped_weight).into_owned()).filter(|unheard| !unheard.is_empty())
}

/// A short tag that distinguishes speakers with the same name. It depends only on the speaker, so it is the same in every prompt.
fn tag(author: &Author) -> String {
    tag_of(author.role, &author.id)
}

/// The tag of the speaker with this role and this id.
pub(super) fn tag_of(role: Role, id: &str) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    // 64-bit FNV-1a. Its upper bits are better distributed.
    let bytes = role.as_str().bytes().chain([0]).chain(id.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (0..6).map(|letter| char::from(LETTERS[(hash >> (59 - 5 * letter)) as usize % 32])).collect()
}

/// The beginnings of the lines of messages that were said at these moments, in the same order. They contain the time after a [gap](GAP) and for the
/// first message of each day. Without a zone they contain no times.
pub(super) fn beginnings(times: impl Iterator<Item = Moment>, zone: Option<&TimeZone>) -> Vec<String> {
    let mut before: Option<Moment> = None;
    let beginning = |at: Moment| {
        let before = before.replace(at);
        let has_time = |zone: &&TimeZone| {
            before.is_none_or(|before| at.since(before) >= GAP || before.zoned(zone).date() != at.zoned(zone).date())
        };
        self::beginning(at, zone.filter(has_time))
    };
    times.map(beginning).collect()
}

/// The beginning of a line. It contains the time if there is a zone.
pub(super) fn beginning(at: Moment, zone: Option<&TimeZone>) -> String {
    zone.map_or_else(|| "{".to_owned(), |zone| format!("{{\"at\":\"{}\",", at.zoned(zone).strftime("%Y-%m-%d %H:%M")))
}
