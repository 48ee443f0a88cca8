//! Messages to the actors of a voice call.

use tokio::sync::OwnedSemaphorePermit;

use super::supervision::Upkeep;
use crate::domain::call::{Effect, Input};
use crate::domain::id::PersonId;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::Recognised;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallChild {
    /// Decodes a person's audio and detects speech.
    VoiceUser(PersonId),
    /// Sends a person's speech to speech recognition.
    Recognition(PersonId),
}

pub enum CallMessage {
    /// An input to the call's state machine.
    Handle(Input),
    /// Carry out effects that were decided elsewhere.
    CarryOut(Vec<Effect>),
    /// Start the connection that carries the whole call.
    Connect,
    /// Connect again: a connection may succeed now.
    TryAgain,
    /// The connection that carries the whole call has ended.
    Disconnected,
    /// The call's own supervision messages.
    Upkeep(Upkeep<CallChild>),
}

impl From<Upkeep<CallChild>> for CallMessage {
    fn from(upkeep: Upkeep<CallChild>) -> Self {
        Self::Upkeep(upkeep)
    }
}

/// Messages to the actor that decodes one person's audio.
pub enum VoiceUserMessage {
    /// Packets wait.
    Packets,
    /// End the speech: the person is muted, ignored, or has lost the connection.
    Stop,
    /// The speech may have ended.
    Wake,
}

/// Messages to the actor that recognises one person's speech.
pub enum RecognitionMessage {
    /// Audio waits.
    Sounds,
    /// Return the transcript so far.
    Finalize,
    /// No audio may have been forwarded to the stream with this number for a while.
    Pump(u64),
    /// A result of the stream with this number. The permit is dropped once the result is journaled.
    Result(u64, Recognised, OwnedSemaphorePermit),
    /// The stream with this number has ended.
    Ended(u64, Result<(), NoAnswer>),
    /// Retry recognition.
    Again,
    /// The stream with this number may have received no audio for a while.
    Idle(u64),
    /// Another speaker has taken the stream.
    Displaced,
    /// Close the stream without using its results.
    Forget,
}
