//! Splits the answer of one call for several companions into one vote for each (docs/design/turn-taking.md T-23).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::object::{self, Field, Object};
use super::{MAX_SEARCHED_BYTES, Vote, is_contradicted_by, vote_of};
use crate::answer::{Verdict, Words};
use crate::id::CompanionId;
use crate::raw_answer;
use crate::text::first_bytes;
use crate::vote_fields::is_field;

/// The fields in which an object may name its companion.
const NAMING: [&str; 5] = ["id", "companion", "name", "from", "character"];

/// A companion that was asked for its vote.
#[derive(Clone, Debug, PartialEq)]
pub struct Voter {
    pub id: CompanionId,
    pub name: Arc<str>,
}

/// Splits an answer into the parts of the companions. Each part has the form of an answer to a single companion: an object with
/// the fields of a vote, or lines of text. [`read`](super::read) parses it. Missing, unreadable and contradictory parts are left
/// out.
///
/// A part is matched by the id or the name of its companion: in the name of the field that contains it, in one of its fields
/// (`id`, `name`, …), or in the words before it. Objects and lists around the parts are skipped. Without any object, a line that
/// begins with an id or a name and a colon begins a part, in two lines as in a plain answer. Companions that were not asked are
/// ignored.
///
/// The contradictions are those of a single vote: a second, different part for the same companion, a field that occurs twice, a
/// sentence beside the objects that ends with the opposite verdict, or the text before the end of a thought that was not opened.
pub fn parts(text: &str, voters: &[Voter], words: Words<'_>) -> BTreeMap<CompanionId, String> {
    let seen = raw_answer::decision(first_bytes(text, MAX_SEARCHED_BYTES));
    let earlier = seen.unopened.map(|before| Parts::of(before, voters, words));
    let found = Parts::of(&seen.text, voters, words);
    let agreed = found.of.iter().filter_map(|(voter, parts)| {
        let part = found.agreed(parts, words)?;
        let earlier = earlier.iter().filter_map(|earlier| earlier.of.get(voter)).flatten();
        let is_contradicted = earlier.filter(|part| part.is_readable()).any(|earlier| !earlier.vote.agrees_with(&part.vote));
        let is_denied = seen.unopened.is_some_and(|before| is_contradicted_by(before, &part.vote, false, words));
        (!is_contradicted && !is_denied).then(|| (voters[*voter].id.clone(), part.text.clone()))
    });
    agreed.collect()
}

/// The parts of a text.
#[derive(Default)]
struct Parts<'a> {
    /// By the indices of their companions among the voters.
    of: BTreeMap<usize, Vec<Part>>,
    /// The text around the objects.
    prose: Vec<&'a str>,
}

struct Part {
    vote: Vote,
    text: String,
    is_contradicted: bool,
}

impl Part {
    fn is_readable(&self) -> bool {
        self.vote.verdict != Verdict::Unreadable
    }
}

impl<'a> Parts<'a> {
    fn of(text: &'a str, voters: &[Voter], words: Words<'_>) -> Self {
        let found = object::find(text);
        let mut parts = Self::default();
        if !found.has_begun {
            parts.add_lines(text, voters, words);
            return parts;
        }
        for (object, before) in found.objects.iter().zip(&found.before) {
            let label = before.trim_end().lines().next_back().and_then(|line| named(line, voters));
            match label.filter(|_| object.get("decision").is_some()) {
                Some(voter) if naming(object, voters).is_none_or(|named| named == voter) => parts.add(voter, object, words),
                _ => parts.add_within(object, voters, words),
            }
        }
        parts.prose = found.prose;
        parts
    }

    /// The part of one companion that counts: the first readable one, if there is no contradiction.
    fn agreed<'p>(&self, parts: &'p [Part], words: Words<'_>) -> Option<&'p Part> {
        let mut readable = parts.iter().filter(|part| part.is_readable());
        let part = readable.next()?;
        let is_contradicted = parts.iter().any(|part| part.is_contradicted)
            || readable.any(|other| !other.vote.agrees_with(&part.vote))
            || self.prose.iter().any(|prose| part.vote.is_denied_by(prose, words));
        (!is_contradicted).then_some(part)
    }

    fn add(&mut self, voter: usize, object: &Object, words: Words<'_>) {
        let fields = object.fields.iter().filter(|(name, _)| is_field(name));
        let plain = fields.filter_map(|(name, _)| Some((name, object.get(name).filter(|value| !value.is_null())?)));
        // Texts and numbers can always be serialised.
        let text = serde_json::to_string(&plain.collect::<BTreeMap<_, _>>()).unwrap_or_default();
        let part = Part { vote: vote_of(object, words), text, is_contradicted: object.contradicts_itself() };
        self.of.entry(voter).or_default().push(part);
    }

    /// Adds the parts in an object: the object itself if it names its companion, or those in its fields.
    fn add_within(&mut self, object: &Object, voters: &[Voter], words: Words<'_>) {
        if let Some(voter) = naming(object, voters) {
            return self.add(voter, object, words);
        }
        for (name, field) in &object.fields {
            let voter = named(name, voters);
            match (voter, field) {
                (Some(voter), Field::Object(part)) => self.add(voter, part, words),
                // `{"aria": "NO"}`
                (Some(voter), Field::Other(decision @ (Value::String(_) | Value::Bool(_)))) => {
                    let fields = [("decision".to_owned(), Field::Other(decision.clone()))];
                    self.add(voter, &Object { fields: fields.into(), ..Object::default() }, words);
                }
                (None, Field::Object(inner)) => self.add_within(inner, voters, words),
                (None, Field::List(items)) => {
                    for item in items {
                        if let Field::Object(item) = item {
                            self.add_within(item, voters, words);
                        }
                    }
                }
                (_, Field::List(_) | Field::Other(_)) => {}
            }
            let repeated = voter.filter(|_| object.contradicting.contains(name)).and_then(|voter| self.of.get_mut(&voter));
            repeated.into_iter().flatten().for_each(|part| part.is_contradicted = true);
        }
    }

    /// Adds the parts of a text without objects.
    fn add_lines(&mut self, text: &str, voters: &[Voter], words: Words<'_>) {
        let mut open: Option<(usize, String)> = None;
        let mut blocks = Vec::new();
        for line in text.lines() {
            let label = line.split_once([':', '：']).and_then(|(label, rest)| Some((named(label, voters)?, rest)));
            match (label, &mut open) {
                (Some((voter, rest)), _) => blocks.extend(open.replace((voter, rest.to_owned()))),
                (None, Some((_, block))) => *block = format!("{block}\n{line}"),
                (None, None) => {}
            }
        }
        for (voter, block) in blocks.into_iter().chain(open) {
            let text = block.trim().to_owned();
            self.of.entry(voter).or_default().push(Part { vote: super::read(&text, words), text, is_contradicted: false });
        }
    }
}

/// The companion that an object with a decision names in one of its fields.
fn naming(object: &Object, voters: &[Voter]) -> Option<usize> {
    object.get("decision")?;
    NAMING.iter().find_map(|name| named(object.get(name)?.as_str()?, voters))
}

/// The index of the companion with this label. It is matched by id, else by a name that no other voter has, ignoring punctuation.
fn named(label: &str, voters: &[Voter]) -> Option<usize> {
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let id = label.trim().to_lowercase();
    if let Some(exact) = voters.iter().position(|voter| voter.id.as_str().to_lowercase() == id) {
        return Some(exact);
    }
    let label = plain(label);
    let is_named = |voter: &Voter| [voter.id.as_str(), &voter.name].iter().any(|name| plain(name) == label);
    let mut matching = voters.iter().enumerate().filter(|(_, voter)| is_named(voter)).map(|(at, _)| at);
    matching.next().filter(|_| !label.is_empty() && matching.next().is_none())
}
