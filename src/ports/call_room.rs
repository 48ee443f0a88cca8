//! The voice call of a room, as somebody sees it who takes part through a platform that carries audio: the console's page.

#[cfg(test)]
pub(crate) mod conformance;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::audio::SPOKEN_FRAME;
use super::backend::refused::Refused;
use super::backend::room::RoomId;
use crate::domain::id::{CompanionId, PersonId};
use crate::domain::message::Author;
use crate::domain::named::named;
use crate::domain::voice::segment::Kind;

#[async_trait]
pub trait CallRooms: Send + Sync + 'static {
    /// The services that hear and speak in the room, and who is in its call.
    ///
    /// # Errors
    /// There is no such room.
    async fn describe(&self, room: &RoomId) -> Result<Description, Refused>;

    /// Whether somebody of this name could enter the call of a room.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    async fn admits(&self, room: &RoomId, from: &str) -> Result<(), Refused>;

    /// Enters the call of a room. The person is on record as being in the call when this returns.
    ///
    /// # Errors
    /// There is no such room, the call is full, or the store takes nothing now.
    async fn enter(&self, room: &RoomId, entrance: Entrance) -> Result<Arc<dyn Line>, Refused>;
}

/// Somebody who enters a call.
pub struct Entrance {
    /// Who enters.
    pub author: Author,
    /// Whether a microphone comes along. Without one, the person listens.
    pub has_microphone: bool,
    /// What shows and plays the call.
    pub listener: Arc<dyn Listener>,
}

/// One connection to a call. Dropping it without [`PersonAction::Leave`] means that the connection was lost.
pub trait Line: Send + Sync {
    /// Takes a packet of the microphone: Opus, 20 ms. The number is the time of capture in frames. Must not block.
    fn push_packet(&self, number: u32, packet: &[u8]);

    /// Takes what the person did. Must not block.
    fn report(&self, action: PersonAction);
}

/// What a person did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonAction {
    /// Muted the microphone, or not.
    Muted(bool),
    /// Wants not to be listened to in this call, or to be listened to again.
    Ignored(bool),
    /// Heard a reply up to a position.
    Played {
        reply: u32,
        /// The position from its first sample.
        position: Duration,
    },
    /// Pressed Stop.
    Stop { reply: u32 },
    /// What plays to all who take part is not heard any more, or hears nobody; or both are over.
    Silenced(bool),
    /// Says this aloud, as far as the call is concerned.
    Say(Arc<str>),
    /// Leaves the call.
    Leave,
}

/// What shows and plays a call to one person. No method may block.
pub trait Listener: Send + Sync {
    /// Something happened.
    fn show(&self, view: &View);

    /// The next packet of a reply: Opus, 20 ms.
    fn play(&self, packet: &Packet);

    /// The connection has to end.
    fn end(&self, end: End);
}

/// A packet of what a companion says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub reply: u32,
    /// The packet's number in the reply, from 0.
    pub number: u32,
    /// The samples, for who encodes them itself.
    pub samples: Box<[i16; SPOKEN_FRAME]>,
    /// 1 to 1,275 bytes.
    pub bytes: Arc<[u8]>,
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

/// A person in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub user: PersonId,
    /// Whether the microphone is muted.
    pub is_muted: bool,
    /// Whether the person has no microphone.
    pub only_listens: bool,
    /// Whether the person wants not to be listened to.
    pub is_ignored: bool,
    pub talks: bool,
}

/// Something that happened in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The call, at the moment of entering.
    Entered {
        /// The person who has entered.
        you: PersonId,
        /// Who is in the call.
        people: Vec<Person>,
    },
    /// Somebody has entered.
    Joined(Person),
    /// Something about a person has changed.
    Changed(Person),
    Left(PersonId),
    /// Somebody begins or ends to talk.
    Talking(PersonId, bool),
    /// Somebody counts as noise.
    Noise(PersonId),
    /// Words of a person.
    Caption {
        user: PersonId,
        text: Arc<str>,
        /// What they count as, once they are final.
        kind: Option<Kind>,
    },
    /// A companion prepares a spoken reply, or has stopped that without a word.
    Thinking(CompanionId, bool),
    /// A spoken reply begins.
    Speaking {
        companion: CompanionId,
        reply: u32,
        /// The position of the first packet that follows.
        from: Duration,
    },
    /// A sentence of a reply begins.
    Sentence {
        reply: u32,
        /// The position at which it begins.
        from: Duration,
        text: Arc<str>,
    },
    /// A reply is quieter by 12 dB, or not any more.
    Duck(u32, bool),
    /// A reply pauses: nothing more of it is played, and the position is told.
    Flush(u32),
    /// A reply goes on.
    Resume(u32, Duration),
    /// A reply was played to its end.
    Done(u32),
    /// A reply was stopped.
    Cut {
        reply: u32,
        heard: Arc<str>,
    },
    /// Something does not work.
    Trouble(Trouble),
}

named! {
    /// What does not work in a call. Unless it says so, the call goes on.
    pub enum Trouble {
        /// Speech recognition does not answer.
        RecognitionFailed = "recognition_failed",
        /// Too many people talk at once.
        RecognitionFull = "recognition_full",
        /// The guild may have no more recognised today.
        RecognitionUsedUp = "recognition_used_up",
        /// No voice can be made.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeechService {
    /// Its name, as in the span attribute `gen_ai.provider.name`.
    pub provider: &'static str,
    /// The host to which it sends audio or words. `None`: they stay on this machine.
    pub host: Option<Arc<str>>,
}

/// The voice of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// What recognises speech, in order: the next one takes over if one fails.
    pub recognition: Vec<SpeechService>,
    /// Whether the first one returns words.
    pub recognises_words: bool,
    /// What makes the voices of the companions in the room, each once.
    pub synthesis: Vec<SpeechService>,
    /// Who is in the call.
    pub people: Vec<Person>,
    /// What of these services does not work now.
    pub troubles: Vec<Trouble>,
}
