//! Estimates without a model call how likely a companion would answer the newest messages of a room (docs/design/gate.md G-41).
//!
//! The estimate is a logistic model. Its features are the times of messages, the named participants and the words. Its weights
//! were trained on group chat between people (docs/relevance.md). Only logits are compared, never probabilities, so that the same
//! messages give the same decision on every machine.

mod weights;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::common_words::is_function_word;
use super::id::CompanionId;
use super::message::{Author, Message, Role};
use super::named::named;
pub use weights::{THRESHOLD, WEIGHTS};

/// The numbers of people and companions, of recent authors, and of the companion's own words that are remembered.
const OTHERS: usize = 8;
const RECENT: usize = 20;
const OWN_WORDS: usize = 32;
/// The distance in messages from which on distances count as equal.
const FARTHEST: u16 = 200;
/// The minimum length of a word that counts as shared, in bytes, and how much less a word counts for each that the companion used after it.
const LONG: usize = 4;
const FADING: f32 = 0.98;
/// The maximum number of words of a short reaction.
const SHORT: usize = 4;
const REACTIONS: &[&str] = &[
    "ah", "bye", "cool", "good", "great", "haha", "heh", "hehe", "hello", "hey", "hi", "hm", "hmm", "k", "lmao", "lol", "nice",
    "no", "nope", "np", "oh", "ok", "okay", "right", "rofl", "sure", "thanks", "thx", "true", "ty", "wow", "yeah", "yep", "yes",
    "yup",
];
const THANKS: &[&str] = &["thanks", "thank", "thx", "ty", "cheers"];
const YOU: &[&str] = &["you", "your", "youre", "u", "ur"];
/// Words and word pairs of a question to all participants.
const ASKING: &[&str] = &["anybody", "anyone", "somebody", "someone", "help", "does"];
const ASKING_PAIRS: &[[&str; 2]] =
    &[["how", "do"], ["how", "can"], ["how", "to"], ["what", "is"], ["what", "s"], ["is", "there"], ["can", "i"]];

named! {
    /// A feature of a message (docs/relevance.md). A message is *open* if it neither names the companion nor addresses another
    /// participant.
    pub enum Feature {
        /// Always 1.
        Constant = "constant",
        /// It begins with the companion's name.
        NamedFirst = "named_first",
        /// It names the companion elsewhere.
        NamedLater = "named_later",
        /// It names the companion, times the distance to the companion's last message.
        NamedLongAgo = "named_long_ago",
        /// It names the companion and has a question mark.
        NamedQuestion = "named_question",
        /// It addresses another participant first.
        OtherNamed = "other_named",
        /// It begins with an address to an unknown name.
        UnknownNamed = "unknown_named",
        /// It names another participant, but not first.
        OtherNamedLater = "other_named_later",
        /// The distance to the companion's last message, as a logarithm.
        Recency = "recency",
        /// `Recency` of an open message.
        RecencyOpen = "recency_open",
        /// That distance is at most 20; open.
        Within20 = "within20",
        /// That distance is at least 60.
        Over60 = "over60",
        /// The companion spoke just before the author; open.
        JustBefore = "just_before",
        /// `JustBefore`, and the companion's message has a question mark.
        JustAsked = "just_asked",
        /// `JustBefore`, and the message says "you".
        JustBeforeYou = "just_before_you",
        /// The companion addressed its author most recently; open.
        AddressedLast = "addressed_last",
        /// How often its author named the companion, as a logarithm; open.
        TimesNamed = "times_named",
        /// Its author and the companion named each other most recently; open.
        TalksWithMe = "talks_with_me",
        /// Its author last named another participant and not the companion; open.
        NamedOtherLast = "named_other_last",
        /// `NamedOtherLast`, times the distance to that message.
        NamedOtherAgo = "named_other_ago",
        /// The companion's share of the recent messages; open.
        Share = "share",
        /// The number of recent authors, divided by ten; open.
        Present = "present",
        /// Its author has not spoken before.
        New = "new",
        /// The previous message is by the same author; open.
        Continues = "continues",
        /// It has a question mark; open.
        Question = "question",
        /// Its author asked an open question at most 20 messages ago, and asks none now; open.
        Asked = "asked",
        /// It asks all participants: "anybody", "how do"; open.
        AsksAnybody = "asks_anybody",
        /// It gives thanks.
        Thanks = "thanks",
        /// It is a short reaction.
        Reaction = "reaction",
        /// The number of its words, as a logarithm.
        Length = "length",
        /// The words that it shares with the companion's, the newest counting most; open.
        SharedWords = "shared_words",
        /// Their number; open.
        SharedCount = "shared_count",
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
#[serde(default)]
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
    /// The newest open question by this participant.
    asked: u16,
    /// How many messages it sent, and how many of them named the companion, at most 255.
    messages: u8,
    times_named: u8,
    is_person: bool,
}

/// A companion's memory of the conversation in a room: at most 512 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Relevance {
    /// A hash of the companion's name. 0 before it has spoken.
    me: u32,
    /// The number of messages so far.
    count: u16,
    others: [Other; OTHERS],
    /// The authors of the recent messages, newest first.
    recent: [u16; RECENT],
    /// Hashes of long words that the companion used, newest first.
    words: [u32; OWN_WORDS],
    /// The companion's newest message, and whether it has a question mark.
    last_own: u16,
    asked: bool,
    /// The participant that the companion addressed most recently.
    addressed: u32,
    /// The author of the newest message, and the author before that one.
    newest: u32,
    before: u32,
    /// The number of consecutive messages by the newest author.
    run: u8,
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
        }
        let known = self.other(author);
        known.heard = count;
        known.is_person = heard.is_person;
        known.messages = known.messages.saturating_add(1);
        match (heard.named, other) {
            (Named::Me, _) => (known.named_me, known.times_named) = (count, known.times_named.saturating_add(1)),
            (_, Some(_)) => known.named_other = count,
            (_, None) if heard.text.contains('?') => known.asked = count,
            (_, None) => {}
        }
        if let Some(who) = other.filter(|who| *who != 0) {
            self.other(who).named_by_other = count;
        }
        self.add(author);
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
            self.addressed = first;
        }
        if self.newest != me {
            (self.before, self.run) = (self.newest, 1);
        }
        (self.last_own, self.asked) = (self.count, text.contains('?'));
        for word in self.content(text) {
            let at = self.words.iter().position(|known| *known == word).unwrap_or(OWN_WORDS - 1);
            self.words[..=at].rotate_right(1);
            self.words[0] = word;
        }
        self.add(me);
    }

    /// The features of a recorded message.
    pub fn features(&self, heard: &Heard<'_>) -> Features {
        let (author, count) = (self.author(heard), self.count);
        let known = self.others.iter().find(|other| other.who == author).copied().unwrap_or_default();
        let named = heard.named == Named::Me;
        let other = self.named_other(heard, author).filter(|_| !named);
        let is_unknown = other == Some(0) && heard.named == Named::Unknown;
        let mut lower: Vec<String> = words(heard.text).map(str::to_lowercase).collect();
        let is_other = |word: u32| word != self.me && word != author && self.knows(word);
        let names_other_later = !named && other.is_none() && lower.iter().skip(1).map(|word| hash(word)).any(is_other);
        // It has no certain addressee.
        let is_open = !named && other.is_none();
        let since = if self.last_own == 0 { FARTHEST } else { (count - self.last_own).min(FARTHEST) };
        let remembered = &self.recent[..usize::from(count).min(RECENT)];
        let own = remembered.iter().filter(|author| self.last_own != 0 && **author == short(self.me)).count();
        let mut present = remembered.to_vec();
        present.sort_unstable();
        present.dedup();
        let shared: Vec<usize> =
            self.content(heard.text).into_iter().filter_map(|word| self.words.iter().position(|own| *own == word)).collect();
        let fading = (0..OWN_WORDS).scan(1.0, |weight: &mut f32, _| Some(std::mem::replace(weight, *weight * FADING)));
        let fading: Vec<f32> = fading.collect();
        let (with_me, with_other) = (known.named_me.max(known.named_by_me), known.named_other.max(known.named_by_other));
        let names_other_lately = is_open && known.named_other > known.named_me;
        let is_just_before = is_open && self.last_own != 0 && self.before == self.me;
        let recency = logarithm(u32::from(since));
        let is_question = heard.text.contains('?');
        lower.truncate(50);
        let has = |list: &[&str]| lower.iter().any(|word| list.contains(&&**word));
        let asks = has(ASKING) || lower.windows(2).any(|two| ASKING_PAIRS.iter().any(|pair| *pair == [&*two[0], &*two[1]]));
        let value = |feature: Feature| match feature {
            Feature::Constant => 1.0,
            Feature::NamedFirst => flag(named && self.begins_with_name(heard.text)),
            Feature::NamedLater => flag(named && !self.begins_with_name(heard.text)),
            Feature::NamedLongAgo => flag(named) * recency,
            Feature::NamedQuestion => flag(named && is_question),
            Feature::OtherNamed => flag(other.is_some()),
            Feature::UnknownNamed => flag(is_unknown),
            Feature::OtherNamedLater => flag(names_other_later),
            Feature::Recency => recency,
            Feature::RecencyOpen => flag(is_open) * recency,
            Feature::Within20 => flag(since <= 20 && is_open),
            Feature::Over60 => flag(since >= 60),
            Feature::JustBefore => flag(is_just_before),
            Feature::JustAsked => flag(is_just_before && self.asked),
            Feature::JustBeforeYou => flag(is_just_before && has(YOU)),
            Feature::AddressedLast => flag(is_open && self.addressed != 0 && self.addressed == author),
            Feature::TimesNamed => flag(is_open) * logarithm(u32::from(known.times_named.min(30))),
            Feature::TalksWithMe => flag(with_me > with_other && is_open),
            Feature::NamedOtherLast => flag(names_other_lately),
            Feature::NamedOtherAgo => flag(names_other_lately) * logarithm(u32::from((count - known.named_other).min(FARTHEST))),
            Feature::Share => flag(is_open) * own as f32 / remembered.len().max(1) as f32,
            Feature::Present => flag(is_open) * present.len() as f32 / 10.0,
            Feature::New => flag(known.messages <= 1),
            Feature::Continues => flag(self.run > 1 && is_open),
            Feature::Question => flag(is_open && is_question),
            Feature::Asked => flag(is_open && known.asked != 0 && (1..=20).contains(&(count - known.asked))),
            Feature::AsksAnybody => flag(is_open && asks),
            Feature::Thanks => flag(has(THANKS)),
            Feature::Reaction => flag(is_reaction(heard.text)),
            Feature::Length => logarithm(lower.len() as u32),
            Feature::SharedWords => flag(is_open) * shared.iter().map(|place| fading[*place]).sum::<f32>().min(3.0),
            Feature::SharedCount => flag(is_open) * shared.len().min(3) as f32,
        };
        Features(Feature::ALL.map(value))
    }

    /// Whether a message that names the companion begins with its name. Before the companion has spoken, the name is not known.
    fn begins_with_name(&self, text: &str) -> bool {
        let (first, is_marked) = first_word(text);
        if self.me == 0 { is_marked } else { hash(first) == self.me }
    }

    /// The long words of a text that have content and are no names.
    fn content(&self, text: &str) -> BTreeSet<u32> {
        let long = words(text).filter(|word| word.len() >= LONG).map(str::to_lowercase);
        let content = long.filter(|word| !is_function_word(word)).map(|word| hash(&word));
        content.filter(|word| *word != self.me && self.others.iter().all(|other| other.who != *word)).collect()
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
                    &mut other.asked,
                ] {
                    *at = at.saturating_sub(half);
                }
            }
        }
        self.count += 1;
    }

    fn add(&mut self, author: u32) {
        self.recent.rotate_right(1);
        self.recent[0] = short(author);
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
    /// The names of the features that are not zero, with their values. Earlier versions had others.
    pub features: Vec<(Cow<'static, str>, f32)>,
}

impl Estimate {
    /// Each feature's part of the logit. `None` if the estimate was made with other features or weights.
    pub fn parts(&self) -> Option<Vec<(&str, f32)>> {
        let weight = |name: &str| Feature::ALL.iter().position(|feature| feature.as_str() == name).map(|place| WEIGHTS[place]);
        let parts: Option<Vec<_>> = self.features.iter().map(|(name, value)| Some((&**name, value * weight(name)?))).collect();
        parts.filter(|parts| (parts.iter().map(|(_, part)| part).sum::<f32>() - self.logit).abs() < 0.01)
    }
}

/// The features of a message, in the order of [`Feature::ALL`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Features(pub [f32; FEATURES]);

impl Features {
    pub fn get(&self, feature: Feature) -> f32 {
        self.0[feature as usize]
    }

    /// The features that are not zero, with their names.
    pub fn named(&self) -> Vec<(Cow<'static, str>, f32)> {
        let named = Feature::ALL.map(|feature| feature.as_str().into()).into_iter().zip(self.0);
        named.filter(|(_, value)| *value != 0.0).collect()
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
