//! Writes the newest messages that fit, as one line of JSON each.

use jiff::tz::TimeZone;

use super::Said;
use super::data::weight;
use super::line::{Reader, STAMP_WEIGHT, Stamps, line_end};

/// An upper bound of the weight of the line about messages left out.
const MARK_WEIGHT: usize = 60;

/// The blocks of lines, one for each block of messages, in the same order. A block without messages is empty.
///
/// All blocks together weigh at most `room`. The oldest messages are left out first. A message that would take more than half the room is cut in its
/// middle. A line ends in a line feed, and no text contains one. Without a time zone, no times are shown.
pub(super) fn transcript<const N: usize>(
    blocks: [&[&Said]; N],
    reader: Option<Reader<'_>>,
    zone: Option<&TimeZone>,
    room: usize,
) -> [String; N] {
    let room = room.saturating_sub(N * MARK_WEIGHT);
    let mut left = room;
    let mut ends: Vec<(usize, &Said, String)> = Vec::new();
    let newest_first = blocks.iter().enumerate().rev().flat_map(|(at, block)| block.iter().rev().map(move |said| (at, *said)));
    for (at, said) in newest_first {
        let end = line_end(said, reader, room / 2).filter(|end| weight(end) + STAMP_WEIGHT <= left);
        let Some(end) = end else { break };
        left -= weight(&end) + STAMP_WEIGHT;
        ends.push((at, said, end));
    }
    let mut stamps = Stamps::new(zone);
    let mut lines = blocks.map(|_| String::new());
    let mut missing = blocks.map(<[_]>::len);
    for (at, said, end) in ends.iter().rev() {
        missing[*at] -= 1;
        lines[*at].push_str(&stamps.line(said.at, end));
    }
    for (block, missing) in lines.iter_mut().zip(missing) {
        block.insert_str(0, &left_out(missing));
    }
    lines
}

/// A line about messages that are not shown. Empty if all are.
pub(super) fn left_out(missing: usize) -> String {
    match missing {
        0 => String::new(),
        1 => "[1 earlier message left out]\n".to_owned(),
        _ => format!("[{missing} earlier messages left out]\n"),
    }
}
