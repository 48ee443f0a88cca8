//! The voice call of a room, for participants whose platform carries audio to each of them: the console's page.

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
    /// The speech services of the room, and the people in its call.
    ///
    /// # Errors
    /// Returns an error if there is no such room.
    async fn describe(&self, room: &RoomId) -> Result<Description, Refused>;

    /// Checks whether a person of this name could enter the call of a room.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    async fn admits(&self, room: &RoomId, from: &str) -> Result<(), Refused>;

    /// Enters the call of a room. The entrance is journaled when this returns.
    ///
    /// # Errors
    /// Returns an error if there is no such room, if the call is full, if there are too many calls, or if the store does not
    /// accept the entrance.
    async fn enter(&self, room: &RoomId, entrance: Entrance) -> Result<Arc<dyn Line>, Refused>;
}

/// A person's request to enter a call.
pub struct Entrance {
    /// The person.
    pub author: Author,
    /// Whether the connection has a microphone. Without one, the person only listens.
    pub has_microphone: bool,
    /// The listener that shows and plays the call.
    pub listener: Arc<dyn Listener>,
}

/// One connection to a call. Dropping it without [`PersonAction::Leave`] means that the connection was lost.
pub trait Line: Send + Sync {
    /// Accepts a packet of the microphone: Opus, 20 ms. The number is the time of capture in frames. Must not block.
    fn push_packet(&self, number: u32, packet: &[u8]);

    /// Accepts an action of the person. Must not block.
    fn report(&self, action: PersonAction);
}

/// Shows and plays a call to one person. No method may block.
pub trait Listener: Send + Sync {
    /// Shows an event. The call is locked meanwhile, so the listener must not access it. Only for [`View::Trouble`] the call is
    /// not locked.
    fn show(&self, view: &View);

    /// Plays the next packet of a reply: Opus, 20 ms.
    fn play(&self, packet: &Packet);

    /// Ends the connection.
    fn end(&self, end: End);
}

/// A packet of a companion's speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub reply: u32,
    /// The packet's number in the reply, from 0.
    pub number: u32,
    /// The samples, for listeners that encode them themselves.
    pub samples: Box<[i16; SPOKEN_FRAME]>,
    /// The Opus packet, 1 to 1,275 bytes.
    pub bytes: Arc<[u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeechService {
    /// The provider's name, as in the span attribute `gen_ai.provider.name`.
    pub provider: &'static str,
    /// The host that receives audio or words. `None` if they stay on this machine.
    pub host: Option<Arc<str>>,
}

/// The speech services of a room, and its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The recognition services in order of preference: if one fails, the next one takes over.
    pub recognition: Vec<SpeechService>,
    /// Whether the first recognition service returns words.
    pub recognises_words: bool,
    /// The synthesis services of the companions in the room, without duplicates.
    pub synthesis: Vec<SpeechService>,
    /// The people in the call.
    pub people: Vec<Person>,
    /// The services that do not work now.
    pub troubles: Vec<Trouble>,
}
