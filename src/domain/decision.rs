//! The decision whether a companion speaks, and the closed list of its reasons.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a companion wants to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Decision {
    /// The companion wants to speak.
    Yes,
    /// The companion stays silent.
    No,
}

impl Decision {
    /// `YES` or `NO`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "YES",
            Self::No => "NO",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a decision came out as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The side model said YES.
    ModelYes,
    /// The side model said NO.
    ModelNo,
    /// The side model's answer was neither YES nor NO.
    Unreadable,
    /// An external companion voted.
    External,
    /// An event must be acknowledged. No model was asked.
    Event,
    /// All unsettled messages were addressed to somebody else. No model was asked.
    OtherAddressed,
    /// A budget is used up. No model was asked, or its YES arrived after the budget was used up.
    Budget,
    /// Nothing can be posted in the channel at the moment. No model was asked.
    Unpostable,
    /// Companions have made `turn_taking.max_companion_streak` statements without a human.
    LoopGuard,
    /// The companion has ended the conversation.
    Closed,
    /// An operator paused the companion.
    Paused,
    /// More messages were unsettled than a buffer holds.
    Overflow,
    /// The messages were too old to be answered.
    Stale,
    /// A person asked the companion to stop before it had answered.
    Cancelled,
    /// It was speech that only shows that somebody listens.
    Backchannel,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 15] = [
        Self::ModelYes,
        Self::ModelNo,
        Self::Unreadable,
        Self::External,
        Self::Event,
        Self::OtherAddressed,
        Self::Budget,
        Self::Unpostable,
        Self::LoopGuard,
        Self::Closed,
        Self::Paused,
        Self::Overflow,
        Self::Stale,
        Self::Cancelled,
        Self::Backchannel,
    ];

    /// The name used in records, replay, spans and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ModelYes => "model_yes",
            Self::ModelNo => "model_no",
            Self::Unreadable => "unreadable",
            Self::External => "external",
            Self::Event => "event",
            Self::OtherAddressed => "other_addressed",
            Self::Budget => "budget",
            Self::Unpostable => "unpostable",
            Self::LoopGuard => "loop_guard",
            Self::Closed => "closed",
            Self::Paused => "paused",
            Self::Overflow => "overflow",
            Self::Stale => "stale",
            Self::Cancelled => "cancelled",
            Self::Backchannel => "backchannel",
        }
    }

    /// Whether a decision for this reason leaves all counters of the gate unchanged.
    pub const fn leaves_counters_alone(self) -> bool {
        matches!(self, Self::Closed | Self::Paused | Self::Overflow | Self::Stale | Self::Cancelled | Self::Backchannel)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
