//! Reads the notes that a model proposes, and drops those that it may not make.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

use super::names;
use crate::id::{CompanionId, Seq};
use crate::message::{Author, Role};
use crate::moment::Moment;
use crate::note::{Dropped, MOST_SOURCES, Note, fits};
use crate::phrases::{self, Phrases};
use crate::prompt::{Said, labels};
use crate::raw_answer;
use crate::recall::words::Words;
use crate::text::one_line;

/// The maximum number of notes of one call.
const MOST_NOTES: usize = 20;
/// A run of at least so many letters and digits is a key.
const KEY: usize = 20;
/// The number of digits of payment cards.
const CARD: std::ops::RangeInclusive<usize> = 13..=19;

/// The phrases of each section. Those of `instructions` and `secrets` are never noted, the other sections are sensitive topics.
static PHRASES: LazyLock<Phrases<&str>> = LazyLock::new(|| Phrases::new(phrases::sections(include_str!("words.txt"))));

/// The messages from which notes are made, and what the check needs besides.
pub struct Batch<'a> {
    /// As the prompt shows them: the number of a message in an answer is its place, from 1.
    pub messages: &'a [Said],
    /// The earlier notes that the prompt shows, with their numbers.
    pub known: &'a [(Seq, Arc<Note>)],
    /// The names of people who turned notes off, or opted out.
    pub unnoted: &'a [Arc<str>],
    /// The companions that are present, by id.
    pub companions: &'a [CompanionId],
    pub words: &'a Words,
    /// The time zone of dates.
    pub zone: &'a TimeZone,
}

/// A note as a model writes it.
#[derive(Deserialize)]
struct Proposed {
    /// The name of the one that it is about, or `room`.
    about: String,
    text: String,
    /// The places of its sources.
    #[serde(deserialize_with = "places")]
    from: Vec<usize>,
    /// The last day on which it holds, as in `2026-05-03`.
    until: Option<String>,
    /// The place of the earlier note that it replaces.
    #[serde(default, deserialize_with = "places")]
    replaces: Vec<usize>,
}

/// The whole numbers of a value: a number, a text with a number such as `"#3"`, or a list of these.
fn places<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<usize>, D::Error> {
    let place = |value: &Value| match value {
        Value::Number(number) => number.as_u64()?.try_into().ok(),
        Value::String(text) => text.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok(),
        _ => None,
    };
    let value = Value::deserialize(deserializer)?;
    let values = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
    Ok(values.iter().filter_map(place).collect())
}

/// The notes in a model's answer that may be made, and how many were dropped for each reason.
pub fn read(answer: &str, batch: &Batch<'_>) -> (Vec<Note>, BTreeMap<Dropped, u32>) {
    let (mut notes, mut dropped) = (Vec::<Note>::new(), BTreeMap::new());
    for proposed in proposed(&raw_answer::decision(answer).text) {
        let note = match check(&proposed, batch) {
            Ok(note) if notes.iter().any(|other| is_same(other, &note)) => Err(Dropped::Known),
            Ok(_) if notes.len() == MOST_NOTES => Err(Dropped::TooMany),
            note => note,
        };
        match note {
            Ok(note) => notes.push(note),
            Err(reason) => *dropped.entry(reason).or_default() += 1,
        }
    }
    (notes, dropped)
}

/// The objects of an answer that are notes, whatever surrounds them.
fn proposed(answer: &str) -> Vec<Proposed> {
    let (mut found, mut rest) = (Vec::new(), answer);
    while let Some(at) = rest.find('{') {
        let mut objects = serde_json::Deserializer::from_str(&rest[at..]).into_iter();
        let end = match objects.next() {
            Some(Ok(proposed)) => {
                found.push(proposed);
                objects.byte_offset()
            }
            // It may contain notes.
            _ => 1,
        };
        rest = &rest[at + end..];
    }
    found
}

fn check(proposed: &Proposed, batch: &Batch<'_>) -> Result<Note, Dropped> {
    let text = one_line(&proposed.text, usize::MAX);
    if !fits(&text) {
        return Err(Dropped::Length);
    }
    let places: BTreeSet<usize> = proposed.from.iter().copied().collect();
    let sources: Option<Vec<&Said>> = places.iter().map(|place| batch.messages.get(place.checked_sub(1)?)).collect();
    let sources = sources.filter(|sources| (1..=MOST_SOURCES).contains(&sources.len())).ok_or(Dropped::Sources)?;
    let said_by = &sources[0].message.from;
    let is_one = sources.iter().all(|said| (said.message.from.role, &said.message.from.id) == (said_by.role, &said_by.id));
    let about = subject(&proposed.about, batch).ok_or(Dropped::Subject)?;
    // A companion's words are only evidence about itself.
    let is_own = about.as_ref().is_some_and(|about| (about.role, &about.id) == (said_by.role, &said_by.id));
    if !is_one || said_by.role == Role::Bot || said_by.role == Role::Companion && !is_own {
        return Err(Dropped::Sources);
    }
    if batch.unnoted.iter().any(|name| names(&text, name)) {
        return Err(Dropped::Subject);
    }
    forbidden(&text).map_or(Ok(()), Err)?;
    let mut topic = batch.words.topic(&text);
    about.iter().chain([said_by]).for_each(|author| topic.retain(|word| !batch.words.topic(&author.name).contains(word)));
    let is_supported = sources.iter().any(|said| !batch.words.topic(&said.message.text).is_disjoint(&topic));
    if !is_supported {
        return Err(Dropped::Unsupported);
    }
    let replaces = proposed.replaces.first().and_then(|place| batch.known.get(place.checked_sub(1)?));
    // What a person asked to remember stays until the person says so.
    let replaces = replaces.filter(|(_, note)| note.said_by.id == said_by.id && note.said_by.role == said_by.role && !note.asked);
    let note = Note {
        about,
        said_by: said_by.clone(),
        text: text.into(),
        sources: sources.iter().map(|said| said.seq).collect(),
        said_at: sources.iter().map(|said| said.at).max().unwrap_or_default(),
        until: proposed.until.as_deref().and_then(|day| end_of(day, batch.zone)),
        replaces: replaces.map(|(seq, _)| *seq),
        asked: false,
        companions: batch.companions.to_vec(),
    };
    let is_known = batch.known.iter().any(|(_, known)| is_same(known, &note));
    if is_known { Err(Dropped::Known) } else { Ok(note) }
}

/// The one that a note is about: a speaker of the batch by the label in the prompt, or `Some(None)` for the room.
fn subject(label: &str, batch: &Batch<'_>) -> Option<Option<Author>> {
    let plain = |text: &str| text.trim().trim_start_matches('@').to_lowercase();
    let label = plain(label.trim_end().trim_end_matches(" (companion)"));
    if ["room", "the room", "everybody", "us"].contains(&&*label) {
        return Some(None);
    }
    let mut named = labels(batch.messages).into_iter().filter(|(known, _)| plain(known) == label);
    named.next().map(|(_, author)| Some(author)).filter(|author| author.as_ref().is_some_and(|author| author.role != Role::Bot))
}

/// The end of a day.
fn end_of(day: &str, zone: &TimeZone) -> Option<Moment> {
    let next = day.trim().parse::<Date>().ok()?.tomorrow().ok()?.to_zoned(zone.clone()).ok()?;
    u64::try_from(next.timestamp().as_microsecond()).ok().map(Moment::from_micros)
}

/// The sensitive topics of a text, by name: health, money, love, faith and whereabouts.
pub fn sensitive_topics(text: &str) -> BTreeSet<&'static str> {
    PHRASES.found_in(text).into_iter().filter(|section| dropped(section) == Dropped::Sensitive).collect()
}

/// Why a text may not be noted.
pub(super) fn forbidden(text: &str) -> Option<Dropped> {
    let found = PHRASES.found_in(text).into_iter().map(dropped).chain(has_secret(text).then_some(Dropped::Secret));
    found.min_by_key(|reason| *reason == Dropped::Sensitive)
}

fn dropped(section: &str) -> Dropped {
    match section {
        "instructions" => Dropped::Instruction,
        "secrets" => Dropped::Secret,
        _ => Dropped::Sensitive,
    }
}

/// Whether a text has what may be a key, or the number of a payment card.
fn has_secret(text: &str) -> bool {
    let is_key = |word: &str| {
        let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
        word.len() >= KEY
            && word.is_ascii()
            && has(char::is_ascii_digit)
            && has(char::is_ascii_alphabetic)
            && !word.contains("://")
    };
    let mut run = String::new();
    let mut has_card = false;
    for c in text.chars().chain(['.']) {
        match c {
            c if c.is_ascii_digit() => run.push(c),
            ' ' | '-' if !run.is_empty() => {}
            _ => has_card |= is_card(&std::mem::take(&mut run)),
        }
    }
    has_card || text.split_whitespace().any(is_key)
}

/// Whether digits are the number of a payment card, by their check digit (Luhn).
fn is_card(digits: &str) -> bool {
    let value = |(place, digit): (usize, u8)| {
        let digit = u32::from(digit - b'0') * if place % 2 == 1 { 2 } else { 1 };
        digit / 10 + digit % 10
    };
    CARD.contains(&digits.len()) && digits.bytes().rev().enumerate().map(value).sum::<u32>() % 10 == 0
}

fn is_same(one: &Note, other: &Note) -> bool {
    let who = |note: &Note| note.about.as_ref().map(|about| (about.role, about.id.clone()));
    who(one) == who(other) && one.text.to_lowercase() == other.text.to_lowercase()
}
