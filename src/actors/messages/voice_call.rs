//! Messages to the actors of a voice call.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::supervision::Upkeep;
use crate::domain::conversation::Aloud;
use crate::domain::id::{PersonId, Ticket, TurnId};
use crate::ports::call_room::PersonAction;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::Recognised;
use crate::ports::speech_synthesis::Piece;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallChild {
    /// Decodes what a person says, and finds when the person talks.
    VoiceUser(PersonId),
    /// Has the words of a person recognised.
    Recognition(PersonId),
}

pub enum CallMessage {
    /// A person has one more connection.
    Entered(PersonId),
    /// A person has one connection less, which had the microphone or not, and perhaps none any more.
    Parted(PersonId, bool),
    /// A person without a connection may have been away for long enough.
    Away(PersonId),
    /// A person did something at this connection.
    Acted(u64, PersonAction),
    /// The channel has restarted, or knows that this call has: what is played stops, and what is to be done for a reply follows.
    Restarted,
    /// This person wants to be ignored in the guild, or to be listened to again.
    OptOutChanged(PersonId),
    /// The recogniser of this person should return what it has.
    Finalize(PersonId),
    /// This person counts as noise.
    Noise(PersonId),
    /// Something to do for a reply, and the turn in whose trace it is.
    Reply(Ticket, Option<TurnId>, Aloud),
    /// Audio of a sentence of the reply with this identity. None: all of it is made.
    Piece(Arc<()>, usize, Option<Result<Piece, NoAnswer>>),
    /// Packets may be due, or audio may be late.
    Tick,
    /// The connection that carries the whole call should run.
    Connect,
    /// It may work now.
    TryAgain,
    /// That connection has ended.
    Disconnected,
    /// The call may have lasted for as long as it may.
    Limit,
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
