//! Audio: encodes and decodes packets, and scores how much a person's audio sounds like speech.

use std::time::Duration;

pub use crate::domain::call::HEARD_RATE;
pub use crate::domain::call::playback::{SPOKEN_FRAME, SPOKEN_RATE};

/// The number of samples in one packet of people's speech (20 ms).
pub const HEARD_FRAME: usize = 320;

/// A codec and a voice activity detector.
pub trait Audio: Send + Sync + 'static {
    /// Creates the decoder and detector for one person.
    ///
    /// # Errors
    /// Returns an error if the codec cannot be set up.
    fn ear(&self) -> Result<Box<dyn Ear>, CodecFailed>;

    /// Opens a recording: an Ogg file with Opus.
    ///
    /// # Errors
    /// Returns an error if the file is not one, or is longer than `longest`.
    fn recording(&self, file: &[u8], longest: Duration) -> Result<Box<dyn Recording>, RecordingRefused>;

    /// Creates the encoder for the companions' speech in one call.
    ///
    /// # Errors
    /// Returns an error if the codec cannot be set up.
    fn encoder(&self) -> Result<Box<dyn Encoder>, CodecFailed>;
}

/// Decodes the audio of one person, and scores it.
pub trait Ear: Send {
    /// Decodes the packet with this number. Numbers count frames of 20 ms, including frames that were not sent.
    ///
    /// # Errors
    /// Returns an error if the packet is not audio, or arrives too late. Later packets are not affected.
    fn decode_packet(&mut self, number: u32, packet: &[u8]) -> Result<Decoded<'_>, PacketRefused>;
}

/// Decodes a recording, and scores it.
pub trait Recording: Send {
    /// The length of its audio.
    fn length(&self) -> Duration;

    /// Decodes the next packet. `None` at the end, and after an error.
    fn decode_next(&mut self) -> Option<Result<Decoded<'_>, RecordingRefused>>;
}

/// The audio of one packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// The position of the first sample, in samples since packet 0. There is a gap after the previous samples if packets are missing.
    pub from: u64,
    pub samples: &'a [i16],
    /// The hops of 16 ms that these samples complete. Their positions may lie before `from`.
    pub hops: &'a [Hop],
    /// The number of lost frames that were concealed.
    pub concealed: u32,
}

/// The score of a hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// The position of the first sample, in samples since packet 0.
    pub from: u64,
    /// How much the hop sounds like speech, from 0 to 1.
    pub score: f32,
}

/// Encodes the companions' speech.
pub trait Encoder: Send {
    /// Encodes a frame of 20 ms. The packet has 1 to 1,275 bytes.
    ///
    /// # Errors
    /// Returns an error if the codec refuses the frame.
    fn encode(&mut self, frame: &[i16; SPOKEN_FRAME]) -> Result<Vec<u8>, CodecFailed>;
}

/// The codec does not work. No input can cause this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CodecFailed(pub String);

/// Why a recording cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingRefused {
    /// It cannot be read.
    #[error("{0}")]
    Malformed(String),
    #[error("it is too long")]
    TooLong,
    #[error(transparent)]
    Codec(#[from] CodecFailed),
}

/// Why a packet was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketRefused {
    /// It arrived after later packets.
    #[error("{0}")]
    Late(String),
    /// It cannot be decoded.
    #[error("{0}")]
    Malformed(String),
}
