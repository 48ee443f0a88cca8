//! Writes the newest messages that fit, as one line of JSON each.

use std::collections::BTreeMap;

use super::super::id::CompanionId;
use super::super::message::{Message, Role};
use super::data::{cut_middle, escape_into, escaped_weight, plain_name, weight};

/// An upper bound of the weight of the line about messages left out.
const MARK_WEIGHT: usize = 60;

/// The companion that reads a transcript. Its own messages have the role `you`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) id: &'a CompanionId,
    pub(super) name: &'a str,
}

/// The blocks of lines, one for each block of messages, in the same order. A block without messages is empty.
///
/// `left_out` messages before the first block are counted with those of it that do not fit.
///
/// All blocks together weigh at most `room`. The oldest messages are left out first. A message that would take more than half the room is cut in its
/// middle. A line ends in a line feed, and no text contains one.
pub(super) fn transcript<const N: usize>(
    blocks: [&[&Message]; N],
    left_out: usize,
    reader: Option<Reader<'_>>,
    room: usize,
) -> [String; N] {
    let tags = tags(&blocks);
    let total: usize = blocks.iter().map(|block| block.len()).sum();
    let room = room.saturating_sub(N * MARK_WEIGHT);
    let mut left = room;
    let mut number = total;
    let mut is_full = false;
    let mut shown = blocks.map(|_| String::new());
    for (at, (block, lines)) in blocks.iter().zip(&mut shown).enumerate().rev() {
        let mut shown_lines: Vec<String> = Vec::new();
        for message in block.iter().rev() {
            let line = line(message, number, tags[&key(message)], reader, room / 2);
            let Some(line) = line.filter(|line| !is_full && weight(line) <= left) else {
                is_full = true;
                break;
            };
            left -= weight(&line);
            number -= 1;
            shown_lines.push(line);
        }
        let missing = block.len() - shown_lines.len() + if at == 0 { left_out } else { 0 };
        if missing > 0 {
            let noun = if missing == 1 { "message" } else { "messages" };
            shown_lines.push(format!("[{missing} earlier {noun} left out]\n"));
        }
        shown_lines.reverse();
        *lines = shown_lines.concat();
    }
    shown
}

/// A message as a line that weighs at most `most`. None if that is impossible.
fn line(message: &Message, number: usize, tag: usize, reader: Option<Reader<'_>>, most: usize) -> Option<String> {
    let own = reader.filter(|reader| message.is_by(reader.id));
    let role = match (own, message.from.role) {
        (Some(_), _) => "you",
        (None, Role::Companion) => "companion",
        _ if message.is_event() => "event",
        (None, Role::Person) => "person",
        (None, Role::Bot) => "bot",
    };
    let mut line = format!("{{\"n\":{number},\"who\":\"#{tag}\",\"role\":\"{role}\",");
    if let Some(kind) = &message.kind {
        line.push_str("\"kind\":\"");
        escape_into(&mut line, &plain_name(kind));
        line.push_str("\",");
    }
    line.push_str("\"from\":\"");
    escape_into(&mut line, &plain_name(own.map_or(&message.from.name, |reader| reader.name)));
    line.push_str("\",\"text\":\"");
    let end = "\"}\n";
    let room = most.checked_sub(weight(&line) + weight(end))?;
    escape_into(&mut line, &cut_middle(&message.text, room, escaped_weight));
    line.push_str(end);
    Some(line)
}

/// A number for each speaker, so that two with the same name can be distinguished.
fn tags<'a>(blocks: &[&[&'a Message]]) -> BTreeMap<(Role, &'a str), usize> {
    let mut tags = BTreeMap::new();
    for message in blocks.iter().flat_map(|block| block.iter()) {
        let next = tags.len() + 1;
        tags.entry(key(message)).or_insert(next);
    }
    tags
}

fn key(message: &Message) -> (Role, &str) {
    (message.from.role, &message.from.id)
}
