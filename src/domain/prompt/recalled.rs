//! Selects and writes the recalled messages of a prompt.

use jiff::tz::TimeZone;

use super::Said;
use super::data::weight;
use super::line::{Reader, beginning, line_end};
use super::texts::RECALLED;
use crate::id::Seq;

/// One message takes at most the room divided by this number. A longer one is cut in its middle.
const SHARE: usize = 3;
/// An upper bound of the weight of the texts around the lines.
const DELIMITERS_WEIGHT: usize = 60;

/// The lines of the best messages that fit, oldest first, each with its time, and their numbers, the best first. `found` is ordered by quality, the
/// best first. Messages from `shown_from` on are skipped, because the prompt shows them anyway.
pub(super) fn recalled(
    found: &[Said],
    shown_from: Option<Seq>,
    reader: Reader<'_>,
    zone: &TimeZone,
    room: usize,
) -> (String, Vec<Seq>) {
    let room = room.saturating_sub(weight(RECALLED) + DELIMITERS_WEIGHT);
    let (mut lines, mut left) = (Vec::<(Seq, String)>::new(), room);
    for said in found.iter().filter(|said| shown_from.is_none_or(|from| said.seq < from)) {
        let begin = beginning(said.at, Some(zone));
        let most = (room / SHARE).saturating_sub(weight(&begin));
        let Some(line) = line_end(said, Some(reader), most).map(|end| begin + &end) else { continue };
        if weight(&line) <= left {
            left -= weight(&line);
            lines.push((said.seq, line));
        }
    }
    let numbers = lines.iter().map(|(seq, _)| *seq).collect();
    lines.sort_by_key(|(seq, _)| *seq);
    (lines.into_iter().map(|(_, line)| line).collect(), numbers)
}
