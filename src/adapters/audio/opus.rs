//! Opus (RFC 6716): decodes people's packets to samples, and encodes companions' samples to packets. Each packet has 20 ms of audio.

use ropus::{Application, Bitrate, Channels, DecodeMode};

use crate::ports::audio::{self, CodecFailed, HEARD_FRAME, HEARD_RATE, PacketRefused, SPOKEN_FRAME, SPOKEN_RATE};

/// The maximum size of a packet in bytes: the longest Opus frame.
pub const MOST_BYTES: usize = 1_275;
/// The maximum number of consecutive lost frames that are concealed. A longer loss is a gap.
pub const MOST_CONCEALED: u32 = 3;

/// The bit rate of companions' speech, in bits per second.
const BITRATE: u32 = 32_000;
/// The encoder's complexity, from 0 to 10. At this bit rate a higher value takes up to two thirds more time, and speech sounds the same.
const COMPLEXITY: u8 = 5;

/// Decodes the audio of one person: packets in any Opus mode, mono or stereo, to mono at 16 kHz.
pub struct Decoder {
    codec: ropus::Decoder,
    /// The number of the next packet. `None` before the first one.
    next: Option<u32>,
    samples: [i16; HEARD_FRAME * (MOST_CONCEALED as usize + 1)],
}

/// The audio of one packet, and of lost packets before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The number of the first frame. If it is not the successor of the last frame's number, frames are missing.
    pub first: u32,
    /// The number of lost frames that were concealed. They come first.
    pub concealed: u32,
    /// Whole frames of 320 samples at 16 kHz.
    pub samples: &'a [i16],
}

impl Decoder {
    /// Creates a decoder for one person.
    ///
    /// # Errors
    /// Returns an error if the codec cannot be set up.
    pub fn new() -> Result<Self, CodecFailed> {
        let codec = ropus::Decoder::new(HEARD_RATE, Channels::Mono).map_err(|_| failed("it cannot be set up for decoding"))?;
        Ok(Self { codec, next: None, samples: [0; _] })
    }

    /// Decodes the packet with this number. Numbers count frames of 20 ms, including frames that were not sent. If at most three frames before the
    /// packet are lost, they are concealed; the last of them is restored if the packet contains a copy of it (in-band FEC).
    ///
    /// # Errors
    /// Returns an error if the packet is not valid Opus of 20 ms, or arrives too late.
    pub fn decode(&mut self, number: u32, packet: &[u8]) -> Result<Decoded<'_>, PacketRefused> {
        check(packet)?;
        let expected = self.next.unwrap_or(number);
        let late = || PacketRefused::Late(format!("the Opus packet {number} comes too late: {expected} is the next one"));
        let lost = number.checked_sub(expected).ok_or_else(late)?;
        let concealed = if lost <= MOST_CONCEALED { lost } else { 0 };
        let frames = concealed as usize + 1;
        for (after, frame) in (0..frames).rev().zip(self.samples.as_chunks_mut::<HEARD_FRAME>().0) {
            let (bytes, mode) = match after {
                0 => (packet, DecodeMode::Normal),
                1 => (packet, DecodeMode::Fec),
                _ => (&[][..], DecodeMode::Normal),
            };
            let count = self.codec.decode(bytes, frame, mode).map_err(|_| invalid())?;
            if count != HEARD_FRAME {
                return Err(invalid());
            }
        }
        self.next = Some(number.saturating_add(1));
        Ok(Decoded { first: number - concealed, concealed, samples: &self.samples[..frames * HEARD_FRAME] })
    }
}

/// Checks the header of a packet (RFC 6716, section 3).
fn check(packet: &[u8]) -> Result<(), PacketRefused> {
    let refused = |text: String| Err(PacketRefused::Malformed(text));
    if packet.is_empty() {
        return refused("the Opus packet is empty; send one frame of 20 ms in each packet".to_owned());
    }
    if packet.len() > MOST_BYTES {
        return refused(format!("the Opus packet has {} bytes; one frame has at most {MOST_BYTES}", packet.len()));
    }
    match length_of(packet).ok_or_else(invalid)? {
        20_000 => Ok(()),
        micros => refused(format!("the Opus packet has {} ms of audio; send 20 ms in each packet", micros / 1_000)),
    }
}

/// The length of a packet's audio, in microseconds, by its first bytes (RFC 6716, section 3). `None` if they are no Opus.
pub(super) fn length_of(packet: &[u8]) -> Option<u32> {
    let toc = packet.first()?;
    let frame = match toc >> 3 {
        config @ 0..12 => [10_000, 20_000, 40_000, 60_000][usize::from(config % 4)],
        config @ 12..16 => [10_000, 20_000][usize::from(config % 2)],
        config => [2_500, 5_000, 10_000, 20_000][usize::from(config % 4)],
    };
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    Some(frame * frames)
}

fn invalid() -> PacketRefused {
    PacketRefused::Malformed("the packet is not valid Opus (RFC 6716)".to_owned())
}

fn failed(how: &str) -> CodecFailed {
    CodecFailed(format!("the Opus codec failed: {how}; please report it with the version"))
}

/// Encodes the companions' speech in one call: mono at 24 kHz to packets of 20 ms, at 32 kbit/s on average.
pub struct Encoder {
    codec: ropus::Encoder,
    packet: [u8; MOST_BYTES],
}

impl Encoder {
    /// Creates an encoder for one call.
    ///
    /// # Errors
    /// Returns an error if the codec cannot be set up.
    pub fn new() -> Result<Self, CodecFailed> {
        let codec = ropus::Encoder::builder(SPOKEN_RATE, Channels::Mono, Application::Voip)
            .bitrate(Bitrate::Bits(BITRATE))
            .complexity(COMPLEXITY)
            .build()
            .map_err(|_| failed("it cannot be set up for encoding"))?;
        Ok(Self { codec, packet: [0; _] })
    }
}

impl audio::Encoder for Encoder {
    fn encode(&mut self, frame: &[i16; SPOKEN_FRAME]) -> Result<Vec<u8>, CodecFailed> {
        let length = self.codec.encode(frame, &mut self.packet).map_err(|_| failed("it does not encode"))?;
        let packet = self.packet.get(..length).filter(|packet| !packet.is_empty());
        packet.map(<[u8]>::to_vec).ok_or_else(|| failed("it made no packet"))
    }
}

#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
pub(crate) mod tests;
