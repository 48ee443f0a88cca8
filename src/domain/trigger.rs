//! Why a companion considers speaking.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a companion considers speaking; a stronger one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// It has been quiet for a while.
    Lull,
    /// Enough was said without it.
    Interjection,
    /// Another companion has just spoken.
    Turn,
    /// It was mentioned, answered or named, or is alone with somebody.
    DirectAddress,
}

impl Trigger {
    /// Every trigger, the strongest first.
    pub const ALL: [Self; 4] = [Self::DirectAddress, Self::Turn, Self::Interjection, Self::Lull];

    /// The name used in records, replay, spans and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lull => "lull",
            Self::Interjection => "interjection",
            Self::Turn => "turn",
            Self::DirectAddress => "direct_address",
        }
    }

    /// Whether a statement that it leads to comes unasked (docs/design/speaking.md S-3).
    pub const fn is_unsolicited(self) -> bool {
        matches!(self, Self::Interjection)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
