//! A call as its participants see it, and their actions.

use std::sync::Arc;
use std::time::Duration;

use crate::id::{CompanionId, PersonId};
use crate::named::named;
use crate::voice::segment::Kind;

/// An action of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonAction {
    /// Muted or unmuted the microphone.
    Muted(bool),
    /// Opted out in this call, or opted in again.
    Ignored(bool),
    /// Reported the playback position of a reply.
    Played { reply: u32, position: Duration },
    /// Pressed Stop.
    Stop { reply: u32 },
    /// The connection that plays to all participants can no longer be heard, or no longer hears people. `false`: both work again.
    Silenced(bool),
    /// Typed this text, which is treated as speech.
    Say(Arc<str>),
    /// Leaves the call.
    Leave,
}

/// Why the server ends a connection.
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
    /// Whether the person has no microphone.
    pub only_listens: bool,
    /// Whether the person has opted out in this call.
    pub is_ignored: bool,
    pub talks: bool,
}

/// An event in a call, as shown to participants. Positions count from the first sample of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The state of the call when `you` entered.
    Entered { you: PersonId, people: Vec<Person> },
    /// A person entered.
    Joined(Person),
    /// The state of a person changed.
    Changed(Person),
    /// A person left the call.
    Left(PersonId),
    /// A person began or stopped talking.
    Talking(PersonId, bool),
    /// A person counts as noise.
    Noise(PersonId),
    /// A transcript of a person's speech. `kind` is `None` until the words are final.
    Caption { user: PersonId, text: Arc<str>, kind: Option<Kind> },
    /// A companion prepares a spoken reply, or has stopped preparing it without speaking.
    Thinking(CompanionId, bool),
    /// A spoken reply begins. For a person who enters during the reply, `from` is the current position.
    Speaking { companion: CompanionId, reply: u32, from: Duration },
    /// A sentence of a reply begins.
    Sentence { reply: u32, from: Duration, text: Arc<str> },
    /// A reply is ducked by 12 dB, or restored to full volume.
    Duck(u32, bool),
    /// A reply pauses: drop its buffered audio, and report the position.
    Flush(u32),
    /// A reply resumes.
    Resume(u32, Duration),
    /// A reply was played to its end.
    Done(u32),
    /// A reply was cut. `heard` is the text that was heard.
    Cut { reply: u32, heard: Arc<str> },
    /// An error that the participants should know of.
    Trouble(Trouble),
}

named! {
    /// An error in a call. The call continues unless the description says otherwise.
    pub enum Trouble {
        RecognitionFailed = "recognition_failed",
        RecognitionFull = "recognition_full",
        /// The guild has used up today's allowance of speech recognition.
        RecognitionUsedUp = "recognition_used_up",
        SynthesisFailed = "synthesis_failed",
        /// The guild has used up today's allowance of speech synthesis.
        SynthesisUsedUp = "synthesis_used_up",
        /// The person's speech is no longer received. The person must enter the call again.
        NotHeard = "not_heard",
        /// An earlier typed text of the person is still being said.
        SaysAlready = "says_already",
        /// The typed text is too long.
        SaysTooMuch = "says_too_much",
        /// The call has reached its time limit, and ends.
        CallTooLong = "call_too_long",
    }
}
