//! A note: a short dated statement about a person or a room (docs/design/memory.md).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use super::id::{CompanionId, Seq};
use super::message::{Author, Role};
use super::moment::Moment;
use super::named::named;
use super::text::first;

/// The maximum length of a note.
const MOST_WORDS: usize = 25;
const MOST_CHARS: usize = 240;
/// The maximum number of messages that a note names as its sources.
pub const MOST_SOURCES: usize = 4;
/// The maximum number of notes about a person in a room. The oldest ones are erased.
pub const MOST_ABOUT: usize = 200;

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The person or companion that it is about. None: the room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Author>,
    /// The author of its sources.
    pub said_by: Author,
    /// The text. Empty after deletion.
    pub text: Arc<str>,
    /// The numbers of the messages that it was made from, in order.
    pub sources: Vec<Seq>,
    /// When the newest of these was said.
    pub said_at: Moment,
    /// When it stops to hold. None: it always holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// The number of an earlier note by the same author that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Seq>,
    /// Whether its author asked a companion to remember it, or corrected it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The companions that were present, by id. Only they use it.
    pub companions: Vec<CompanionId>,
}

impl Note {
    pub fn is_redacted(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether it is what one person says about another.
    pub fn is_hearsay(&self) -> bool {
        self.about.as_ref().is_some_and(|about| (about.role, &about.id) != (self.said_by.role, &self.said_by.id))
    }

    /// Whether it is by or about this person.
    pub fn concerns(&self, person: &str) -> bool {
        self.about.iter().chain([&self.said_by]).any(|author| author.role == Role::Person && &*author.id == person)
    }

    /// Removes its text, its people and its sources.
    pub fn redact(&mut self) {
        let nobody = Author { id: "".into(), name: "".into(), role: Role::Person };
        *self = Self { about: None, said_by: nobody, text: "".into(), sources: Vec::new(), ..self.clone() };
    }

    /// Redacts it if one of its sources is gone, because its words may be those of that one. Returns whether it changed.
    pub fn lose(&mut self, is_gone: impl Fn(Seq) -> bool) -> bool {
        let loses = self.sources.iter().any(|source| is_gone(*source));
        if loses {
            self.redact();
        }
        loses
    }
}

named! {
    /// Why a proposed note was dropped.
    pub enum Dropped {
        /// It has no text, or too much.
        Length = "length",
        /// Its sources are missing, are no messages of people, or have several authors.
        Sources = "sources",
        /// Its subject did not speak, or it names a person who turned notes off.
        Subject = "subject",
        /// None of its words occurs in its sources.
        Unsupported = "unsupported",
        /// It tells companions what to do.
        Instruction = "instruction",
        /// It has a password, a key or the number of a card.
        Secret = "secret",
        /// It is about health, money, love, faith or whereabouts, and the person did not ask to remember it.
        Sensitive = "sensitive",
        /// There is such a note.
        Known = "known",
        /// There were too many.
        TooMany = "too_many",
    }
}

/// Whether a text is short enough for a note.
pub fn fits(text: &str) -> bool {
    !text.trim().is_empty() && shortened(text) == text
}

/// The beginning of a text, as long as a note may be.
pub(super) fn shortened(text: &str) -> &str {
    let text = first(text, MOST_CHARS);
    text.unicode_word_indices().nth(MOST_WORDS).map_or(text, |(at, _)| text[..at].trim_end())
}
