//! The decision whether a companion speaks, and the closed list of its reasons.

use super::named::named;

named! {
    /// Whether a companion wants to speak.
    #[derive(schemars::JsonSchema)]
    pub enum Decision {
        /// The companion wants to speak.
        Yes = "YES",
        /// The companion stays silent.
        No = "NO",
    }
}

named! {
    /// The reason for a decision.
    #[derive(schemars::JsonSchema)]
    pub enum Reason {
        /// The side model said YES.
        ModelYes = "model_yes",
        /// The side model said NO.
        ModelNo = "model_no",
        /// The side model's answer was neither YES nor NO.
        Unreadable = "unreadable",
        /// The content filter of the side model's endpoint refused the message.
        Filtered = "filtered",
        /// An external companion voted.
        External = "external",
        /// An event must be acknowledged. No model was asked.
        Event = "event",
        /// All unsettled messages were addressed to others. No model was asked.
        OtherAddressed = "other_addressed",
        /// The companion speaks only when spoken to at that time (docs/design/gate.md G-43). No model was asked.
        NoInitiative = "no_initiative",
        /// The companion was unlikely to answer any of the messages (docs/design/gate.md G-41). No model was asked.
        Irrelevant = "irrelevant",
        /// A budget is used up. No model was asked, or its YES arrived after the budget was used up.
        Budget = "budget",
        /// The channel does not accept messages at the moment. No model was asked.
        Unpostable = "unpostable",
        /// Companions have made `turn_taking.max_companion_streak` statements without a human message.
        LoopGuard = "loop_guard",
        /// The companion has ended the conversation.
        Closed = "closed",
        /// An operator paused the companion.
        Paused = "paused",
        /// The number of unsettled messages exceeded the size of the buffer.
        Overflow = "overflow",
        /// The messages were too old to be answered.
        Stale = "stale",
        /// A person asked the companion to stop before it had answered.
        Cancelled = "cancelled",
        /// The message was backchannel.
        Backchannel = "backchannel",
        /// A person may be at risk and is shown where to find help instead (docs/design/safety.md N-8).
        Risk = "risk",
    }
}

impl Reason {
    /// Whether a decision for this reason leaves all counters of the gate unchanged.
    pub const fn leaves_counters_alone(self) -> bool {
        matches!(self, Self::Closed | Self::Paused | Self::Overflow | Self::Stale | Self::Cancelled | Self::Backchannel)
    }
}
