//! Writes the newest messages that fit, as one line of JSON each.

use jiff::tz::TimeZone;

use super::Said;
use super::data::weight;
use super::line::{Reader, STAMP_WEIGHT, beginning, beginnings, line_end};

/// An upper bound of the weight of the line about omitted messages.
const MARK_WEIGHT: usize = 60;

/// The blocks of lines, one for each block of messages, in the same order. A block without messages is empty.
///
/// All blocks together weigh at most `room`. The oldest messages are omitted first. A message that would take more than half the room is cut in its
/// middle. A line ends in a line feed, and no text contains one. Without a time zone, no times are shown.
pub(super) fn transcript<const N: usize>(
    blocks: [&[&Said]; N],
    reader: Option<Reader<'_>>,
    zone: Option<&TimeZone>,
    room: usize,
) -> [String; N] {
    let room = room.saturating_sub(N * MARK_WEIGHT + STAMP_WEIGHT);
    let mut left = room;
    let all: Vec<(usize, &Said)> =
        blocks.iter().enumerate().flat_map(|(block, messages)| messages.iter().map(move |said| (block, *said))).collect();
    let begins = beginnings(all.iter().map(|(_, said)| said.at), zone);
    let mut ends = Vec::new();
    for ((_, said), begin) in all.iter().zip(&begins).rev() {
        let end = line_end(said, reader, room / 2).filter(|end| weight(begin) + weight(end) <= left);
        let Some(end) = end else { break };
        left -= weight(begin) + weight(&end);
        ends.push(end);
    }
    let first = all.len() - ends.len();
    let mut lines = blocks.map(|_| String::new());
    let mut missing = blocks.map(<[_]>::len);
    for (at, end) in ends.iter().rev().enumerate() {
        let (block, said) = all[first + at];
        missing[block] -= 1;
        // The first line that is shown always has its time.
        let begin = if at == 0 { &beginning(said.at, zone) } else { &begins[first + at] };
        lines[block].extend([begin.as_str(), end.as_str()]);
    }
    for (block, missing) in lines.iter_mut().zip(missing) {
        block.insert_str(0, &left_out(missing));
    }
    lines
}

/// A line about omitted messages. Empty if there are none.
pub(super) fn left_out(missing: usize) -> String {
    match missing {
        0 => String::new(),
        1 => "[1 earlier message left out]\n".to_owned(),
        _ => format!("[{missing} earlier messages left out]\n"),
    }
}
