//! Describes the scene to a companion: the place, the time, the participants, and the age of the messages.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use super::data::{escape_into, plain_name, unmarked_name, weight};
use super::texts::MINORS;
use super::{Other, Said, Scene};
use crate::id::CompanionId;
use crate::message::Role;
use crate::moment::Moment;
use crate::text::{one_line, shortened};

/// The maximum number of names of each kind.
const MAX_NAMES: usize = 12;
/// The maximum number of characters in the description of another companion.
const MAX_ABOUT_CHARS: usize = 80;
/// The maximum number of characters of the place's title and topic.
const MAX_TITLE_CHARS: usize = 200;
const MAX_TOPIC_CHARS: usize = 300;
/// The age in seconds from which the time of the last message is given.
const OLD_SECS: u64 = 600;
/// The duration in seconds from which a silence before the new messages is mentioned.
const GAP_SECS: u64 = 3_600;
/// Begins the sentence about recent speakers.
pub(super) const SPOKE_LATELY: &str = "Who spoke lately:";

impl Scene {
    /// The instruction about minors. Empty if there are none.
    pub(super) fn audience(&self) -> &'static str {
        if self.has_minors { MINORS } else { "" }
    }

    /// The time zone for times in the prompt. `None`: it says no times, because a story has its own.
    pub(super) fn dates(&self) -> Option<&TimeZone> {
        (!self.words.is_role_play()).then_some(&self.zone)
    }

    /// Sentences about the place, the time and the participants. The time is included if there is one. The rest weighs at most `room`.
    ///
    /// `earlier` and `new` are the messages that the prompt shows, oldest first.
    pub(super) fn sentences(&self, reader: &CompanionId, earlier: &[&Said], new: &[&Said], room: usize) -> String {
        let spoken = earlier.iter().chain(new).copied();
        let newest = spoken.clone().next_back().map_or(self.now, |said| said.at);
        // Clocks can be set back.
        let now = self.now.max(newest);
        let time = now.zoned(&self.zone).strftime("%A, %Y-%m-%d, %H:%M").to_string();
        let place = if self.is_call { "You are in a voice call, where everybody hears you." } else { "You are in a group chat." };
        let is_dated = self.dates().is_some();
        let mut text = if is_dated { format!("{place} It is {time} ({}).", self.zone_name(now)) } else { place.to_owned() };
        let mut left = room;
        let mut add = |sentence: Option<String>| {
            let sentence = sentence.filter(|sentence| weight(sentence) < left);
            if let Some(sentence) = sentence {
                left -= weight(&sentence) + 1;
                text.push(' ');
                text.push_str(&sentence);
            }
        };
        let place = self.place.as_ref();
        add(place.map(|place| format!("This place is called {}.", json(&one_line(&place.title, MAX_TITLE_CHARS)))));
        let topic = place.and_then(|place| place.topic.as_deref());
        add(topic.map(|topic| format!("Its topic is {}.", json(&one_line(topic, MAX_TOPIC_CHARS)))));
        add(self.gap(earlier, new).filter(|_| is_dated));
        add((is_dated && now.since(newest).as_secs() >= OLD_SECS)
            .then(|| format!("The last message is from {}.", self.when(newest, now))));
        add(list(&companions(&self.others), room * 2 / 3).map(|companions| format!("Other companions here: {companions}.")));
        add(list(&people(spoken, reader), room / 3).map(|people| format!("{SPOKE_LATELY} {people}.")));
        text
    }

    /// A sentence about a long silence before the new messages.
    fn gap(&self, earlier: &[&Said], new: &[&Said]) -> Option<String> {
        let (before, first) = (earlier.last()?, new.first()?);
        let is_long = first.at.since(before.at).as_secs() >= GAP_SECS;
        is_long.then(|| format!("Before what was just said, nothing was said since {}.", self.when(before.at, first.at)))
    }

    /// A moment, as a phrase relative to `now`.
    fn when(&self, then: Moment, now: Moment) -> String {
        let (then, now) = (then.zoned(&self.zone), now.zoned(&self.zone));
        let time = then.strftime("%H:%M");
        if then.date() == now.date() {
            format!("today {time}")
        } else if Some(then.date()) == now.date().yesterday().ok() {
            format!("yesterday {time}")
        } else {
            then.strftime("%A, %Y-%m-%d %H:%M").to_string()
        }
    }

    /// The name of the zone, or its offset from UTC.
    fn zone_name(&self, now: Moment) -> String {
        // A zone that was read from a file has an empty name.
        match self.zone.iana_name().filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => format!("UTC{}", now.zoned(&self.zone).strftime("%:z")),
        }
    }
}

/// The names of recent speakers as JSON strings, the latest first. Excludes companions, which are listed separately, and the persons that events
/// name.
fn people<'a>(spoken: impl DoubleEndedIterator<Item = &'a Said>, reader: &CompanionId) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let words = spoken.rev().filter(|said| !said.message.is_by(reader) && !said.message.is_event());
    let authors = words.map(|said| &said.message.from);
    let others = authors.filter(|author| author.role != Role::Companion);
    let new = others.filter(|author| seen.insert((author.role, &*author.id)));
    new.map(|author| json(&plain_name(&author.name))).collect()
}

/// An untrusted text as a JSON string.
fn json(text: &str) -> String {
    let mut string = "\"".to_owned();
    escape_into(&mut string, text);
    string + "\""
}

/// The companions, each with its name and the beginning of its chattiness.
fn companions(others: &[Other]) -> Vec<String> {
    let about = |chattiness: &str| {
        let line = one_line(chattiness, usize::MAX);
        let ends = [";", ". ", " — ", " - "].map(|end| line.find(end));
        let clause = line[..ends.into_iter().flatten().min().unwrap_or(line.len())].trim_end_matches('.');
        unmarked(&shortened(clause, MAX_ABOUT_CHARS))
    };
    let shown = others.iter().map(|other| {
        let name = unmarked_name(&other.name);
        match other.chattiness.as_deref().map(about).filter(|about| !about.is_empty()) {
            Some(about) => format!("{name} ({about})"),
            None => name,
        }
    });
    shown.collect()
}

/// An operator's text for use between brackets. Removes brackets.
fn unmarked(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !matches!(c, '(' | ')' | '<' | '>' | '[' | ']')).collect();
    plain.trim().to_owned()
}

/// The first names that weigh at most `room` together, and the number of the others. None if no name fits.
fn list(names: &[String], room: usize) -> Option<String> {
    const MORE_WEIGHT: usize = 20;
    let mut left = room.saturating_sub(MORE_WEIGHT);
    let fits = |name: &&String| {
        let is_fitting = weight(name) + 2 <= left;
        left = left.saturating_sub(weight(name) + 2);
        is_fitting
    };
    let shown: Vec<&str> = names.iter().take(MAX_NAMES).take_while(fits).map(String::as_str).collect();
    let more = names.len() - shown.len();
    let rest = (more > 0).then(|| format!("{more} more"));
    (!shown.is_empty()).then(|| shown.into_iter().map(str::to_owned).chain(rest).collect::<Vec<_>>().join(", "))
}
