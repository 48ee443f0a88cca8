//! Estimates without a model call how likely a companion would answer the newest messages of a room (docs/design/gate.md G-41).
//!
//! The estimate is a logistic model. Its features are the times of messages, the named participants and the words. Its weights
//! were trained on group chat between people (docs/relevance.md). Only logits are compared, never probabilities, so that the same
//! messages give the same decision on every machine.

mod weights;

use serde::{Deserialize, Serialize};

use super::id::CompanionId;
use super::message::{Author, Message, Role};
use super::named::named;
pub use weights::{THRESHOLD, WEIGHTS};

/// The numbers of people and companions, of recent authors, and of the companion's own words that are remembered.
const OTHERS: usize = 8;
const RECENT: usize = 20;
const OWN_WORDS: usize = 16;
/// The distance in messages from which on distances count as equal.
const FARTHEST: u16 = 200;
/// The minimum length of a word that counts as shared, in bytes.
const LONG: usize = 4;
/// The maximum number of words of a short reaction.
const SHORT: usize = 4;
const REACTIONS: &[&str] = &[
    "ah", "bye", "cool", "good", "great", "haha", "heh", "hehe", "hello", "hey", "hi", "hm", "hmm", "k", "lmao", "lol", "nice",
    "no", "nope", "np", "oh", "ok", "okay", "right", "rofl", "sure", "thanks", "thx", "true", "ty", "wow", "yeah", "yep", "yes",
    "yup",
];

named! {
    /// A feature of a message (docs/relevance.md). A message is *open* if it neither names the companion nor addresses another
    /// participant.
    pub enum Feature {
        /// Always 1.
        Constant = "constant",
        /// It names the companion.
        Named = "named",
        /// It names the companion, times the distance to the companion's last message.
        NamedLongAgo = "named_long_ago",
        /// It names another participant first.
        OtherNamed = "other_named",
        /// It names another participant, but not first.
        OtherNamedLater = "other_named_later",
        /// The companion spoke just before the author; open.
        JustBefore = "just_before",
        /// The distance to the companion's last message, as a logarithm.
        Recency = "recency",
        /// `Recency` of an open message.
        RecencyOpen = "recency_open",
        /// That distance is at most 20; open.
        Within20 = "within20",
        /// That distance is at least 60.
        Over60 = "over60",
        /// The number of turns of others since the companion spoke, as a logarithm.
        TurnsSince = "turns_since",
        /// It has a question mark.
        Question = "question",
        /// It has a question mark and names the companion.
        NamedQuestion = "named_question",
        /// The number of its words, as a logarithm.
        Length = "length",
        /// The number of recent authors, divided by ten; open.
        Present = "present",
        /// The number of long words that the companion used recently; open.
        SharedWords = "shared_words",
        /// The companion's share of the recent messages: 0 up to 25 %, rising to 1 at 60 %.
        Share = "share",
        /// It is a short reaction.
        Reaction = "reaction",
        /// The number of short reactions among the last five messages.
        ReactionBurst = "reaction_burst",
        /// Its author named the companion recently; open.
        NamedMeLately = "named_me_lately",
        /// The companion named its author recently; open.
        NamedByMeLately = "named_by_me_lately",
        /// Its author and the companion named each other most recently; open.
        TalksWithMe = "talks_with_me",
        /// Its author and another participant named each other most recently; open.
        TalksWithOther = "talks_with_other",
        /// Its author named another participant recently; open.
        NamedOtherLately = "named_other_lately",
        /// The previous message is by the same author; open.
        Continues = "continues",
    }
}

/// The number of features.
pub const FEATURES: usize = Feature::ALL.len();

/// The participant that a message names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The companion.
    Me,
    /// Another participant, by a mention or a reply.
    Other,
    /// None that the platform knows. The first word may be a name.
    Unknown,
}

/// A message as input of the model.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// The name of its author.
    pub from: &'a str,
    pub is_person: bool,
    pub text: &'a str,
    pub named: Named,
}

impl<'a> Heard<'a> {
    /// Converts a message from the view of a companion.
    pub fn of(companion: &CompanionId, message: &'a Message) -> Self {
        let named = match &message.address {
            address if address.includes(companion) => Named::Me,
            address if address.is_elsewhere(companion) => Named::Other,
            _ => Named::Unknown,
        };
        let Author { name, role, .. } = &message.from;
        Self { from: name, is_person: *role == Role::Person, text: &message.text, named }
    }
}

/// Another participant. Messages are numbered from 1; 0 means never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Other {
    /// A hash of the name.
    who: u32,
    /// The newest message by this participant.
    heard: u16,
    /// The newest message by this participant that named the companion.
    named_me: u16,
    /// The companion's newest message that named this participant.
    named_by_me: u16,
    /// The newest message by this participant that named another one.
    named_other: u16,
    /// The newest message in which another participant named this one.
    named_by_other: u16,
    is_person: bool,
}

/// A companion's memory of the conversation in a room: at most 256 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relevance {
    /// A hash of the companion's name. 0 before it has spoken.
    me: u32,
    /// The number of messages so far.
    count: u16,
    others: [Other; OTHERS],
    /// The authors of the recent messages, newest first.
    recent: [u16; RECENT],
    /// Which of the last eight messages were short reactions, one bit each.
    reactions: u8,
    /// Hashes of long words that the companion used, newest first.
    own_words: [u32; OWN_WORDS],
    /// The companion's newest message.
    last_own: u16,
    /// The author of the newest message, and the author before that one.
    newest: u32,
    before: u32,
    /// The number of consecutive messages by the newest author, and of others' turns since the companion spoke.
    run: u8,
    turns: u8,
}

impl Relevance {
    /// Records the next message by another participant.
    pub fn record_message(&mut self, heard: &Heard<'_>) {
        self.number_next();
        let (author, count) = (self.author(heard), self.count);
        let other = self.named_other(heard, author);
        if self.newest == author {
            self.run = self.run.saturating_add(1);
        } else {
            (self.before, self.run) = (self.newest, 1);
            self.turns = self.turns.saturating_add(1);
        }
        let known = self.other(author);
        known.heard = count;
        known.is_person = heard.is_person;
        match (heard.named, other) {
            (Named::Me, _) => known.named_me = count,
            (_, Some(_)) => known.named_other = count,
            (_, None) => {}
        }
        if let Some(who) = other.filter(|who| *who != 0) {
            self.other(who).named_by_other = count;
        }
        self.add(author, heard.text);
    }

    /// Records a message by the companion itself.
    pub fn speak(&mut self, name: &str, text: &str) {
        self.number_next();
        let me = name_hash(name);
        self.me = me;
        let (first, _) = first_word(text);
        let first = hash(first);
        if first != me && self.knows(first) {
            let count = self.count;
            self.other(first).named_by_me = count;
        }
        if self.newest != me {
            (self.before, self.run) = (self.newest, 1);
        }
        (self.last_own, self.turns) = (self.count, 0);
        for word in long_words(text) {
            if !self.own_words.contains(&word) {
                self.own_words.rotate_right(1);
                self.own_words[0] = word;
            }
        }
        self.add(me, text);
    }

    /// The features of a recorded message.
    pub fn features(&self, heard: &Heard<'_>) -> Features {
        let (author, count) = (self.author(heard), self.count);
        let known = self.others.iter().find(|other| other.who == author).copied().unwrap_or_default();
        let named = heard.named == Named::Me;
        let names_other = !named && self.named_other(heard, author).is_some();
        let names_other_later = !named
            && !names_other
            && words(heard.text).skip(1).map(hash).any(|word| word != self.me && word != author && self.knows(word));
        // It has no certain addressee.
        let is_open = !named && !names_other;
        let since = if self.last_own == 0 { FARTHEST } else { (count - self.last_own).min(FARTHEST) };
        let recently = |at: u16, most: u16| at != 0 && count - at <= most;
        let remembered = &self.recent[..usize::from(count).min(RECENT)];
        let own = remembered.iter().filter(|author| self.last_own != 0 && **author == short(self.me)).count();
        let mut present = remembered.to_vec();
        present.sort_unstable();
        present.dedup();
        let shared = long_words(heard.text).filter(|word| self.own_words.contains(word)).count().min(3);
        let (with_me, with_other) = (known.named_me.max(known.named_by_me), known.named_other.max(known.named_by_other));
        let recency = logarithm(u32::from(since));
        let is_question = heard.text.contains('?');
        let share = own as f32 / remembered.len().max(1) as f32;
        let value = |feature: Feature| match feature {
            Feature::Constant => 1.0,
            Feature::Named => flag(named),
            Feature::NamedLongAgo => flag(named) * recency,
            Feature::OtherNamed => flag(names_other),
            Feature::OtherNamedLater => flag(names_other_later),
            Feature::JustBefore => flag(self.last_own != 0 && self.before == self.me && is_open),
            Feature::Recency => recency,
            Feature::RecencyOpen => flag(is_open) * recency,
            Feature::Within20 => flag(since <= 20 && is_open),
            Feature::Over60 => flag(since >= 60),
            Feature::TurnsSince => logarithm(u32::from(self.turns)),
            Feature::Question => flag(is_question),
            Feature::NamedQuestion => flag(named && is_question),
            Feature::Length => logarithm(words(heard.text).take(50).count() as u32),
            Feature::Present => flag(is_open) * present.len() as f32 / 10.0,
            Feature::SharedWords => flag(is_open) * shared as f32,
            // Zero up to a quarter of the recent messages, and 1 from 60 %.
            Feature::Share => ((share - 0.25) / 0.35).clamp(0.0, 1.0),
            Feature::Reaction => flag(is_reaction(heard.text)),
            Feature::ReactionBurst => (self.reactions & 0b1_1111).count_ones() as f32,
            Feature::NamedMeLately => flag(recently(known.named_me, 50) && is_open),
            Feature::NamedByMeLately => flag(recently(known.named_by_me, 50) && is_open),
            Feature::TalksWithMe => flag(with_me > with_other && is_open),
            Feature::TalksWithOther => flag(with_other > with_me && is_open),
            Feature::NamedOtherLately => flag(recently(known.named_other, 40) && is_open),
            Feature::Continues => flag(self.run > 1 && is_open),
        };
        Features(Feature::ALL.map(value))
    }

    /// Whether at most one person has been seen in the room.
    pub fn has_one_person(&self) -> bool {
        self.others.iter().filter(|other| other.is_person && other.heard != 0).count() <= 1
    }

    /// The number of messages since the companion spoke. `None` if it has not, within the memory.
    pub fn since_own(&self) -> Option<u16> {
        (self.last_own != 0).then(|| self.count - self.last_own)
    }

    fn number_next(&mut self) {
        if self.count == u16::MAX {
            // Distances of this size are irrelevant.
            let half = u16::MAX / 2;
            self.count -= half;
            self.last_own = self.last_own.saturating_sub(half);
            for other in &mut self.others {
                for at in [
                    &mut other.heard,
                    &mut other.named_me,
                    &mut other.named_by_me,
                    &mut other.named_other,
                    &mut other.named_by_other,
                ] {
                    *at = at.saturating_sub(half);
                }
            }
        }
        self.count += 1;
    }

    fn add(&mut self, author: u32, text: &str) {
        self.recent.rotate_right(1);
        self.recent[0] = short(author);
        self.reactions = self.reactions << 1 | u8::from(is_reaction(text));
        self.newest = author;
    }

    fn author(&self, heard: &Heard<'_>) -> u32 {
        name_hash(heard.from)
    }

    /// The hash of the named participant other than the companion and the author. 0 if unknown.
    fn named_other(&self, heard: &Heard<'_>, author: u32) -> Option<u32> {
        let (first, is_marked) = first_word(heard.text);
        let first = hash(first);
        let is_known = first != self.me && first != author && self.knows(first);
        match heard.named {
            Named::Me => None,
            _ if is_known => Some(first),
            Named::Other => Some(0),
            Named::Unknown => (is_marked && first != author).then_some(0),
        }
    }

    fn knows(&self, who: u32) -> bool {
        self.recent.contains(&short(who)) || self.others.iter().any(|other| other.who == who)
    }

    /// The record of a participant. A new one replaces the one that was inactive for longest.
    fn other(&mut self, who: u32) -> &mut Other {
        let known = self.others.iter().position(|other| other.who == who);
        let at = known.unwrap_or_else(|| {
            let at = (0..OTHERS).min_by_key(|at| self.others[*at].heard.max(self.others[*at].named_by_me)).unwrap_or_default();
            self.others[at] = Other { who, ..Other::default() };
            at
        });
        &mut self.others[at]
    }
}

/// The reason why a companion was not asked: the estimate for the message that it would most likely have answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub logit: f32,
    /// The minimum logit for asking the companion.
    pub threshold: f32,
    /// The features that are not zero.
    pub features: Vec<(Feature, f32)>,
}

/// The features of a message, in the order of [`Feature::ALL`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Features(pub [f32; FEATURES]);

impl Features {
    pub fn get(&self, feature: Feature) -> f32 {
        self.0[feature as usize]
    }

    /// The features that are not zero, with their names.
    pub fn named(&self) -> Vec<(Feature, f32)> {
        Feature::ALL.into_iter().zip(self.0).filter(|(_, value)| *value != 0.0).collect()
    }

    /// The logarithm of the odds that the companion answers.
    pub fn logit(&self) -> f32 {
        self.0.iter().zip(WEIGHTS).map(|(value, weight)| value * weight).sum()
    }
}

fn flag(is: bool) -> f32 {
    f32::from(u8::from(is))
}

/// The base-2 logarithm of `1 + n`, linear between powers of two, so that the result is equal on all machines.
fn logarithm(n: u32) -> f32 {
    let n = n.saturating_add(1);
    let low = 1 << n.ilog2();
    n.ilog2() as f32 + (n - low) as f32 / low as f32
}

/// FNV-1a, ignoring the case of ASCII letters.
fn hash(word: &str) -> u32 {
    word.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193))
}

/// People are called by the first word of their names.
fn name_hash(name: &str) -> u32 {
    hash(words(name).next().unwrap_or(name))
}

/// Never 0, which means no participant.
fn short(who: u32) -> u16 {
    (who as u16).max(1)
}

fn is_part_of_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '[' | ']' | '\\' | '`' | '^' | '{' | '|' | '}' | '-')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char| !is_part_of_word(char)).filter(|word| !word.is_empty())
}

fn long_words(text: &str) -> impl Iterator<Item = u32> {
    words(text).filter(|word| word.len() >= LONG).map(hash)
}

/// The first word of a text, and whether it is marked as an address: `ana: …`, `ana, …`.
fn first_word(text: &str) -> (&str, bool) {
    let text = text.trim_start();
    let text = text.strip_prefix('@').unwrap_or(text);
    let (word, rest) = text.split_at(text.find(|char| !is_part_of_word(char)).unwrap_or(text.len()));
    let rest = rest.strip_prefix([':', ',', ';']);
    (word, !word.is_empty() && rest.is_some_and(|rest| !rest.trim().is_empty()))
}

/// Whether a text is short and has little content: "haha", "6", "ok thanks".
fn is_reaction(text: &str) -> bool {
    let words: Vec<&str> = words(text).take(SHORT + 1).collect();
    let is_one = |word: &&str| REACTIONS.iter().any(|reaction| word.eq_ignore_ascii_case(reaction));
    words.len() <= 1 || words.len() <= SHORT && words.iter().any(is_one)
}

#[cfg(test)]
mod tests;
