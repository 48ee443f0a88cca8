//! Decodes recordings: Ogg files with Opus, such as voice notes.

use std::time::Duration;

use ropus::{Channels, DecodeMode};

use super::ogg::Packets;
use super::opus::length_of;
use super::vad::Detector;
use crate::ports::audio::{CodecFailed, Decoded, HEARD_RATE, Hop, Recording, RecordingRefused};

/// The longest packet, in microseconds (RFC 6716, section 3.2.5).
const LONGEST: u32 = 120_000;
const MOST_SAMPLES: usize = HEARD_RATE as usize * LONGEST as usize / 1_000_000;

/// A recording that is being decoded: packets of any length, mono or stereo, to mono at 16 kHz.
pub struct OpusRecording {
    /// The packets, one after the other, and the end of each.
    packets: Vec<u8>,
    ends: Vec<u32>,
    next: usize,
    length: Duration,
    codec: ropus::Decoder,
    detector: Detector,
    samples: Box<[i16; MOST_SAMPLES]>,
    hops: Vec<Hop>,
    decoded: u64,
}

impl OpusRecording {
    /// Reads a file without decoding it.
    ///
    /// # Errors
    /// Returns an error if it is no recording, or is longer than `longest`. The packets count, whatever length the file claims.
    pub fn new(file: &[u8], longest: Duration) -> Result<Self, RecordingRefused> {
        let malformed = |error: &dyn std::fmt::Display| RecordingRefused::Malformed(error.to_string());
        let (mut packets, mut ends, mut micros) = (Vec::new(), Vec::new(), 0_u64);
        for packet in Packets::of(file).map_err(|error| malformed(&error))? {
            let packet = packet.map_err(|error| malformed(&error))?;
            let length = length_of(&packet).filter(|length| (1..=LONGEST).contains(length));
            micros += u64::from(length.ok_or_else(|| malformed(&"a packet of it is not Opus"))?);
            if micros > longest.as_micros().try_into().unwrap_or(u64::MAX) {
                return Err(RecordingRefused::TooLong);
            }
            packets.extend_from_slice(&packet);
            ends.push(u32::try_from(packets.len()).map_err(|_| RecordingRefused::TooLong)?);
        }
        let codec = ropus::Decoder::new(HEARD_RATE, Channels::Mono);
        Ok(Self {
            packets,
            ends,
            next: 0,
            length: Duration::from_micros(micros),
            codec: codec.map_err(|_| CodecFailed("the Opus codec cannot be set up for decoding".to_owned()))?,
            detector: Detector::default(),
            samples: Box::new([0; _]),
            hops: Vec::new(),
            decoded: 0,
        })
    }
}

impl Recording for OpusRecording {
    fn length(&self) -> Duration {
        self.length
    }

    fn decode_next(&mut self) -> Option<Result<Decoded<'_>, RecordingRefused>> {
        let end = *self.ends.get(self.next)? as usize;
        let start = self.next.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.next += 1;
        let Ok(count) = self.codec.decode(&self.packets[start..end], &mut self.samples[..], DecodeMode::Normal) else {
            self.next = self.ends.len();
            return Some(Err(RecordingRefused::Malformed("a packet of it cannot be decoded".to_owned())));
        };
        let samples = &self.samples[..count];
        let from = self.decoded;
        self.decoded += count as u64;
        self.hops.clear();
        let hops = &mut self.hops;
        self.detector.score(samples, |scored| hops.push(Hop { from: scored.from, score: scored.score }));
        Some(Ok(Decoded { from, samples, hops, concealed: 0 }))
    }
}

#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
