//! What is known of one person's voice. It outlives the actors, so that one that dies loses only the state of its decoder.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::domain::moment::Moment;
use crate::domain::voice::speech::{LONGEST_CUT, Pulse, Speech};
use crate::ports::audio::{HEARD_RATE, Heard};
use crate::ports::speech_recognition::Sound;

/// The packets of one person that wait. Beyond it the oldest is dropped.
const MOST_WAITING: usize = 50;
/// The audio from before an onset that is recognised, too.
const PRE_ROLL: Duration = Duration::from_millis(400);
/// The audio that waits for a recogniser, or is kept until its final, at most.
const KEPT: Duration = Duration::from_secs(5);
/// The largest difference between the packet clock and the system clock. Beyond it the packet clock is synchronised again.
const MOST_DRIFT: Duration = Duration::from_millis(500);

/// What is known of a person's voice.
#[derive(Default)]
pub struct Voice {
    packets: Mutex<VecDeque<Waiting>>,
    pub(super) found: Mutex<Found>,
    /// The number of segments that are being put on record.
    recording: AtomicUsize,
}

/// See [`Voice::recording`].
pub struct Recording(Arc<Voice>);

impl Drop for Recording {
    fn drop(&mut self) {
        self.0.recording.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A packet that waits.
pub struct Waiting {
    /// The connection that it came from. Each has numbers of its own.
    pub line: u64,
    pub number: u32,
    pub packet: Vec<u8>,
}

/// What was found in the packets.
#[derive(Default)]
pub(super) struct Found {
    pub(super) speech: Speech,
    /// The moment of packet 0.
    epoch: Option<Moment>,
    /// Audio from before an onset.
    pre_roll: VecDeque<Sound>,
    /// Sound that the recogniser has not taken yet.
    pub(super) fresh: VecDeque<Sound>,
    /// Sound that it has taken, since its last final.
    pub(super) taken: VecDeque<Sound>,
    /// Whether there was speech of which the last words are not there yet.
    pub(super) awaits_words: bool,
}

impl Voice {
    /// Adds a packet. Returns how many were dropped for it, and whether it is the only one that waits.
    pub fn push(&self, line: u64, number: u32, packet: &[u8]) -> (usize, bool) {
        let mut packets = self.packets.lock();
        let is_first = packets.is_empty();
        packets.push_back(Waiting { line, number, packet: packet.to_vec() });
        let dropped = packets.len().saturating_sub(MOST_WAITING);
        packets.drain(..dropped);
        (dropped, is_first)
    }

    pub fn take_packets(&self) -> VecDeque<Waiting> {
        std::mem::take(&mut *self.packets.lock())
    }

    /// Forgets everything that was heard and is not on record: the person wants to be ignored.
    pub fn forget(&self) {
        drop(self.take_packets());
        let mut found = self.found();
        found.pre_roll.clear();
        found.fresh.clear();
        found.taken.clear();
        found.awaits_words = false;
    }

    /// A segment is being put on record until the guard is dropped.
    pub fn recording(self: &Arc<Self>) -> Recording {
        self.recording.fetch_add(1, Ordering::Relaxed);
        Recording(self.clone())
    }

    pub fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Relaxed) > 0
    }

    pub(super) fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock()
    }
}

impl Found {
    /// Another microphone, whose packets have other numbers, takes the place of the one before.
    pub(super) fn change_microphone(&mut self) {
        self.epoch = None;
        self.pre_roll.clear();
    }

    /// What the recogniser is given next, which is kept until its final. After a restart it gets everything since its last final again.
    pub(super) fn next_sounds(&mut self, again: bool) -> Vec<Sound> {
        if again {
            let taken = std::mem::take(&mut self.taken);
            self.fresh = taken.into_iter().chain(self.fresh.drain(..)).collect();
        }
        let sounds: Vec<_> = self.fresh.drain(..).collect();
        self.taken.extend(sounds.iter().cloned());
        keep(&mut self.taken, KEPT);
        sounds
    }

    /// Forgets sound that ended before this moment.
    pub(super) fn forget_before(&mut self, moment: Moment) {
        for sounds in [&mut self.taken, &mut self.fresh] {
            sounds.retain(|sound| end_of(sound).is_some_and(|end| end >= moment));
        }
    }

    /// Whether there is nothing for a recogniser.
    pub(super) fn is_silent(&self) -> bool {
        self.fresh.is_empty() && self.taken.is_empty()
    }

    /// A final covers the sound up to this moment. It is the last one of an utterance, or more are to come.
    pub(super) fn finalised(&mut self, upto: Moment, is_last: bool) {
        // The silence that ended an utterance lies after the moment, and before its end in the queue: nothing of it is to be recognised.
        let is_over = |sound: &Sound| matches!(sound, Sound::Ended(stretch) if stretch.ended <= upto);
        if is_last && let Some(end) = self.taken.iter().rposition(is_over) {
            self.taken.drain(..=end);
        }
        self.taken.retain(|sound| end_of(sound).is_some_and(|end| end > upto));
        // There may be another utterance whose words are not there yet.
        self.awaits_words &= !is_last || self.speech.is_talking() || !self.is_silent();
    }
}

/// Drops the oldest audio beyond this length.
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

/// Takes what one packet brought. Returns whether there is something for the recogniser.
pub(super) fn add_heard(found: &mut Found, heard: &Heard<'_>, now: Moment, has_partials: bool, pulses: &mut Vec<Pulse>) -> bool {
    let end = duration(heard.from + heard.samples.len() as u64);
    let expected = now.since(Moment::ZERO).saturating_sub(end);
    let epoch = match found.epoch {
        Some(epoch) if epoch.since(Moment::ZERO).abs_diff(expected) <= MOST_DRIFT => epoch,
        _ => Moment::ZERO + expected,
    };
    if found.epoch.is_none() && !has_partials {
        found.speech = Speech::new(Some(LONGEST_CUT));
    }
    found.epoch = Some(epoch);
    let was_talking = found.speech.is_talking();
    let mut ended = Vec::new();
    for hop in heard.hops {
        if let Some(pulse) = found.speech.hop(epoch + duration(hop.from), hop.score) {
            ended.push(pulse);
        }
    }
    let sound = Sound::Audio { from: epoch + duration(heard.from), samples: heard.samples.into() };
    let talks = was_talking || found.speech.is_talking() || !ended.is_empty();
    if !talks {
        found.pre_roll.push_back(sound);
        keep(&mut found.pre_roll, PRE_ROLL);
    } else {
        let before: Vec<_> = found.pre_roll.drain(..).collect();
        found.fresh.extend(before);
        found.awaits_words = true;
        found.fresh.push_back(sound);
        keep(&mut found.fresh, KEPT);
    }
    for pulse in &ended {
        add_end(found, pulse);
    }
    pulses.extend(ended);
    talks
}

/// The recogniser is told the end of the speech, too.
pub(super) fn add_end(found: &mut Found, pulse: &Pulse) {
    match pulse {
        Pulse::Ended(stretch) => found.fresh.push_back(Sound::Ended(*stretch)),
        Pulse::Cut(stretch) => found.fresh.push_back(Sound::Cut(*stretch)),
        Pulse::Started { .. } | Pulse::Voiced { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::voice::speech::Stretch;

    #[test]
    fn words_are_awaited_until_the_last_final_of_the_newest_utterance() {
        let at = |ms: u64| Moment::from_micros(ms * 1_000);
        let mut found = Found { awaits_words: true, ..Found::default() };
        for from in [1_000, 5_000] {
            let stretch = Stretch { started: at(from), ended: at(from + 900), voiced: Duration::from_millis(900) };
            found.taken.push_back(Sound::Audio { from: at(from), samples: vec![1; 16_000].into() });
            found.taken.push_back(Sound::Ended(stretch));
        }

        let mut awaits = Vec::new();
        for (upto, is_last) in [(1_500, false), (1_900, true), (5_900, true)] {
            found.finalised(at(upto), is_last);
            awaits.push(found.awaits_words);
        }

        assert_eq!(awaits, [true, true, false]);
    }
}
