//! Selects the one note about the situation in a prompt (docs/design/speaking.md S-2). Two notes would contradict each other.

use super::data::{char_weight, cut_middle};
use crate::closing::Stage;
use crate::policy::prompt::Prompt as Words;
use crate::trigger::Trigger;

/// A note about the situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// An event must be acknowledged.
    Event,
    /// The companion says goodbye.
    Goodbye,
    /// The conversation is about to end.
    PreClosing,
    /// There was a long silence.
    Silence,
    /// The conversation repeats itself.
    Repetition,
}

/// The note of a prompt: the first that applies. An event must be acknowledged even by a companion that is leaving. A companion that says goodbye
/// begins no new topic. After a long silence, earlier repetition does not count.
pub fn choose_note(trigger: Trigger, stage: Stage, is_repetitive: bool) -> Option<Note> {
    match (trigger, stage) {
        (Trigger::Event, _) => Some(Note::Event),
        // A terminal companion makes no statements. If it has to make one anyway, it says goodbye.
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
        // A sentence may repeat a placeholder many times.
        cut_middle(sentence, super::texts::MAX_SENTENCE_WEIGHT, char_weight).into_owned()
    }
}
