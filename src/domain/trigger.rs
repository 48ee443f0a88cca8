//! The triggers that make a companion consider speaking.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a companion considers speaking. A stronger trigger is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Nobody has said anything for the companion's `starts_after`.
    Silence,
    /// Nobody has said anything for the lull timeout.
    Lull,
    /// Enough messages were said without the companion.
    Interjection,
    /// Another companion has just spoken.
    Turn,
    /// The companion was mentioned, answered or named, or the message is a direct message to it.
    DirectAddress,
    /// An event must be acknowledged (docs/design/gate.md G-33). It is as strong as a direct address; where both wait, no question is needed.
    Event,
}

impl Trigger {
    /// Every trigger, the strongest first.
    pub const ALL: [Self; 6] = [Self::Event, Self::DirectAddress, Self::Turn, Self::Interjection, Self::Lull, Self::Silence];

    /// The name used in records, replay, spans and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Silence => "silence",
            Self::Lull => "lull",
            Self::Interjection => "interjection",
            Self::Turn => "turn",
            Self::DirectAddress => "direct_address",
            Self::Event => "event",
        }
    }

    /// Whether a statement with this trigger is unsolicited (docs/design/speaking.md S-3).
    pub const fn is_unsolicited(self) -> bool {
        matches!(self, Self::Interjection)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
