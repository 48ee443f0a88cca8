//! How near its end a companion sees a conversation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How near its end a companion sees a conversation; a later stage is greater (seed 002).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It goes on.
    #[default]
    None,
    /// It should come to its end soon.
    PreClosing,
    /// Goodbyes are being said.
    Closing,
    /// It is over.
    Terminal,
}

impl Stage {
    /// Every stage, the earliest first.
    pub const ALL: [Self; 4] = [Self::None, Self::PreClosing, Self::Closing, Self::Terminal];

    /// The name used in votes, records, replay, spans and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PreClosing => "pre-closing",
            Self::Closing => "closing",
            Self::Terminal => "terminal",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
