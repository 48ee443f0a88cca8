//! The triggers that make a companion consider speaking.

use super::named::named;

named! {
    /// Why a companion considers speaking. A stronger trigger is greater.
    #[derive(schemars::JsonSchema)]
    pub enum Trigger {
        /// Nobody has said anything for the companion's `starts_after`.
        Silence = "silence",
        /// Nobody has said anything for the lull timeout.
        Lull = "lull",
        /// Enough messages were said without the companion.
        Interjection = "interjection",
        /// Another companion has just spoken.
        Turn = "turn",
        /// The companion was mentioned, answered or named, or the message is a direct message to it.
        DirectAddress = "direct_address",
        /// An event must be acknowledged (docs/design/gate.md G-33). It is as strong as a direct address; where both wait, no question is needed.
        Event = "event",
    }
}

/// What a NO because of a trigger does to the counters of a gate (docs/design/gate.md G-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// They are reset.
    Reset,
    /// The next interval begins.
    NextInterval,
    Unchanged,
}

impl Trigger {
    /// What a NO does to the counters.
    pub const fn counters(self) -> Counters {
        match self {
            Self::DirectAddress => Counters::Reset,
            Self::Interjection => Counters::NextInterval,
            Self::Silence | Self::Lull | Self::Turn | Self::Event => Counters::Unchanged,
        }
    }

    /// What had happened, for people.
    pub const fn occasion(self) -> &'static str {
        match self {
            Self::DirectAddress => "it was addressed",
            Self::Turn => "a companion had spoken",
            Self::Interjection => "enough was said without it",
            Self::Lull => "it was quiet",
            Self::Silence => "nobody had said anything for long",
            Self::Event => "something happened",
        }
    }

    /// Whether somebody waits for this companion: it was addressed, or must acknowledge an event.
    pub const fn is_call(self) -> bool {
        matches!(self, Self::DirectAddress | Self::Event)
    }

    /// Whether it counts only while there is an unsettled message that it is about. A long silence is about none, and is considered once.
    pub const fn needs_a_message(self) -> bool {
        !matches!(self, Self::Silence)
    }

    /// Whether it leads to a statement without a question, and is not lost with the companion that was to make it.
    pub const fn acknowledges_events(self) -> bool {
        matches!(self, Self::Event)
    }

    /// Whether a statement with this trigger is unsolicited (docs/design/speaking.md S-3).
    pub const fn is_unsolicited(self) -> bool {
        matches!(self, Self::Interjection)
    }
}
