//! What is said in a channel, by whom, and to whom.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::CompanionId;

/// Something said in a channel by a person, a companion or a foreign bot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The platform's id of it, or the one that the sender gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// Who said it.
    pub from: Author,
    /// The words.
    pub text: Arc<str>,
    /// Typed or spoken.
    #[serde(default)]
    pub modality: Modality,
    /// A voice utterance that ends a lull (docs/design/gate.md G-4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lull_endpoint: bool,
    /// To whom it is addressed.
    #[serde(default)]
    pub address: Address,
}

/// Who said something. A person is a person by what the platform says, whatever name it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The platform's id of it; a companion's is its `CompanionId`.
    pub id: Arc<str>,
    /// What people see.
    pub name: Arc<str>,
    /// What it is.
    pub role: Role,
}

/// What somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A human.
    #[serde(rename = "user")]
    Person,
    /// One of ours.
    Companion,
    /// A bot that is not ours.
    Bot,
}

/// Typed or spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    /// Typed.
    #[default]
    Text,
    /// Spoken.
    Voice,
}

/// To whom a message is addressed, resolved when it is accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The companions that it mentions, answers or names, sorted; never its own speaker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionId>,
    /// It mentions or answers somebody who is not a companion, and not its own speaker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
}

impl Address {
    /// Whether it addresses this companion directly.
    pub fn includes(&self, companion: &CompanionId) -> bool {
        self.companions.contains(companion)
    }

    /// Whether it addresses somebody, and not this companion.
    pub fn is_elsewhere(&self, companion: &CompanionId) -> bool {
        !self.includes(companion) && (self.others || !self.companions.is_empty())
    }
}

impl Message {
    /// Whether this companion said it.
    pub fn is_by(&self, companion: &CompanionId) -> bool {
        self.from.role == Role::Companion && &*self.from.id == companion.as_str()
    }
}
