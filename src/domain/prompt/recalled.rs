//! Selects and writes the recalled messages of a prompt.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use super::Said;
use super::data::weight;
use super::line::{Reader, short_line};
use super::texts::RECALLED;
use crate::id::Seq;

/// One message takes at most the room divided by this number. A longer one is cut in its middle.
const SHARE: usize = 3;
/// An upper bound of the weight of the texts around the lines.
const DELIMITERS_WEIGHT: usize = 44;

/// The lines of the best messages that fit, oldest first, below the days on which they were said, and their numbers, the best first. `found` is ordered
/// by quality, the best first. Messages that the prompt shows anyway, from `talk` on, are skipped.
pub(super) fn recalled(found: &[Said], talk: &[&Said], reader: Reader<'_>, zone: &TimeZone, room: usize) -> (String, Vec<Seq>) {
    let room = room.saturating_sub(weight(RECALLED) + DELIMITERS_WEIGHT);
    let shown_from = talk.first().map(|said| said.seq);
    let others = || found.iter().chain(talk.iter().copied()).map(|said| &said.message.from);
    let (mut lines, mut left, mut days) = (Vec::<(Seq, String, String)>::new(), room, BTreeSet::new());
    for said in found.iter().filter(|said| shown_from.is_none_or(|from| said.seq < from)) {
        let day = format!("{}:\n", said.at.zoned(zone).date());
        let day_weight = if days.contains(&day) { 0 } else { weight(&day) };
        let from = &said.message.from;
        let has_namesake = others().any(|other| other.name == from.name && (other.role, &other.id) != (from.role, &from.id));
        let Some(line) = short_line(said, reader, has_namesake, (room / SHARE).saturating_sub(day_weight)) else { continue };
        if let Some(rest) = left.checked_sub(weight(&line) + day_weight) {
            left = rest;
            days.insert(day.clone());
            lines.push((said.seq, day, line));
        }
    }
    let numbers = lines.iter().map(|(seq, ..)| *seq).collect();
    lines.sort_by_key(|(seq, ..)| *seq);
    let text = lines
        .chunk_by(|(_, day, _), (_, next, _)| day == next)
        .flat_map(|lines| [&lines[0].1].into_iter().chain(lines.iter().map(|(.., line)| line)));
    let text = text.map(String::as_str).collect();
    (text, numbers)
}
