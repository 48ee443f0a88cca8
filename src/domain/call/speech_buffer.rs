//! The received speech of one person: packets that wait to be decoded, voice activity, and the audio whose words are not final.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::moment::Moment;
use crate::voice::speech::{LONGEST_CUT, Pulse, Speech, Stretch};

/// The sample rate of people's speech, in Hz. It is mono.
pub const HEARD_RATE: u32 = 16_000;
/// The maximum number of waiting packets of one person. Beyond it the oldest are dropped.
const MOST_WAITING: usize = 50;
/// The audio before an onset that is also recognised.
const PRE_ROLL: Duration = Duration::from_millis(400);
/// The maximum audio that waits for a recogniser, or is kept until its final.
const KEPT: Duration = Duration::from_secs(5);
/// The largest difference between the packet clock and the system clock. Beyond it the packet clock is synchronised again.
const MOST_DRIFT: Duration = Duration::from_millis(500);

/// An input of a recogniser. Audio is sent while the person talks, and 400 ms from before the onset.
#[derive(Clone, Debug, PartialEq)]
pub enum Sound {
    /// Audio, mono at [`HEARD_RATE`].
    Audio {
        /// The time of the first sample.
        from: Moment,
        samples: Arc<[i16]>,
    },
    /// The person stopped talking. The stretch comes from our own detector.
    Ended(Stretch),
    /// The person has talked for long: the stretch up to here becomes one segment.
    Cut(Stretch),
    /// A request for the outstanding results.
    Finalize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPacket {
    /// The connection that sent it. Each connection numbers its packets separately.
    pub line: u64,
    pub number: u32,
    pub packet: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct SpeechBuffer {
    packets: VecDeque<WaitingPacket>,
    speech: Speech,
    epoch: Option<Moment>,
    /// Audio from before an onset.
    pre_roll: VecDeque<Sound>,
    /// Audio that was not sent to the recogniser yet.
    fresh: VecDeque<Sound>,
    /// Audio that was sent to the recogniser since its last final.
    taken: VecDeque<Sound>,
    /// Whether the words of the newest speech are outstanding.
    awaits_words: bool,
    /// The number of segments that are being journaled.
    pub journaling: usize,
}

impl SpeechBuffer {
    /// Adds a packet. Returns how many packets were dropped for it, and whether it is the only one that waits.
    pub fn push_packet(&mut self, line: u64, number: u32, packet: &[u8]) -> (usize, bool) {
        let is_first = self.packets.is_empty();
        self.packets.push_back(WaitingPacket { line, number, packet: packet.to_vec() });
        let dropped = self.packets.len().saturating_sub(MOST_WAITING);
        self.packets.drain(..dropped);
        (dropped, is_first)
    }

    pub fn take_packets(&mut self) -> VecDeque<WaitingPacket> {
        std::mem::take(&mut self.packets)
    }

    /// Deletes all audio that is not journaled, because the person opted out.
    pub fn forget(&mut self) {
        self.packets.clear();
        self.pre_roll.clear();
        self.fresh.clear();
        self.taken.clear();
        self.awaits_words = false;
    }

    /// Adds the samples of one packet, and the scores of its hops. Positions count samples since packet 0. Returns whether there is audio for the
    /// recogniser, and the changes of voice activity.
    pub fn add(
        &mut self,
        (from, samples): (u64, &[i16]),
        hops: impl Iterator<Item = (u64, f32)>,
        now: Moment,
        has_partials: bool,
    ) -> (bool, Vec<Pulse>) {
        let end = duration(from + samples.len() as u64);
        let expected = now.since(Moment::ZERO).saturating_sub(end);
        let epoch = match self.epoch {
            Some(epoch) if epoch.since(Moment::ZERO).abs_diff(expected) <= MOST_DRIFT => epoch,
            _ => Moment::ZERO + expected,
        };
        if self.epoch.is_none() && !has_partials {
            self.speech = Speech::new(Some(LONGEST_CUT));
        }
        self.epoch = Some(epoch);
        let was_talking = self.speech.is_talking();
        let mut pulses = Vec::new();
        for (from, score) in hops {
            pulses.extend(self.speech.hop(epoch + duration(from), score));
        }
        let sound = Sound::Audio { from: epoch + duration(from), samples: samples.into() };
        let talks = was_talking || self.speech.is_talking() || !pulses.is_empty();
        if talks {
            self.fresh.extend(self.pre_roll.drain(..));
            self.fresh.push_back(sound);
            keep(&mut self.fresh, KEPT);
            self.awaits_words = true;
        } else {
            self.pre_roll.push_back(sound);
            keep(&mut self.pre_roll, PRE_ROLL);
        }
        pulses.iter().for_each(|pulse| self.add_end(pulse));
        (talks, pulses)
    }

    /// Switches to another microphone, whose packets are numbered separately. The current speech ends.
    pub fn change_microphone(&mut self) -> Option<Pulse> {
        self.epoch = None;
        self.pre_roll.clear();
        self.stop()
    }

    /// Ends the speech at once: the person was muted, opted out, or lost the connection.
    pub fn stop(&mut self) -> Option<Pulse> {
        self.speech.stop().inspect(|pulse| self.add_end(pulse))
    }

    pub fn wake(&mut self, now: Moment) -> Option<Pulse> {
        self.speech.wake(now).inspect(|pulse| self.add_end(pulse))
    }

    /// When the speech ends, unless more of it arrives.
    pub fn deadline(&self) -> Option<Moment> {
        self.speech.deadline()
    }

    /// Queues the end of the speech for the recogniser, too.
    fn add_end(&mut self, pulse: &Pulse) {
        match pulse {
            Pulse::Ended(stretch) => self.fresh.push_back(Sound::Ended(*stretch)),
            Pulse::Cut(stretch) => self.fresh.push_back(Sound::Cut(*stretch)),
            Pulse::Started { .. } | Pulse::Voiced { .. } => {}
        }
    }

    /// The next inputs for the recogniser. They are kept until its final. With `again`, after a restart, it returns everything since the last final
    /// once more.
    pub fn next_sounds(&mut self, again: bool) -> Vec<Sound> {
        if again {
            let taken = std::mem::take(&mut self.taken);
            self.fresh = taken.into_iter().chain(self.fresh.drain(..)).collect();
        }
        let sounds: Vec<_> = self.fresh.drain(..).collect();
        self.taken.extend(sounds.iter().cloned());
        keep(&mut self.taken, KEPT);
        sounds
    }

    pub fn forget_before(&mut self, moment: Moment) {
        for sounds in [&mut self.taken, &mut self.fresh] {
            sounds.retain(|sound| end_of(sound).is_some_and(|end| end >= moment));
        }
    }

    /// Whether there is no audio for a recogniser.
    pub fn is_silent(&self) -> bool {
        self.fresh.is_empty() && self.taken.is_empty()
    }

    pub const fn awaits_words(&self) -> bool {
        self.awaits_words
    }

    /// Drops the audio up to `upto`, because a final covers it. `is_last` says whether that final completes the utterance.
    pub fn finalised(&mut self, upto: Moment, is_last: bool) {
        // The queue holds silence between `upto` and the end of the utterance. It is dropped, too: it has no words.
        let is_over = |sound: &Sound| matches!(sound, Sound::Ended(stretch) if stretch.ended <= upto);
        if is_last && let Some(end) = self.taken.iter().rposition(is_over) {
            self.taken.drain(..=end);
        }
        self.taken.retain(|sound| end_of(sound).is_some_and(|end| end > upto));
        // Words of another utterance may be outstanding.
        self.awaits_words &= !is_last || self.speech.is_talking() || !self.is_silent();
    }
}

fn keep(sounds: &mut VecDeque<Sound>, longest: Duration) {
    let Some(newest) = sounds.iter().rev().find_map(end_of) else { return };
    while sounds.front().is_some_and(|sound| end_of(sound).is_none_or(|end| newest.since(end) >= longest)) {
        sounds.pop_front();
    }
}

fn end_of(sound: &Sound) -> Option<Moment> {
    match sound {
        Sound::Audio { from, samples } => Some(*from + duration(samples.len() as u64)),
        Sound::Ended(stretch) | Sound::Cut(stretch) => Some(stretch.ended),
        Sound::Finalize => None,
    }
}

fn duration(samples: u64) -> Duration {
    Duration::from_micros(samples.saturating_mul(1_000_000) / u64::from(HEARD_RATE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_awaited_until_the_last_final_of_the_newest_utterance() {
        let at = |ms: u64| Moment::from_micros(ms * 1_000);
        let mut buffer = SpeechBuffer { awaits_words: true, ..SpeechBuffer::default() };
        for from in [1_000, 5_000] {
            let stretch = Stretch { started: at(from), ended: at(from + 900), voiced: Duration::from_millis(900) };
            buffer.taken.push_back(Sound::Audio { from: at(from), samples: vec![1; 16_000].into() });
            buffer.taken.push_back(Sound::Ended(stretch));
        }

        let mut awaits = Vec::new();
        for (upto, is_last) in [(1_500, false), (1_900, true), (5_900, true)] {
            buffer.finalised(at(upto), is_last);
            awaits.push(buffer.awaits_words());
        }

        assert_eq!(awaits, [true, true, false]);
    }
}
