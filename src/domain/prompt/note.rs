//! Decides which one note about the situation a prompt has (docs/design/speaking.md S-2). Two notes at once would contradict each other.

use super::data::{char_weight, cut_middle};
use crate::closing::Stage;
use crate::policy::prompt::Prompt as Words;
use crate::trigger::Trigger;

/// A note about the situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Something happened that must be acknowledged.
    Event,
    /// The companion says goodbye.
    Goodbye,
    /// The conversation is about to end.
    PreClosing,
    /// Nobody has said anything for long.
    Silence,
    /// The conversation repeats itself.
    Repetition,
}

/// The note that a prompt has: the first that applies. An event must be acknowledged, also by a companion that is leaving. Who says goodbye begins
/// nothing new. What was said before a long silence is over, also if it repeated itself.
pub fn choose_note(trigger: Trigger, stage: Stage, is_repetitive: bool) -> Option<Note> {
    match (trigger, stage) {
        (Trigger::Event, _) => Some(Note::Event),
        // A terminal companion says nothing. If it has to speak anyway, it says goodbye.
        (_, Stage::Closing | Stage::Terminal) => Some(Note::Goodbye),
        (_, Stage::PreClosing) => Some(Note::PreClosing),
        (Trigger::Silence, Stage::None) => Some(Note::Silence),
        (_, Stage::None) => is_repetitive.then_some(Note::Repetition),
    }
}

impl Note {
    /// Its sentence in the settings, which may be empty.
    pub(super) fn sentence(self, minutes: u64, words: &Words) -> String {
        let sentence = match self {
            Self::Event => &words.event,
            Self::Goodbye => &words.closing,
            Self::PreClosing => &words.pre_closing,
            Self::Silence => &words.silence.replace("{minutes}", &minutes.to_string()),
            Self::Repetition => &words.repetition,
        };
        // A sentence may contain a placeholder many times.
        cut_middle(sentence, super::texts::MAX_SENTENCE_WEIGHT, char_weight).into_owned()
    }
}
