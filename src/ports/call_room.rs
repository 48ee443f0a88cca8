//! The voice call of a room, as somebody sees it who takes part through a platform that carries audio: the console's page.

#[cfg(any(test, feature = "samples"))]
pub mod conformance;

use std::sync::Arc;

use async_trait::async_trait;

use super::audio::SPOKEN_FRAME;
use super::backend::refused::Refused;
use super::backend::room::RoomId;
pub use crate::domain::call::{End, Person, PersonAction, Trouble, View};
use crate::domain::message::Author;

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

/// What shows and plays a call to one person. No method may block.
pub trait Listener: Send + Sync {
    /// Something happened. Only a trouble lets it look at the call: everything else is shown while the call waits.
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
