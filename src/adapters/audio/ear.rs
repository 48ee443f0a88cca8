//! The codec and the voice activity detector behind `ports/audio`.

use std::time::Duration;

use super::opus::{Decoder, Encoder};
use super::recording::OpusRecording;
use super::vad::Detector;
use crate::ports::audio::{self, Audio, CodecFailed, Decoded, Ear, HEARD_FRAME, Hop, PacketRefused, Recording, RecordingRefused};

/// Opus, and the voice activity detector.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpusAudio;

impl Audio for OpusAudio {
    fn ear(&self) -> Result<Box<dyn Ear>, CodecFailed> {
        Ok(Box::new(OpusEar {
            decoder: Decoder::new()?,
            detector: Detector::default(),
            samples: Vec::new(),
            hops: Vec::new(),
            begun: 0,
            end: None,
        }))
    }

    fn recording(&self, file: &[u8], longest: Duration) -> Result<Box<dyn Recording>, RecordingRefused> {
        Ok(Box::new(OpusRecording::new(file, longest)?))
    }

    fn encoder(&self) -> Result<Box<dyn audio::Encoder>, CodecFailed> {
        Ok(Box::new(Encoder::new()?))
    }
}

struct OpusEar {
    decoder: Decoder,
    detector: Detector,
    samples: Vec<i16>,
    hops: Vec<Hop>,
    /// The position of the first sample since the detector was reset.
    begun: u64,
    /// The position after the last sample.
    end: Option<u64>,
}

impl Ear for OpusEar {
    fn decode_packet(&mut self, number: u32, packet: &[u8]) -> Result<Decoded<'_>, PacketRefused> {
        let decoded = self.decoder.decode(number, packet)?;
        let from = u64::from(decoded.first) * HEARD_FRAME as u64;
        if self.end != Some(from) {
            self.detector.reset();
            self.begun = from;
        }
        self.samples.clear();
        self.samples.extend_from_slice(decoded.samples);
        self.end = Some(from + decoded.samples.len() as u64);
        self.hops.clear();
        let (begun, hops) = (self.begun, &mut self.hops);
        self.detector.score(decoded.samples, |scored| hops.push(Hop { from: begun + scored.from, score: scored.score }));
        Ok(Decoded { from, samples: &self.samples, hops: &self.hops, concealed: decoded.concealed })
    }
}
