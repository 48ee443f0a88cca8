//! Audio: packets to samples and back, and how much a person's audio sounds like speech.

pub use crate::domain::call::HEARD_RATE;
pub use crate::domain::call::playback::{SPOKEN_FRAME, SPOKEN_RATE};

/// The number of samples of what people say in one packet of 20 ms.
pub const HEARD_FRAME: usize = 320;

/// Codec and detector.
pub trait Audio: Send + Sync + 'static {
    /// Hears one person.
    ///
    /// # Errors
    /// The codec cannot be set up.
    fn ear(&self) -> Result<Box<dyn Ear>, CodecFailed>;

    /// Encodes what companions say in one call.
    ///
    /// # Errors
    /// The codec cannot be set up.
    fn encoder(&self) -> Result<Box<dyn Encoder>, CodecFailed>;
}

/// Decodes what one person says, and scores it.
pub trait Ear: Send {
    /// Takes the packet with this number. Numbers count frames of 20 ms, also those that were not sent.
    ///
    /// # Errors
    /// It is no audio, or comes too late. What follows is not affected.
    fn hear(&mut self, number: u32, packet: &[u8]) -> Result<Decoded<'_>, PacketRefused>;
}

/// What one packet brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// The position of the first sample, in samples since packet 0. Higher than the end of the last ones if packets are missing before it.
    pub from: u64,
    pub samples: &'a [i16],
    /// The hops of 16 ms that they complete. Their positions may lie before `from`.
    pub hops: &'a [Hop],
    /// The number of frames that were lost and are concealed.
    pub concealed: u32,
}

/// The score of a hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// The position of its first sample, in samples since packet 0.
    pub from: u64,
    /// How much it sounds like speech, from 0 to 1.
    pub score: f32,
}

/// Encodes what companions say.
pub trait Encoder: Send {
    /// Encodes a frame of 20 ms. The packet has 1 to 1,275 bytes.
    ///
    /// # Errors
    /// The codec refuses the frame.
    fn encode(&mut self, frame: &[i16; SPOKEN_FRAME]) -> Result<Vec<u8>, CodecFailed>;
}

/// The codec does not work, which no input can cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CodecFailed(pub String);

/// A packet was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketRefused {
    /// It comes after later ones.
    #[error("{0}")]
    Late(String),
    /// It cannot be decoded.
    #[error("{0}")]
    Malformed(String),
}
