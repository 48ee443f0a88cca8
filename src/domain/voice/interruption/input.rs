//! What a spoken reply is told, and what it answers.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::super::id::{CompanionId, PersonId};
use super::super::super::moment::Moment;
use super::super::heard::WordTime;
use super::super::segment::Kind;
use super::super::words::WordLists;
use super::Interrupted;

/// What happened around a spoken reply. Bots are no people here. Positions count from the reply's first sample, and sentences from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// A person began to talk, with this voiced hop.
    Started { user: PersonId, started: Moment },
    /// A person's voice was heard for a while: from the beginning of a hop to the end of one.
    Voiced { user: PersonId, from: Moment, to: Moment },
    /// A person stopped talking, with the end of this voiced hop.
    Ended { user: PersonId, ended: Moment },
    /// A person talks without words for so long that it counts as noise (docs/design/voice.md A-5).
    Noise { user: PersonId },
    /// A person left, was muted or ignored, or lost the socket.
    PersonGone { user: PersonId },
    /// Words were recognised that were begun then.
    Words { user: PersonId, started: Moment, is_final: bool, words: Words },
    /// The next sentence of the reply is known, with the times of its first words, as far as the provider has told them.
    Sentence { text: Arc<str>, words: Vec<WordTime> },
    /// The times of the next words of a sentence are known.
    WordTimes { sentence: usize, words: Vec<WordTime> },
    /// Audio of a sentence is there.
    Audio { sentence: usize, length: Duration },
    /// All audio of a sentence is there.
    Whole { sentence: usize },
    /// The first audio of the reply is ready.
    FirstAudio,
    /// Playback has reached a position.
    Played { position: Duration },
    /// All audio of the reply was made.
    Finished,
    /// The synthesis of a sentence stalls.
    Stall,
    /// Somebody pressed Stop, or typed a stop phrase.
    StopPressed,
    /// The reply is not wanted any more: clear, pause, leave, forget, deletion.
    Cancelled,
    /// The server shuts down in order.
    ShutDown,
    /// Nobody hears the companions in the call any more, or they hear nobody.
    Silenced,
    /// What makes and plays the audio was restarted: it has nothing of the reply.
    PlayerRestarted,
    /// The call is over.
    CallEnded,
}

/// What recognised words count as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// Whether they are words at all.
    pub said: Said,
    pub stop: Stop,
    /// The companions present that they address; in a partial result, those that they name.
    pub addressed: Vec<CompanionId>,
}

/// How much words say. More is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    #[default]
    Nothing,
    Backchannel,
    Words,
}

/// Whether words begin with a stop word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    #[default]
    None,
    /// They do, and more follows or a name comes before.
    First,
    Alone,
}

impl Stop {
    /// What a text begins with. `is_name` tells whether a text is the name of a companion; names before the stop word are skipped.
    pub fn of(text: &str, lists: &WordLists, is_name: impl Fn(&str) -> bool) -> Self {
        match () {
            () if lists.is_only_stop(text) => Self::Alone,
            () if lists.begins_with_stop(text, is_name) => Self::First,
            () => Self::None,
        }
    }

    /// Whether they do not begin with a stop word.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl Words {
    /// What a text counts as. `kind` is that of the segment, for final words: echo and noise are no words unless they begin with a stop word.
    pub fn of(text: &str, kind: Kind, addressed: Vec<CompanionId>, lists: &WordLists, is_name: impl Fn(&str) -> bool) -> Self {
        let stop = Stop::of(text, lists, is_name);
        let is_dropped = matches!(kind, Kind::Echo | Kind::Noise) && stop == Stop::None;
        if is_dropped || text.trim().is_empty() {
            return Self::default();
        }
        let is_backchannel = stop == Stop::None && lists.is_backchannel(text);
        Self { said: if is_backchannel { Said::Backchannel } else { Said::Words }, stop, addressed }
    }

    /// Whether they stop a reply that is spoken: they begin with a stop word, or address a companion.
    pub(super) fn stops(&self) -> bool {
        self.stop != Stop::None || !self.addressed.is_empty()
    }
}

/// What the caller must do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Begin to play.
    Speak,
    /// Play 12 dB more quietly.
    Duck,
    /// Play at full level again.
    Unduck,
    /// Pause: empty the player's buffer, and report what was played.
    Pause,
    /// Continue to play from a position.
    Resume { from: Duration },
    /// Tell the recogniser of this person to finish its segment.
    Finalize { user: PersonId },
    /// Hand over everything that is buffered, settle it for the speaker (`ReplyExtended`), and make the reply again from the beginning.
    Extend,
    /// This sentence's synthesis stalled: journal that, and synthesise the next.
    SentenceDropped { sentence: usize },
    /// Journal how an interruption came out.
    Interrupted(Interrupted),
    /// The reply has ended. What was heard of it is [`SpokenReply::heard`](super::SpokenReply::heard).
    Ended(Outcome),
}

/// How a spoken reply ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was played to its end.
    Done,
    /// It was cut, perhaps by a person. The statement is what was heard.
    Cut { by: Option<PersonId> },
    /// It was cancelled before anything was heard.
    Cancelled,
    /// People talked for too long: post it as text where there is a text channel, else it has failed.
    AsText,
    /// No audio came, or none could be made.
    Failed,
    /// The server shuts down before anything was heard: it stays owed.
    StaysOwed,
    /// It cannot be spoken to its end. What was heard is said, and the rest is written.
    RestInWriting,
}
