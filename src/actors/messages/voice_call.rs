//! Messages to the actors of a voice call.

use tokio::sync::OwnedSemaphorePermit;

use super::supervision::Upkeep;
use crate::domain::call::{Effect, Input};
use crate::domain::id::PersonId;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::Recognised;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallChild {
    /// Decodes what a person says, and finds when the person talks.
    VoiceUser(PersonId),
    /// Has the words of a person recognised.
    Recognition(PersonId),
}

pub enum CallMessage {
    /// This happened.
    Handle(Input),
    /// Carry out what was decided elsewhere.
    CarryOut(Vec<Effect>),
    /// The connection that carries the whole call should run.
    Connect,
    /// It may work now.
    TryAgain,
    /// That connection has ended.
    Disconnected,
    /// The call's own supervision messages.
    Upkeep(Upkeep<CallChild>),
}

impl From<Upkeep<CallChild>> for CallMessage {
    fn from(upkeep: Upkeep<CallChild>) -> Self {
        Self::Upkeep(upkeep)
    }
}

/// Messages to the actor that hears one person.
pub enum VoiceUserMessage {
    /// Packets wait.
    Packets,
    /// The person is muted, ignored, or has lost the connection: the speech ends.
    Stop,
    /// The speech may have ended.
    Wake,
}

/// Messages to the actor that has one person's words recognised.
pub enum RecognitionMessage {
    /// Sound waits.
    Sounds,
    /// Return what you have.
    Finalize,
    /// No audio may have been forwarded to the stream with this number for a while.
    Pump(u64),
    /// A result of the stream with this number. The permit is dropped once it is on record.
    Result(u64, Recognised, OwnedSemaphorePermit),
    /// The stream with this number has ended.
    Ended(u64, Result<(), NoAnswer>),
    /// Listen again.
    Again,
    /// The stream with this number may have been quiet for long.
    Idle(u64),
    /// Somebody else has got the stream.
    Displaced,
    /// Forget what was heard.
    Forget,
}
