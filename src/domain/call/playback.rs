//! Schedules the playback of a reply: which audio is made next, which packet is due, and how far the reply was heard. It does no audio I/O.

use std::sync::Arc;
use std::time::Duration;

use crate::id::{CompanionId, Ticket};
use crate::voice::heard::{Script, WordTime};
use crate::voice::interruption;

/// The sample rate of companions' speech, in Hz. It is mono.
pub const SPOKEN_RATE: u32 = 24_000;
/// The number of samples in one packet of companions' speech (20 ms).
pub const SPOKEN_FRAME: usize = 480;
/// The duration of a packet. During playback, the check for late audio has this interval, too.
pub const FRAME: Duration = Duration::from_millis(20);
/// How far audio is sent ahead of its playback.
const AHEAD: Duration = Duration::from_millis(100);
/// How many sentences are made ahead of the one that plays.
const MADE_AHEAD: usize = 2;
/// How much audio of a sentence is read ahead of its playback, in samples: ten seconds.
pub const READ_AHEAD: usize = 10 * SPOKEN_RATE as usize;

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// The next samples: mono at [`SPOKEN_RATE`].
    Audio(Vec<i16>),
    /// The times of the next words, ascending. If the provider knows them early enough, they come before their audio. A provider without word times
    /// never sends this.
    Words(Vec<WordTime>),
}

/// The timeouts for audio.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the first audio of a sentence.
    pub first_audio: Duration,
    pub more: Duration,
}

#[derive(Debug)]
pub struct Playback {
    pub ticket: Ticket,
    pub companion: CompanionId,
    patience: Patience,
    sentences: Vec<Sentence>,
    is_all: bool,
    has_finished: bool,
    has_first_audio: bool,
    state: State,
    /// The position of the next packet, in samples since the reply's first one. It is at the beginning of a frame.
    next: usize,
    packets: u32,
    /// The number of sentences that have begun.
    begun: usize,
    /// The sentences and audio that were reported to the channel, and how far they were heard.
    script: Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has been played yet.
    Preparing,
    /// The sample at `from` was due at `since`.
    Playing { since: Duration, from: usize },
    /// Paused until it is resumed.
    Paused,
}

#[derive(Debug, Default)]
struct Sentence {
    text: Arc<str>,
    words: Vec<WordTime>,
    /// The number of word times that were reported to the channel.
    words_told: usize,
    /// All samples. Empty once they are no longer needed.
    samples: Vec<i16>,
    length: usize,
    /// The number of samples that were reported to the channel.
    told: usize,
    /// When the audio was requested, or when the newest piece of it arrived.
    awaited_since: Option<Duration>,
    has_failed: bool,
    is_whole: bool,
    is_told: bool,
    is_told_whole: bool,
    is_stalled: bool,
    may_start: bool,
}

impl Sentence {
    fn has_audio(&self) -> bool {
        self.length > 0
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    pub number: u32,
    pub frame: Box<[i16; SPOKEN_FRAME]>,
    /// The position and text of the sentence that begins with this packet.
    pub begins: Option<(Duration, Arc<str>)>,
}

impl Playback {
    pub fn new(companion: CompanionId, ticket: Ticket, patience: Patience) -> Self {
        Self {
            ticket,
            companion,
            patience,
            sentences: Vec::new(),
            is_all: false,
            has_finished: false,
            has_first_audio: false,
            state: State::Preparing,
            next: 0,
            packets: 0,
            begun: 0,
            script: Script::default(),
        }
    }

    pub fn add_sentence(&mut self, text: Arc<str>) {
        self.sentences.push(Sentence { text, ..Sentence::default() });
    }

    /// Marks the text as complete.
    pub fn end_text(&mut self) {
        self.is_all = true;
    }

    /// The sentences whose audio must be requested now.
    pub fn next_sentences(&mut self, now: Duration) -> Vec<(usize, Arc<str>)> {
        let upto = self.current() + MADE_AHEAD;
        let mut new = Vec::new();
        for (number, sentence) in self.sentences.iter_mut().enumerate().take(upto + 1) {
            if sentence.awaited_since.is_none() {
                sentence.awaited_since = Some(now);
                new.push((number, sentence.text.clone()));
            }
        }
        new
    }

    /// Adds audio or word times of a sentence. `None`: the sentence is complete.
    pub fn add_piece(&mut self, number: usize, piece: Option<Piece>, now: Duration) {
        let Some(sentence) = self.sentences.get_mut(number).filter(|sentence| !sentence.is_whole && !sentence.is_stalled) else {
            return;
        };
        sentence.awaited_since = Some(now);
        match piece {
            Some(Piece::Words(words)) => sentence.words.extend(words),
            Some(Piece::Audio(samples)) => sentence.samples.extend(samples),
            None => {
                // A packet belongs to one sentence.
                let frames = sentence.samples.len().div_ceil(SPOKEN_FRAME);
                sentence.samples.resize(frames * SPOKEN_FRAME, 0);
                sentence.is_whole = true;
            }
        }
        sentence.length = sentence.samples.len();
    }

    /// Marks a sentence whose audio can no longer be made. Returns false if that was known, or if the sentence was complete.
    pub fn fail_sentence(&mut self, number: usize) -> bool {
        let sentence = self.sentences.get_mut(number).filter(|sentence| !sentence.is_whole);
        sentence.is_some_and(|sentence| !std::mem::replace(&mut sentence.has_failed, true))
    }

    /// Drops the part of a sentence's audio that was not reported to the channel, and ends the sentence.
    pub fn drop_rest(&mut self, number: usize) {
        let Some(sentence) = self.sentences.get_mut(number) else { return };
        sentence.samples.truncate(sentence.told);
        sentence.length = sentence.length.min(sentence.told);
        (sentence.is_whole, sentence.is_told_whole, sentence.is_told) = (true, true, true);
    }

    pub fn allow(&mut self, number: usize) {
        if let Some(sentence) = self.sentences.get_mut(number) {
            sentence.may_start = true;
        }
    }

    pub fn play(&mut self, now: Duration) {
        self.state = State::Playing { since: now, from: self.next };
    }

    /// Resumes from a position, rounded down to the beginning of a packet. Returns the rounded position.
    pub fn resume(&mut self, from: Duration, now: Duration) -> Duration {
        self.next = samples(from).min(self.next) / SPOKEN_FRAME * SPOKEN_FRAME;
        self.play(now);
        duration(self.next)
    }

    pub fn pause(&mut self) {
        self.state = State::Paused;
    }

    pub fn has_begun(&self) -> bool {
        self.state != State::Preparing
    }

    pub fn is_playing(&self) -> bool {
        matches!(self.state, State::Playing { .. })
    }

    pub fn position(&self) -> Duration {
        duration(self.next)
    }

    /// Records that a listener has heard the reply up to this position. Returns the limited position and the newly heard words.
    pub fn heard_up_to(&mut self, position: Duration) -> (Duration, String) {
        let position = position.min(self.position());
        (position, self.script.played(position))
    }

    pub fn heard(&self) -> String {
        self.script.heard()
    }

    /// How much of a sentence was sent as packets, in samples.
    pub fn played_of(&self, number: usize) -> usize {
        let before: usize = self.sentences.iter().take(number).map(|sentence| sentence.length).sum();
        self.next.saturating_sub(before)
    }

    /// Whether reading of a sentence pauses until more of it is played.
    fn is_read_ahead(&self, number: usize) -> bool {
        self.sentences.get(number).is_some_and(|sentence| sentence.length >= self.played_of(number) + READ_AHEAD)
    }

    /// The progress to report to the channel now.
    pub fn progress(&mut self, now: Duration) -> Vec<interruption::Input> {
        let mut out = Vec::new();
        let (has_begun, upto) = (self.has_begun(), self.current() + usize::from(self.has_begun()));
        for number in 0..self.sentences.len().min(upto + 1) {
            if self.is_read_ahead(number) {
                self.sentences[number].awaited_since = Some(now);
            }
            let is_stalling = self.stalls(number, now);
            let sentence = &mut self.sentences[number];
            if !sentence.is_told && (sentence.has_audio() || sentence.is_whole || is_stalling) {
                sentence.is_told = true;
                self.script.sentence(sentence.text.clone(), sentence.words.clone());
                out.push(interruption::Input::Sentence { text: sentence.text.clone(), words: sentence.words.clone() });
            } else if sentence.is_told && sentence.words.len() > sentence.words_told {
                let words = sentence.words[sentence.words_told..].to_vec();
                self.script.words(number, &words);
                out.push(interruption::Input::WordTimes { sentence: number, words });
            }
            sentence.words_told = if sentence.is_told { sentence.words.len() } else { 0 };
            if !self.has_first_audio && sentence.has_audio() {
                self.has_first_audio = true;
                out.push(interruption::Input::FirstAudio);
            }
            // Only whole packets are reported: a complete sentence consists of whole packets.
            let tellable = sentence.length / SPOKEN_FRAME * SPOKEN_FRAME;
            if has_begun && tellable > sentence.told {
                let length = duration(tellable - sentence.told);
                sentence.told = tellable;
                self.script.audio(number, length);
                out.push(interruption::Input::Audio { sentence: number, length });
            }
            if sentence.is_whole && !sentence.is_told_whole && (has_begun || !sentence.has_audio()) {
                sentence.is_told_whole = true;
                self.script.whole(number);
                out.push(interruption::Input::Whole { sentence: number });
            }
            // The channel must know all audio before the stall.
            if is_stalling && !sentence.is_stalled && (has_begun || !sentence.has_audio()) {
                sentence.is_stalled = true;
                self.script.drop_stalled();
                out.push(interruption::Input::Stall);
            }
            if !sentence.is_whole {
                break;
            }
        }
        let is_made = self.is_all && self.sentences.iter().all(|sentence| sentence.is_told_whole);
        if is_made && !self.has_finished {
            self.has_finished = true;
            out.push(interruption::Input::Finished);
        }
        out
    }

    /// Whether the audio of a sentence failed or timed out.
    fn stalls(&self, number: usize, now: Duration) -> bool {
        let Some(sentence) = self.sentences.get(number).filter(|sentence| !sentence.is_whole) else { return false };
        let patience = if sentence.has_audio() { self.patience.more } else { self.patience.first_audio };
        sentence.has_failed || sentence.awaited_since.is_some_and(|since| now.saturating_sub(since) >= patience)
    }

    /// The packets that are due. They are sent 100 ms before their playback.
    pub fn packets(&mut self, now: Duration) -> Vec<Next> {
        let mut packets = Vec::new();
        while let State::Playing { since, from } = self.state {
            let due = from + samples(now.saturating_sub(since) + AHEAD);
            if self.next + SPOKEN_FRAME > due {
                break;
            }
            let Some((number, within)) = self.locate(self.next) else {
                self.state = State::Playing { since: now, from: self.next };
                break;
            };
            let start = self.next - within;
            let sentence = &self.sentences[number];
            let frame = sentence.samples.get(within..within + SPOKEN_FRAME).filter(|_| sentence.may_start);
            let Some(frame) = frame.and_then(|frame| <&[i16; SPOKEN_FRAME]>::try_from(frame).ok()) else {
                // The audio is late. Playback continues from here when it arrives, without catching up.
                self.state = State::Playing { since: now, from: self.next };
                break;
            };
            // If playback resumes before a sentence, the sentence is not announced again.
            let begins = (within == 0 && number >= self.begun).then(|| (duration(start), sentence.text.clone()));
            self.begun = self.begun.max(number + 1);
            packets.push(Next { number: self.packets, frame: Box::new(*frame), begins });
            self.packets = self.packets.wrapping_add(1);
            self.next += SPOKEN_FRAME;
        }
        // Playback can resume only in the sentence that is heard, or in the one before it.
        let heard = self.locate(samples(self.script.position())).map_or(self.sentences.len(), |(number, _)| number);
        for earlier in self.sentences.iter_mut().take(heard.saturating_sub(1)) {
            earlier.samples = Vec::new();
        }
        packets
    }

    /// When the next packet is due. The time is past if its audio is late. `None` if nothing plays.
    pub fn due(&self) -> Option<Duration> {
        let State::Playing { since, from } = self.state else { return None };
        Some(since + duration(self.next + SPOKEN_FRAME - from).saturating_sub(AHEAD))
    }

    /// The index of the sentence that contains a position, and the offset of the position within that sentence.
    fn locate(&self, position: usize) -> Option<(usize, usize)> {
        let mut start = 0;
        for (number, sentence) in self.sentences.iter().enumerate() {
            if position < start + sentence.length || !sentence.is_whole {
                return Some((number, position - start));
            }
            start += sentence.length;
        }
        None
    }

    /// The index of the sentence that plays, or the number of sentences if all were played.
    fn current(&self) -> usize {
        self.locate(self.next).map_or(self.sentences.len(), |(number, _)| number)
    }
}

fn samples(duration: Duration) -> usize {
    (duration.as_micros() * u128::from(SPOKEN_RATE) / 1_000_000).try_into().unwrap_or(usize::MAX)
}

fn duration(samples: usize) -> Duration {
    Duration::from_micros((samples as u64).saturating_mul(1_000_000) / u64::from(SPOKEN_RATE))
}

#[cfg(test)]
mod tests;
