//! Decides how urgent a question to a model is.

use super::message::Modality;
use super::trigger::Trigger;

/// The urgency of a question in the pool. A more urgent one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A summary, which nobody waits for.
    Summary,
    /// A lull in a text channel, or a long silence.
    Lull,
    /// An interjection in a text channel.
    Interjection,
    /// A turn in a text channel.
    Turn,
    /// Anything in a voice channel that is not a direct address.
    Voice,
    /// A direct address or an event: somebody waits for this companion.
    DirectAddress,
}

impl Priority {
    /// Every priority, the least urgent first.
    pub const ALL: [Self; 6] = [Self::Summary, Self::Lull, Self::Interjection, Self::Turn, Self::Voice, Self::DirectAddress];

    /// The priority of a question, from its trigger and modality.
    pub const fn of(trigger: Trigger, modality: Modality) -> Self {
        match (trigger, modality) {
            (Trigger::DirectAddress | Trigger::Event, _) => Self::DirectAddress,
            (_, Modality::Voice) => Self::Voice,
            (Trigger::Turn, Modality::Text) => Self::Turn,
            (Trigger::Interjection, Modality::Text) => Self::Interjection,
            (Trigger::Lull | Trigger::Silence, Modality::Text) => Self::Lull,
        }
    }

    /// The name used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Lull => "lull",
            Self::Interjection => "interjection",
            Self::Turn => "turn",
            Self::Voice => "voice",
            Self::DirectAddress => "direct_address",
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
