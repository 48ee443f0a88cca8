//! How often companions speak without being addressed.

use crate::named::named;

named! {
    /// The interjection level: how many messages pass before a companion considers speaking without being addressed (docs/design/gate.md G-7).
    #[derive(schemars::JsonSchema)]
    pub enum Interjection {
        /// The first check is after 15 messages.
        VeryQuiet = "very_quiet",
        /// The first check is after 12 messages.
        Quiet = "quiet",
        /// The first check is after 9 messages.
        Average = "average",
        /// The first check is after 6 messages.
        Eager = "eager",
        /// The first check is after 3 messages.
        VeryEager = "very_eager",
    }
}

impl Interjection {
    /// The interval before the first check, in messages (docs/design/gate.md G-7).
    pub const fn starting_interval(self) -> u32 {
        match self {
            Self::VeryQuiet => 15,
            Self::Quiet => 12,
            Self::Average => 9,
            Self::Eager => 6,
            Self::VeryEager => 3,
        }
    }
}
