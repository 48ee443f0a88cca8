//! The closing stages: how near a companion is to ending the conversation (docs/design/closing.md C-1).

use super::named::named;

named! {
    /// How near a companion is to ending the conversation. A later stage is greater.
    #[derive(Default, schemars::JsonSchema)]
    pub enum Stage {
        /// The conversation continues.
        #[default]
        None = "none",
        /// The companion prepares the end.
        PreClosing = "pre-closing",
        /// The companion says goodbye.
        Closing = "closing",
        /// The companion is silent until it is addressed again, people send enough further messages, or a new episode begins.
        Terminal = "terminal",
    }
}

impl Stage {
    /// The stage with this name, in any case. Accepts its own name, and the noun that the project aikyo uses in its texts (`pre-closure`, `closure`,
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

    /// The stage after this one.
    pub const fn next(self) -> Self {
        match self {
            Self::None => Self::PreClosing,
            Self::PreClosing => Self::Closing,
            Self::Closing | Self::Terminal => Self::Terminal,
        }
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

named! {
    /// The cause of a change of the stage.
    pub enum Cause {
        /// The companion's own State names the stage.
        State = "state",
        /// The last statement that `turn_taking.max_turns` or the companion's own `max_turns` allows begins, or was made.
        MaxTurns = "max_turns",
        /// The last statements repeat each other.
        Repetition = "repetition",
        /// A human addressed the companion.
        DirectAddress = "direct_address",
        /// The companion must acknowledge an event.
        Event = "event",
        /// Humans have written `closing.reopen_after` messages since.
        ReopenAfter = "reopen_after",
        /// A new episode began after a long silence.
        NewEpisode = "new_episode",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_detection_of_repetition_in_a_row_forces_a_later_stage() {
        let forced = [0, 1, 2, 3, 4].map(Stage::forced_by);

        assert_eq!(forced, [Stage::None, Stage::PreClosing, Stage::Closing, Stage::Terminal, Stage::Terminal]);
        assert_eq!(forced.map(|stage| stage.is_none()), [true, false, false, false, false]);
    }
}
