//! The queue of the companions' speech. Frames wait as samples and are encoded when they are sent, so ducking, flushing and stopping act at once.

use std::collections::VecDeque;

use super::events::Sent;
use crate::ports::audio::{Encoder, SPOKEN_FRAME};

/// 20 ms of a companion's speech: mono at 24 kHz.
pub type Frame = [i16; SPOKEN_FRAME];

/// The limit of queued frames: 30 s.
pub const MOST_WAITING: usize = 1_500;
/// The number of silent frames after speech (Discord's documentation, "Voice Data Interpolation").
const SILENT_FRAMES: u8 = 5;
/// -12 dB.
const DUCKED: f32 = 0.251_188_65;
/// The gain changes over 5 ms. That avoids an audible click, and the first packet is already quieter.
const RAMP: usize = SPOKEN_FRAME / 4;
/// Progress is reported after this many frames.
const TOLD_EVERY: u32 = 5;

/// The queue of frames.
pub struct Speaking {
    encoder: Box<dyn Encoder>,
    waiting: VecDeque<(u64, Frame)>,
    /// The reply of the newest frame that was sent, and the number of its frames that were sent.
    reply: Option<(u64, u32)>,
    /// The number of its frames that were reported as sent.
    told: u32,
    gain: f32,
    is_ducked: bool,
    silence_left: u8,
}

/// The packet of one tick.
#[derive(Debug, PartialEq, Eq)]
pub enum Packet {
    /// A companion's speech as Opus.
    Talk(Vec<u8>),
    /// A frame of silence after speech.
    Silence,
    /// The codec refused a frame.
    Refused,
    /// The queued audio must wait.
    Held,
    /// The queue is empty.
    Nothing,
}

impl Speaking {
    pub fn new(encoder: Box<dyn Encoder>) -> Self {
        Self { encoder, waiting: VecDeque::new(), reply: None, told: 0, gain: 1.0, is_ducked: false, silence_left: 0 }
    }

    /// Queues frames of a reply. Returns how many were dropped because the queue is full.
    pub fn play(&mut self, reply: u64, frames: impl ExactSizeIterator<Item = Frame>) -> usize {
        let room = MOST_WAITING.saturating_sub(self.waiting.len());
        let dropped = frames.len().saturating_sub(room);
        self.waiting.extend(frames.take(room).map(|frame| (reply, frame)));
        dropped
    }

    /// Turns ducking on or off: companions are 12 dB quieter.
    pub fn duck(&mut self, on: bool) {
        self.is_ducked = on;
    }

    /// Drops the queued frames.
    pub fn flush(&mut self) {
        self.waiting.clear();
    }

    /// Cancels the remaining silence, because the session that it would end is gone.
    pub fn forget_silence(&mut self) {
        self.silence_left = 0;
    }

    /// The number of queued frames.
    #[cfg(any(test, feature = "samples"))]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether frames of silence are still due after speech.
    pub fn owes_silence(&self) -> bool {
        self.silence_left > 0
    }

    /// Returns the packet of this tick. `may_send`: there is a key, and the server knows our stream. The second value has the progress reports that
    /// are due: of the previous reply, and of this one.
    pub fn next(&mut self, may_send: bool) -> (Packet, [Option<Sent>; 2]) {
        if !may_send || self.waiting.is_empty() {
            let packet = match self.waiting.is_empty() {
                // The encoder continues from silence.
                _ if self.silence_left > 0 => {
                    self.silence_left -= 1;
                    Packet::Silence
                }
                true => Packet::Nothing,
                false => Packet::Held,
            };
            self.gain = self.target();
            return (packet, [None, None]);
        }
        let Some((reply, mut frame)) = self.waiting.pop_front() else { return (Packet::Nothing, [None, None]) };
        let before = self.reply.is_some_and(|(before, _)| before != reply).then(|| self.report_progress()).flatten();
        if self.reply.is_none_or(|(before, _)| before != reply) {
            (self.reply, self.told) = (Some((reply, 0)), 0);
        }
        self.apply_gain(&mut frame);
        self.silence_left = SILENT_FRAMES;
        let packet = match self.encoder.encode(&frame) {
            Ok(opus) => Packet::Talk(opus),
            Err(_) => Packet::Refused,
        };
        // A frame that the codec refuses counts as sent, because its time has passed.
        let sent = self.reply.as_mut().map_or(0, |(_, sent)| {
            *sent = sent.saturating_add(1);
            *sent
        });
        let is_due = self.waiting.is_empty() || sent - self.told >= TOLD_EVERY;
        let after = is_due.then(|| self.report_progress()).flatten();
        (packet, [before, after])
    }

    /// Returns how much of the newest reply was sent, and marks it as reported. `None`: nothing was sent yet.
    pub fn report_progress(&mut self) -> Option<Sent> {
        let (reply, frames) = self.reply?;
        self.told = frames;
        Some(Sent { reply, frames })
    }

    fn target(&self) -> f32 {
        if self.is_ducked { DUCKED } else { 1.0 }
    }

    /// Scales a frame, and ramps to the target gain.
    fn apply_gain(&mut self, frame: &mut Frame) {
        let (from, to) = (self.gain, self.target());
        self.gain = to;
        if from == 1.0 && to == 1.0 {
            return;
        }
        let step = (to - from) / RAMP as f32;
        for (at, sample) in frame.iter_mut().enumerate() {
            // Both gains are at most 1, so the sample stays in range.
            *sample = (f32::from(*sample) * (from + step * (at + 1).min(RAMP) as f32)).round() as i16;
        }
    }
}
