//! A message in a channel, with its author and the companions that it addresses.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::CompanionId;

/// A message by a person, a companion or a bot that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The platform's id of the message, or the id that the sender gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The author.
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
    /// Whom it addresses.
    #[serde(default)]
    pub address: Address,
    /// For an event that a companion must acknowledge: its kind, such as `raid`. None for words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
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

/// The role of an author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A human.
    #[serde(rename = "user")]
    Person,
    /// A companion of this server.
    Companion,
    /// A bot that is not ours.
    Bot,
}

/// How a message was produced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    /// It was typed.
    #[default]
    Text,
    /// It was spoken.
    Voice,
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

    /// Whether `companion` is the author.
    pub fn is_by(&self, companion: &CompanionId) -> bool {
        self.from.role == Role::Companion && &*self.from.id == companion.as_str()
    }
}
