//! Selects and writes the recalled messages of a prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::Said;
use super::data::weight;
use super::line::{Reader, note_line, short_line};
use super::texts::{PEOPLE, RECALLED, RECALLED_WITH_NOTES};
use crate::id::Seq;
use crate::message::{Author, Recalled};
use crate::moment::Moment;
use crate::note::Note;

/// One message takes at most the room divided by this number. A longer one is cut in its middle.
const SHARE: usize = 3;
/// An upper bound of the weight of the texts around the lines.
const DELIMITERS_WEIGHT: usize = 44;

/// What was looked up for a statement, the best first.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) messages: &'a [Said],
    pub(super) notes: &'a [(Recalled, Arc<Note>)],
}

/// A line, with its origin, its time and its day.
struct Line {
    of: Recalled,
    at: Moment,
    day: String,
    text: String,
}

/// The lines that are chosen, within a room.
struct Lines {
    left: usize,
    chosen: Vec<Line>,
}

impl Lines {
    /// Adds a line if it fits. `write` writes it with at most a weight.
    fn add(
        &mut self,
        of: Recalled,
        at: Moment,
        zone: &TimeZone,
        most: usize,
        write: impl FnOnce(usize) -> Option<String>,
    ) -> bool {
        let day = format!("{}:\n", at.zoned(zone).date());
        let day_weight = if self.chosen.iter().any(|line| line.day == day) { 0 } else { weight(&day) };
        let Some(text) = write(most.saturating_sub(day_weight)) else { return false };
        let Some(rest) = self.left.checked_sub(weight(&text) + day_weight) else { return false };
        self.left = rest;
        self.chosen.push(Line { of, at, day, text });
        true
    }
}

/// The lines of the best notes and messages that fit, oldest first, below the days on which they were said, and their numbers, the best first. Notes
/// take at most half of the room. What the prompt shows anyway, from `talk` on, is skipped, and a message that a note was made from comes after
/// the others.
pub(super) fn recalled(
    found: Found<'_>,
    talk: &[&Said],
    reader: Reader<'_>,
    zone: &TimeZone,
    room: usize,
) -> (String, Vec<Recalled>) {
    let room = room.saturating_sub(weight(heading(found.notes)) + DELIMITERS_WEIGHT);
    let is_older = |seq: Seq| is_older(seq, talk);
    let others = || found.messages.iter().chain(talk.iter().copied()).map(|said| &said.message.from);
    let has_namesake =
        |from: &Author| others().any(|other| other.name == from.name && (other.role, &other.id) != (from.role, &from.id));
    let mut lines = Lines { left: room / 2, chosen: Vec::new() };
    let mut noted = BTreeSet::<Seq>::new();
    for (of, note) in found.notes {
        let is_new = of.here().is_none() || note.sources.iter().any(|source| is_older(*source));
        let line = |most| note_line(note, has_namesake(&note.said_by), most);
        if is_new && lines.add(of.clone(), note.said_at, zone, room / SHARE, line) && of.here().is_some() {
            noted.extend(&note.sources);
        }
    }
    lines.left += room - room / 2;
    let older = || found.messages.iter().filter(|said| is_older(said.seq));
    for said in older().filter(|said| !noted.contains(&said.seq)).chain(older().filter(|said| noted.contains(&said.seq))) {
        let line = |most| short_line(said, reader, has_namesake(&said.message.from), most);
        lines.add(Recalled::Here(said.seq), said.at, zone, room / SHARE, line);
    }
    let mut lines = lines.chosen;
    let chosen = lines.iter().map(|line| line.of.clone()).collect();
    lines.sort_by_key(|line| (line.at, line.of.here()));
    let of_day = lines.chunk_by(|line, next| line.day == next.day);
    let text = of_day.flat_map(|lines| [&*lines[0].day].into_iter().chain(lines.iter().map(|line| &*line.text))).collect();
    (text, chosen)
}

/// The heading of what was looked up.
pub(super) const fn heading(notes: &[(Recalled, Arc<Note>)]) -> &'static str {
    if notes.is_empty() { RECALLED } else { RECALLED_WITH_NOTES }
}

/// Whether an event is older than the talk that is shown.
fn is_older(seq: Seq, talk: &[&Said]) -> bool {
    talk.first().is_none_or(|first| seq < first.seq)
}

/// The lines of notes about people that fit, and which they are. Those about one person weigh at most `most`. Notes that are shown as recalled, or that were
/// made from what the prompt shows from `talk` on, are left out.
pub(super) fn people(
    notes: &[(Recalled, Arc<Note>)],
    recalled: &[Recalled],
    talk: &[&Said],
    zone: &TimeZone,
    most: usize,
    room: usize,
) -> (String, Vec<Recalled>) {
    let mut left = room.saturating_sub(weight(PEOPLE) + DELIMITERS_WEIGHT);
    let (mut used, mut lines, mut chosen) = (BTreeMap::<&str, usize>::new(), Vec::new(), Vec::new());
    let is_new = |of: &Recalled, note: &Note| {
        let is_shown = of.here().is_some() && note.sources.iter().any(|source| !is_older(*source, talk));
        !is_shown && !recalled.contains(of)
    };
    for (of, note) in notes.iter().filter(|(of, note)| is_new(of, note)) {
        let Some(line) = note_line(note, false, most) else { continue };
        let line = format!("{} {line}", note.said_at.zoned(zone).date());
        let of_person = used.entry(&note.said_by.id).or_default();
        if *of_person + weight(&line) <= most
            && let Some(rest) = left.checked_sub(weight(&line))
        {
            left = rest;
            *of_person += weight(&line);
            lines.push(line);
            chosen.push(of.clone());
        }
    }
    (lines.concat(), chosen)
}
