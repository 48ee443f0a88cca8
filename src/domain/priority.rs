//! Decides the urgency of a question to a model.

use super::message::Modality;
use super::named::named;
use super::trigger::Trigger;

named! {
    /// The urgency of a question in the pool. A more urgent one is greater.
    pub enum Priority {
        /// A summary, which no other work waits for.
        Summary = "summary",
        /// A lull in a text channel, or a long silence.
        Lull = "lull",
        /// An interjection in a text channel.
        Interjection = "interjection",
        /// A turn in a text channel.
        Turn = "turn",
        /// A question in a voice channel without a direct address.
        Voice = "voice",
        /// A direct address, a choice by hand or an event. A person or a program waits for this companion.
        DirectAddress = "direct_address",
    }
}

impl Priority {
    /// The priority of a question, from its trigger and modality.
    pub const fn of(trigger: Trigger, modality: Modality) -> Self {
        match (trigger, modality) {
            (Trigger::DirectAddress | Trigger::Chosen | Trigger::Event, _) => Self::DirectAddress,
            (_, Modality::Voice) => Self::Voice,
            (Trigger::Turn, Modality::Text) => Self::Turn,
            (Trigger::Interjection, Modality::Text) => Self::Interjection,
            (Trigger::Lull | Trigger::Silence, Modality::Text) => Self::Lull,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voice_comes_before_turns_and_after_direct_addresses() {
        let priorities = [
            Priority::of(Trigger::DirectAddress, Modality::Voice),
            Priority::of(Trigger::Lull, Modality::Voice),
            Priority::of(Trigger::Turn, Modality::Text),
        ];

        assert_eq!(priorities, [Priority::DirectAddress, Priority::Voice, Priority::Turn]);
    }
}
