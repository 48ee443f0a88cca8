//! A message in a channel, with its author and the companions that it addresses.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::{CompanionId, Seq};
use super::moment::Moment;
use super::named::named;
use super::text::shortened_with;

/// A message by a person, a companion or a bot that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The platform's id of the message, or the id that the sender gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    pub from: Author,
    /// The text, as the author wrote it.
    pub text: Arc<str>,
    /// Whether it was typed or spoken.
    #[serde(default)]
    pub modality: Modality,
    /// Whether it is a voice utterance that ends a lull (docs/design/gate.md G-4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lull_endpoint: bool,
    /// Whether it asks to stop, with nothing else (docs/design/speaking.md S-15).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_to_stop: bool,
    #[serde(default)]
    pub address: Address,
    /// For an event that a companion must acknowledge: its kind, such as `raid`. None for words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// For words of a voice call: how they were spoken. None for all other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<Box<Speech>>,
    /// For a spoken statement of a companion that was cut off: `text` is what was heard of it. None for all other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<Cut>>,
    /// Whether it is a statement whose end was not written, because the model reached its limit of tokens (docs/design/models.md M-21).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// For a companion's statement: the numbers of the older messages that were recalled for it, the best first (docs/design/memory.md).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Seq>,
    /// The beginning of the message that it replies to, if that one is not on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted: Option<Box<Quoted>>,
}

/// A message that another one replies to, as far as it is shown with the reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    /// The platform's id of the message, by which its deletion is reported. `None` in older records, and where the message itself is on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    pub from: Author,
    /// Its first characters.
    pub text: Arc<str>,
}

impl Quoted {
    /// The most characters that are shown.
    const LONGEST: usize = 200;

    pub fn new(from: Author, text: &str) -> Self {
        Self { id: None, from, text: shortened_with(text, Self::LONGEST, " […]").into() }
    }
}

impl Message {
    /// Typed words without an id, which address nobody.
    pub fn new(from: Author, text: Arc<str>) -> Self {
        let (id, kind, speech, cut) = (None, None, None, None);
        let (modality, address) = (Modality::Text, Address::default());
        let (lull_endpoint, asks_to_stop, truncated) = (false, false, false);
        Self {
            id,
            from,
            text,
            modality,
            lull_endpoint,
            asks_to_stop,
            address,
            kind,
            speech,
            cut,
            truncated,
            recalled: Vec::new(),
            quoted: None,
        }
    }
}

/// What is known of a spoken statement that was cut off (docs/design/voice.md A-60).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The text of the statement, with the words that nobody heard. Empty once it was deleted.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub full: Arc<str>,
    /// The person who cut it off. `None`: it was stopped, the call or the playback ended, the server was restarted, or the person left or was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Author>,
}

/// How a message was spoken in a voice call: one run of segments of one person (docs/design/voice.md A-6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speech {
    /// The beginning of its first voiced hop.
    pub started: Moment,
    /// The end of its last voiced hop.
    pub ended: Moment,
    /// The recogniser of its first segment.
    pub provider: Arc<str>,
    /// How sure the recogniser is of the least certain segment, in thousandths. `None` where it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<u16>,
    /// The numbers of its segments, by their beginning.
    pub segments: Vec<Seq>,
    /// Why it was handed over when it was.
    pub handed_over: HandedOver,
    /// If it ends a lull: the companions for which it does, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends_lull_for: Vec<CompanionId>,
    /// Whether it is only backchannel: it passes no row, counts nothing, and settles at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_backchannel: bool,
}

named! {
    /// Why words of a voice call became a message when they did (docs/design/voice.md ).
    pub enum HandedOver {
        /// The voice lull had ended.
        LullEnded = "lull_ended",
        /// The last person had left the call.
        Deserted = "deserted",
        /// Somebody addressed a companion.
        Addressed = "addressed",
        /// One person and one companion were alone in the call.
        OneToOne = "one_to_one",
        /// Somebody answered a companion that had just spoken.
        FollowUp = "follow_up",
        /// The words extended a reply that was being prepared.
        Extension = "extension",
    }
}

/// The author of a message. Only the platform decides the role, whatever name an author uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The platform's id of the author. A companion's is its `CompanionId`.
    pub id: Arc<str>,
    /// The name that people see.
    pub name: Arc<str>,
    /// Person, companion or bot.
    pub role: Role,
}

impl Author {
    /// A person who is known by name only.
    pub fn of_name(name: Arc<str>) -> Self {
        Self { id: name.clone(), name, role: Role::Person }
    }
}

named! {
    #[derive(schemars::JsonSchema)]
    pub enum Role {
        /// A human.
        Person = "user",
        /// A companion of this server.
        Companion = "companion",
        /// A bot that is not ours.
        Bot = "bot",
    }
}

named! {
    /// How a message was produced.
    #[derive(Default, schemars::JsonSchema)]
    pub enum Modality {
        /// It was typed.
        #[default]
        Text = "text",
        /// It was spoken.
        Voice = "voice",
    }
}

impl Modality {
    /// Whether it was typed.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }
}

/// Whom a message addresses, resolved when it is accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The companions that it mentions, answers or names, sorted, without its own author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionId>,
    /// Whether it mentions or answers somebody who is not a companion, other than its own author.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
}

impl Address {
    /// Whether it addresses `companion` directly.
    pub fn includes(&self, companion: &CompanionId) -> bool {
        self.companions.contains(companion)
    }

    /// Whether it addresses somebody, but not `companion`.
    pub fn is_elsewhere(&self, companion: &CompanionId) -> bool {
        !self.includes(companion) && (self.others || !self.companions.is_empty())
    }
}

impl Message {
    /// Whether it is an event that a companion must acknowledge (docs/design/gate.md G-33). Its author is the person that the event is about.
    pub const fn is_event(&self) -> bool {
        self.kind.is_some()
    }

    /// Whether it is speech that only shows that somebody listens (docs/design/voice.md A-9).
    pub fn is_backchannel(&self) -> bool {
        self.speech.as_ref().is_some_and(|speech| speech.is_backchannel)
    }

    /// Whether it ends a lull for `companion`. Voice messages that come from outside a call of this server end it for all.
    pub fn ends_lull_for(&self, companion: &CompanionId) -> bool {
        self.lull_endpoint && self.speech.as_ref().is_none_or(|speech| speech.ends_lull_for.contains(companion))
    }

    /// Replaces its words. What was cut off then is the words of before.
    pub fn edit(&mut self, text: Arc<str>) {
        (self.text, self.cut, self.truncated) = (text, None, false);
    }

    /// Whom it names besides its author: the person who cut it off, or the author of the message that it quotes.
    pub fn named(&self) -> Option<&Author> {
        let cut_by = self.cut.as_ref().and_then(|cut| cut.by.as_ref());
        cut_by.or_else(|| self.quoted.as_ref().map(|quoted| &quoted.from))
    }

    /// Removes who cut it off, and what it quotes.
    pub fn forget_named(&mut self) {
        if let Some(cut) = &mut self.cut {
            cut.by = None;
        }
        self.quoted = None;
    }

    /// Whether a person wrote it who also wrote `other`. Nobody has written an event, and nobody knows who wrote a redacted message.
    pub fn is_by_author_of(&self, other: &Self) -> bool {
        let is_known = !self.from.id.is_empty() && !self.is_event();
        is_known && self.from.role == Role::Person && self.from.id == other.from.id
    }

    /// Whether `companion` is the author.
    pub fn is_by(&self, companion: &CompanionId) -> bool {
        self.from.role == Role::Companion && &*self.from.id == companion.as_str()
    }
}
