//! The inputs and effects of a spoken reply's state machine.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::super::id::{CompanionId, PersonId};
use super::super::super::moment::Moment;
use super::super::heard::WordTime;
use super::super::segment::Kind;
use super::super::words::WordLists;
use super::Interrupted;

/// An event around a spoken reply. Speech of bots is not an input. Positions count from the reply's first sample, and sentences from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// A person began to talk. `started` is the beginning of the first voiced hop.
    Started { user: PersonId, started: Moment },
    /// A person's voice was heard, from the beginning of one hop to the end of another.
    Voiced { user: PersonId, from: Moment, to: Moment },
    /// A person stopped talking. `ended` is the end of the last voiced hop.
    Ended { user: PersonId, ended: Moment },
    /// A person has talked without words for so long that the voice counts as noise (docs/design/voice.md A-5).
    Noise { user: PersonId },
    /// A person left, was muted or ignored, or lost the socket.
    PersonGone { user: PersonId },
    /// Words were recognised. `started` is when the person began to say them.
    Words { user: PersonId, started: Moment, is_final: bool, words: Words },
    /// The next sentence of the reply is known, with the word times that the provider has reported so far.
    Sentence { text: Arc<str>, words: Vec<WordTime> },
    /// The provider reported times for the next words of a sentence.
    WordTimes { sentence: usize, words: Vec<WordTime> },
    /// Audio of a sentence arrived.
    Audio { sentence: usize, length: Duration },
    /// All audio of a sentence has arrived.
    Whole { sentence: usize },
    /// The first audio of the reply is ready.
    FirstAudio,
    /// Playback has reached a position.
    Played { position: Duration },
    /// All audio of the reply was made.
    Finished,
    /// The synthesis of a sentence stalls.
    Stall,
    /// A person pressed Stop, or typed a stop phrase.
    StopPressed,
    /// The reply was cancelled: clear, pause, leave, forget, deletion.
    Cancelled,
    /// The server shuts down in order.
    ShutDown,
    /// The voice connection no longer carries audio: people do not hear the companions, or the companions do not hear people.
    Silenced,
    /// The player was restarted, and has lost the reply's audio.
    PlayerRestarted,
    /// The call is over.
    CallEnded,
}

/// The classification of recognised words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// Whether the text is words, backchannel or nothing.
    pub said: Said,
    pub stop: Stop,
    /// The present companions that the words address. For a partial result: those that it names.
    pub addressed: Vec<CompanionId>,
}

/// How much a transcript says, ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    #[default]
    Nothing,
    Backchannel,
    Words,
}

/// Whether a transcript begins with a stop word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    #[default]
    None,
    /// The transcript begins with a stop word, and has more words after it or a name before it.
    First,
    Alone,
}

impl Stop {
    /// Classifies the beginning of a text. `is_name` decides whether a text is a companion's name; names before the stop word are skipped.
    pub fn of(text: &str, lists: &WordLists, is_name: impl Fn(&str) -> bool) -> Self {
        match () {
            () if lists.is_only_stop(text) => Self::Alone,
            () if lists.begins_with_stop(text, is_name) => Self::First,
            () => Self::None,
        }
    }

    /// Whether the transcript does not begin with a stop word.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl Words {
    /// Classifies a text. For finals, `kind` is that of the segment: echo and noise count as nothing unless they begin with a stop word.
    pub fn of(text: &str, kind: Kind, addressed: Vec<CompanionId>, lists: &WordLists, is_name: impl Fn(&str) -> bool) -> Self {
        let stop = Stop::of(text, lists, is_name);
        let is_dropped = matches!(kind, Kind::Echo | Kind::Noise) && stop == Stop::None;
        if is_dropped || text.trim().is_empty() {
            return Self::default();
        }
        let is_backchannel = stop == Stop::None && lists.is_backchannel(text);
        Self { said: if is_backchannel { Said::Backchannel } else { Said::Words }, stop, addressed }
    }

    /// Whether the words stop a reply that is being spoken: they begin with a stop word, or address a companion.
    pub(super) fn stops(&self) -> bool {
        self.stop != Stop::None || !self.addressed.is_empty()
    }
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Start playback.
    Speak,
    /// Lower the volume by 12 dB.
    Duck,
    /// Restore the full volume.
    Unduck,
    /// Pause: empty the player's buffer, and report the playback position.
    Pause,
    /// Resume playback from a position.
    Resume { from: Duration },
    /// Ask this person's recogniser to finish its segment.
    Finalize { user: PersonId },
    /// Hand over all buffered segments, settle them for the speaker (`ReplyExtended`), and generate the reply again from the beginning.
    Extend,
    /// The synthesis of this sentence stalled: journal that, and synthesise the next sentence.
    SentenceDropped { sentence: usize },
    /// Journal the verdict of an interruption.
    Interrupted(Interrupted),
    /// The reply has ended. The heard text is [`SpokenReply::heard`](super::SpokenReply::heard).
    Ended(Outcome),
}

/// How a spoken reply ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was played to its end.
    Done,
    /// It was cut off. `by` is the person who cut it, if any. The statement is the heard text.
    Cut { by: Option<PersonId> },
    /// It was cancelled before anything was heard.
    Cancelled,
    /// Nothing of it was heard, for example because people talked for too long. Post it as text if there is a text channel, else it has failed.
    AsText,
    /// No audio arrived, or none could be made.
    Failed,
    /// The server shut down before anything was heard. The reply stays owed.
    StaysOwed,
    /// It cannot be spoken to its end. The heard part is the spoken statement, and the rest is posted as text.
    RestInWriting,
}
