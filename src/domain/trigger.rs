//! The triggers that make a companion consider speaking.

use super::named::named;

named! {
    /// Why a companion considers speaking. A stronger trigger is greater.
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

impl Trigger {
    /// Whether a statement with this trigger is unsolicited (docs/design/speaking.md S-3).
    pub const fn is_unsolicited(self) -> bool {
        matches!(self, Self::Interjection)
    }
}
