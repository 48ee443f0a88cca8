//! A call as somebody sees it who takes part, and what somebody does in it.

use std::sync::Arc;
use std::time::Duration;

use crate::id::{CompanionId, PersonId};
use crate::named::named;
use crate::voice::segment::Kind;

/// What a person did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonAction {
    /// Muted the microphone, or not.
    Muted(bool),
    /// Wants not to be listened to in this call, or to be listened to again.
    Ignored(bool),
    /// Heard a reply up to a position.
    Played { reply: u32, position: Duration },
    /// Pressed Stop.
    Stop { reply: u32 },
    /// What plays to all who take part is not heard any more, or hears nobody; or both are over.
    Silenced(bool),
    /// Typed this text, which is treated as speech.
    Say(Arc<str>),
    /// Leaves the call.
    Leave,
}

/// Why the core ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Left,
    /// Another connection of the person has taken the microphone.
    Moved,
    /// The call has ended.
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub user: PersonId,
    pub is_muted: bool,
    /// Without a microphone.
    pub only_listens: bool,
    /// The person wants not to be listened to.
    pub is_ignored: bool,
    pub talks: bool,
}

/// Something that happened in a call. Positions count from the first sample of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The call, at the moment when `you` entered.
    Entered { you: PersonId, people: Vec<Person> },
    /// Somebody has entered.
    Joined(Person),
    /// Something about a person has changed.
    Changed(Person),
    /// A person is not in the call any more.
    Left(PersonId),
    /// Somebody begins or ends to talk.
    Talking(PersonId, bool),
    /// Somebody counts as noise.
    Noise(PersonId),
    /// Words of a person, and what they count as, once they are final.
    Caption { user: PersonId, text: Arc<str>, kind: Option<Kind> },
    /// A companion prepares a spoken reply, or has stopped that without a word.
    Thinking(CompanionId, bool),
    /// A spoken reply begins, or somebody enters while it is at this position.
    Speaking { companion: CompanionId, reply: u32, from: Duration },
    /// A sentence of a reply begins.
    Sentence { reply: u32, from: Duration, text: Arc<str> },
    /// A reply is quieter by 12 dB, or not any more.
    Duck(u32, bool),
    /// A reply pauses: nothing more of it is played, and the position is reported.
    Flush(u32),
    /// A reply goes on.
    Resume(u32, Duration),
    /// A reply was played to its end.
    Done(u32),
    /// A reply was stopped.
    Cut { reply: u32, heard: Arc<str> },
    /// Something does not work.
    Trouble(Trouble),
}

named! {
    /// What does not work in a call. Unless it says so, the call goes on.
    pub enum Trouble {
        RecognitionFailed = "recognition_failed",
        RecognitionFull = "recognition_full",
        /// The guild may have no more recognised today.
        RecognitionUsedUp = "recognition_used_up",
        SynthesisFailed = "synthesis_failed",
        /// The guild may have no more spoken today.
        SynthesisUsedUp = "synthesis_used_up",
        /// What the person says is not heard any more. Only entering again helps.
        NotHeard = "not_heard",
        /// What the person said aloud before is not over.
        SaysAlready = "says_already",
        /// What the person wants to say aloud is too long.
        SaysTooMuch = "says_too_much",
        /// The call has lasted for as long as a call may, and ends.
        CallTooLong = "call_too_long",
    }
}
