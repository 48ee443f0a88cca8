//! The triggers that make a companion consider speaking.

use super::named::named;

named! {
    /// The reason why a companion considers speaking. A stronger trigger is greater.
    #[derive(Default, schemars::JsonSchema)]
    pub enum Trigger {
        /// There was no message for the companion's `starts_after`.
        Silence = "silence",
        /// There was no message for the lull timeout.
        #[default]
        Lull = "lull",
        /// There were enough messages without one by the companion.
        Interjection = "interjection",
        /// Another companion has just spoken.
        Turn = "turn",
        /// The companion was mentioned, answered or named, or the message is a direct message to it.
        DirectAddress = "direct_address",
        /// A person chose the companion to speak next (docs/design/turn-taking.md T-24). No question precedes the statement.
        Chosen = "chosen",
        /// An event must be acknowledged (docs/design/gate.md G-33). It is stronger than a direct address: if both are waiting, no question is
        /// needed.
        Event = "event",
    }
}

/// The effect of a NO with this trigger on the counters of a gate (docs/design/gate.md G-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// The counters are reset.
    Reset,
    /// The next interval begins.
    NextInterval,
    Unchanged,
}

impl Trigger {
    /// The effect of a NO with this trigger on the counters.
    pub const fn counters(self) -> Counters {
        match self {
            Self::DirectAddress => Counters::Reset,
            Self::Interjection => Counters::NextInterval,
            Self::Silence | Self::Lull | Self::Turn | Self::Chosen | Self::Event => Counters::Unchanged,
        }
    }

    /// Whether a person or a program waits for this companion, because it was addressed or must acknowledge an event.
    pub const fn is_call(self) -> bool {
        matches!(self, Self::DirectAddress | Self::Event)
    }

    /// Whether the trigger counts only while its message is unsettled. A long silence has no message, and is considered once. A choice by hand has
    /// none, either.
    pub const fn needs_a_message(self) -> bool {
        !matches!(self, Self::Silence | Self::Chosen)
    }

    /// Whether the trigger leads to a statement without a question, and passes to another companion if its companion leaves.
    pub const fn acknowledges_events(self) -> bool {
        matches!(self, Self::Event)
    }

    /// Whether a statement with this trigger is unsolicited (docs/design/speaking.md S-3).
    pub const fn is_unsolicited(self) -> bool {
        matches!(self, Self::Interjection)
    }
}
