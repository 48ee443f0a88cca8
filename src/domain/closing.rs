//! The closing stages: how near a companion is to ending the conversation (docs/design/closing.md C-1).

use std::fmt;

use serde::{Deserialize, Serialize};

/// How near a companion is to ending the conversation. A later stage is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The conversation continues.
    #[default]
    None,
    /// The companion prepares the end.
    PreClosing,
    /// The companion says goodbye.
    Closing,
    /// The companion is silent until it is addressed again, or people continue, or a new episode begins.
    Terminal,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 4] = [Self::None, Self::PreClosing, Self::Closing, Self::Terminal];

    /// The name used in States, records, replay and spans.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PreClosing => "pre-closing",
            Self::Closing => "closing",
            Self::Terminal => "terminal",
        }
    }

    /// The stage of this name, in any case: its own, or the noun that the project aikyo uses in its texts (`pre-closure`, `closure`,
    /// `termination`).
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        match &*name {
            "pre-closure" => Some(Self::PreClosing),
            "closure" => Some(Self::Closing),
            "termination" => Some(Self::Terminal),
            name => Self::ALL.into_iter().find(|stage| stage.as_str() == name),
        }
    }

    /// Whether the conversation continues.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The earliest stage allowed after this many detections of repetition in a row (docs/design/closing.md C-14).
    pub const fn forced_by(detections: u32) -> Self {
        match detections {
            0 => Self::None,
            1 => Self::PreClosing,
            2 => Self::Closing,
            _ => Self::Terminal,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a stage changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The companion's own State names the stage.
    State,
    /// The last statement begins, or was made, that `turn_taking.max_turns` or the companion's own `max_turns` allows.
    MaxTurns,
    /// The last statements repeat each other.
    Repetition,
    /// A human addressed the companion.
    DirectAddress,
    /// The companion must acknowledge an event.
    Event,
    /// Humans have written `closing.reopen_after` messages since.
    ReopenAfter,
    /// A new episode began after a long silence.
    NewEpisode,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 7] =
        [Self::State, Self::MaxTurns, Self::Repetition, Self::DirectAddress, Self::Event, Self::ReopenAfter, Self::NewEpisode];

    /// The name used in records, replay and spans.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::MaxTurns => "max_turns",
            Self::Repetition => "repetition",
            Self::DirectAddress => "direct_address",
            Self::Event => "event",
            Self::ReopenAfter => "reopen_after",
            Self::NewEpisode => "new_episode",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
