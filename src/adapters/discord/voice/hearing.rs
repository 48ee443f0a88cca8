//! Attributes packets to speakers: by the key that decrypts them, or by the user that the voice server named.
//!
//! With end-to-end encryption, only a key proves who speaks. The name that the server gives for a stream is just the first guess.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::counts::Counts;
use super::dave::{Dave, SILENCE, is_encrypted};
use super::events::Heard;
use super::rtp::{self, NoPacket};
use super::stream::{Arrival, CaptureClock, Window};
use super::transport::Transport;
use crate::domain::moment::Moment;

/// The limit of kept frames in a stream.
const MOST_KEPT: usize = 25;
/// How long a frame is kept.
const KEPT_FOR: Duration = Duration::from_secs(1);
/// How often per [`TRIALS_PER`] all keys may be tried on a stream.
const MOST_TRIALS: u32 = 3;
const TRIALS_PER: Duration = Duration::from_secs(1);
/// The limit of streams. Beyond it, the stream that was silent for longest is removed.
const MOST_STREAMS: usize = 256;
/// How long the packets of a stream are ignored after its speaker has replaced it.
const RETIRED_FOR: Duration = Duration::from_secs(2);

/// The incoming streams of a call, and their speakers.
pub struct Hearing {
    user: u64,
    streams: BTreeMap<u32, Stream>,
    /// The user of each stream, as the server named it. Bounded like the streams.
    named: BTreeMap<u32, u64>,
    /// The streams that were replaced, and when.
    retired: VecDeque<(u32, Moment)>,
    /// The number of the newest line.
    line: u64,
}

struct Stream {
    window: Window,
    clock: CaptureClock,
    /// The number of the current line. `None`: no frame of it was attributed yet.
    line: Option<u64>,
    /// The speaker of the newest attributed frame.
    speaker: Option<u64>,
    kept: VecDeque<Kept>,
    /// The start of the current trial period, and the number of trials in it.
    trials: (Moment, u32),
    newest: Moment,
}

/// A frame whose speaker is not known yet.
struct Kept {
    at: Moment,
    timestamp: u32,
    frame: Vec<u8>,
}

/// The result of attributing and decrypting a frame.
enum Outcome {
    Opened(u64, Vec<u8>),
    /// The frame may be decrypted later.
    Keep,
    Dropped,
}

impl Hearing {
    /// `user` is the bot itself; streams are never attributed to it.
    pub fn new(user: u64) -> Self {
        Self { user, streams: BTreeMap::new(), named: BTreeMap::new(), retired: VecDeque::new(), line: 0 }
    }

    /// Removes all streams, because a new session begins. Line numbers continue.
    pub fn reset(&mut self, user: u64) {
        *self = Self { line: self.line, ..Self::new(user) };
    }

    /// Decrypts a datagram and attributes it to its speaker.
    pub fn receive_datagram(
        &mut self,
        datagram: &mut [u8],
        transport: &Transport,
        dave: &mut Dave,
        now: Moment,
        counts: &mut Counts,
    ) -> Option<Heard> {
        let header = match rtp::parse(datagram) {
            Ok(header) => header,
            Err(NoPacket::NotAudio) => return add(&mut counts.not_audio),
            Err(NoPacket::Malformed) => return add(&mut counts.malformed),
        };
        let Some((opened, nonce)) = transport.open(datagram, header.clear) else { return add(&mut counts.unauthenticated) };
        let Some(frame) = header.payload(opened) else { return add(&mut counts.malformed) };
        if self.is_retired(header.ssrc, now) {
            return add(&mut counts.late);
        }
        match self.arrive(&header, nonce, now, counts) {
            Arrival::Duplicate => return add(&mut counts.duplicates),
            Arrival::Late => return add(&mut counts.late),
            Arrival::Newest | Arrival::Overtaken | Arrival::Restarted => {}
        }
        match self.open(header.ssrc, frame, dave, now, counts) {
            Outcome::Opened(user, opus) => self.credit(header.ssrc, header.timestamp, user, opus, now, counts),
            Outcome::Keep => {
                self.keep(header.ssrc, Kept { at: now, timestamp: header.timestamp, frame: frame.to_vec() }, counts);
                None
            }
            Outcome::Dropped => None,
        }
    }

    /// Retries the kept encrypted frames, because the keys have changed.
    pub fn retry_encrypted(&mut self, dave: &mut Dave, now: Moment, counts: &mut Counts) -> Vec<Heard> {
        let waiting = self.streams.iter().filter(|(_, stream)| !stream.kept.is_empty());
        let waiting: Vec<u32> = waiting.map(|(ssrc, _)| *ssrc).collect();
        waiting.into_iter().flat_map(|ssrc| self.retry(ssrc, true, dave, now, counts)).collect()
    }

    /// Retries the kept unencrypted frames of a stream, because the server has named its user.
    pub fn retry_plain(&mut self, ssrc: u32, dave: &mut Dave, now: Moment, counts: &mut Counts) -> Vec<Heard> {
        self.retry(ssrc, false, dave, now, counts)
    }

    fn retry(&mut self, ssrc: u32, encrypted: bool, dave: &mut Dave, now: Moment, counts: &mut Counts) -> Vec<Heard> {
        let Some(stream) = self.streams.get_mut(&ssrc) else { return Vec::new() };
        if encrypted {
            stream.trials = (now, 0);
        }
        let (tried, left) = std::mem::take(&mut stream.kept).into_iter().partition(|kept| is_encrypted(&kept.frame) == encrypted);
        stream.kept = left;
        let mut heard = Vec::new();
        let tried: VecDeque<Kept> = tried;
        for Kept { at, timestamp, frame } in tried {
            if now.since(at) > KEPT_FOR {
                counts.undecryptable += 1;
                continue;
            }
            match self.open(ssrc, &frame, dave, now, counts) {
                Outcome::Opened(user, opus) => {
                    counts.opened_later += 1;
                    heard.extend(self.credit(ssrc, timestamp, user, opus, now, counts));
                }
                Outcome::Keep => counts.undecryptable += 1,
                Outcome::Dropped => {}
            }
        }
        heard
    }

    /// Records the user that the server names for a stream.
    pub fn name(&mut self, ssrc: u32, user: u64) {
        if user == self.user {
            return;
        }
        self.named.retain(|_, named| *named != user);
        while self.named.len() >= MOST_STREAMS {
            self.named.pop_first();
        }
        self.named.insert(ssrc, user);
    }

    pub fn leave(&mut self, user: u64) {
        self.named.retain(|_, named| *named != user);
        self.streams.retain(|_, stream| stream.speaker != Some(user));
    }

    /// Drops frames that were kept for too long.
    pub fn expire(&mut self, now: Moment, counts: &mut Counts) {
        for stream in self.streams.values_mut() {
            while stream.kept.front().is_some_and(|kept| now.since(kept.at) > KEPT_FOR) {
                stream.kept.pop_front();
                counts.undecryptable += 1;
            }
        }
    }

    fn is_retired(&mut self, ssrc: u32, now: Moment) -> bool {
        while self.retired.front().is_some_and(|(_, at)| now.since(*at) > RETIRED_FOR) {
            self.retired.pop_front();
        }
        self.retired.iter().any(|(retired, _)| *retired == ssrc)
    }

    /// Records the arrival of a packet in its stream.
    fn arrive(&mut self, header: &rtp::Header, nonce: u32, now: Moment, counts: &mut Counts) -> Arrival {
        let (sequence, timestamp) = (header.sequence, header.timestamp);
        if let Some(stream) = self.streams.get_mut(&header.ssrc) {
            let skipped = stream.window.skipped_by(sequence);
            let arrival = stream.window.record_packet(sequence, nonce);
            match arrival {
                Arrival::Newest => counts.missing += skipped,
                Arrival::Overtaken => counts.overtaken += 1,
                Arrival::Duplicate | Arrival::Late | Arrival::Restarted => {}
            }
            let is_set_back = arrival == Arrival::Newest && stream.clock.is_set_back(timestamp);
            if arrival == Arrival::Restarted || is_set_back {
                stream.begin_line(timestamp);
            }
            stream.newest = now;
            return arrival;
        }
        if self.streams.len() >= MOST_STREAMS
            && let Some(oldest) = self.streams.iter().min_by_key(|(_, stream)| stream.newest).map(|(ssrc, _)| *ssrc)
        {
            self.streams.remove(&oldest);
        }
        let window = Window::new(sequence, nonce);
        let clock = CaptureClock::new(timestamp);
        let stream = Stream { window, clock, line: None, speaker: None, kept: VecDeque::new(), trials: (now, 0), newest: now };
        self.streams.insert(header.ssrc, stream);
        Arrival::Newest
    }

    fn open(&mut self, ssrc: u32, frame: &[u8], dave: &mut Dave, now: Moment, counts: &mut Counts) -> Outcome {
        let Some(stream) = self.streams.get_mut(&ssrc) else { return Outcome::Dropped };
        let named = self.named.get(&ssrc).copied();
        if !dave.has_keys() || !is_encrypted(frame) {
            if dave.takes_plain(now) {
                // Without end-to-end encryption, the voice server's name for the stream is trusted: the server could forge the
                // audio anyway.
                return named.map_or(Outcome::Keep, |user| Outcome::Opened(user, frame.to_vec()));
            }
            // Silence is never encrypted. It is attributed only if a key has proved the stream's speaker before.
            return match stream.speaker {
                Some(user) if frame == SILENCE => Outcome::Opened(user, frame.to_vec()),
                None if frame == SILENCE => Outcome::Dropped,
                _ => {
                    counts.plain_refused += 1;
                    Outcome::Dropped
                }
            };
        }
        let guesses = [stream.speaker, named.filter(|named| stream.speaker != Some(*named))];
        for user in guesses.into_iter().flatten() {
            if let Some(opus) = dave.decrypt(user, frame) {
                return Outcome::Opened(user, opus);
            }
        }
        if !stream.may_try(now) {
            return Outcome::Keep;
        }
        let others: Vec<u64> = dave.keyed().filter(|user| !guesses.contains(&Some(*user))).collect();
        let found = others.into_iter().find_map(|user| dave.decrypt(user, frame).map(|opus| (user, opus)));
        found.map_or(Outcome::Keep, |(user, opus)| {
            counts.discovered += 1;
            Outcome::Opened(user, opus)
        })
    }

    /// Attributes a frame to its speaker. If the speaker used another stream before, this one replaces it.
    fn credit(&mut self, ssrc: u32, timestamp: u32, user: u64, opus: Vec<u8>, now: Moment, counts: &mut Counts) -> Option<Heard> {
        let stream = self.streams.get_mut(&ssrc)?;
        let is_another = stream.speaker.replace(user) != Some(user);
        if is_another {
            stream.begin_line(timestamp);
        }
        let line = *stream.line.get_or_insert_with(|| {
            self.line += 1;
            self.line
        });
        let Some(number) = stream.clock.number(timestamp) else { return add(&mut counts.late) };
        if is_another {
            self.retire_others(ssrc, user, now);
        }
        counts.heard += 1;
        Some(Heard { user, line, number, opus })
    }

    fn retire_others(&mut self, ssrc: u32, user: u64, now: Moment) {
        let others = self.streams.iter().filter(|(other, stream)| **other != ssrc && stream.speaker == Some(user));
        for other in others.map(|(other, _)| *other).collect::<BTreeSet<_>>() {
            self.streams.remove(&other);
            self.retired.push_back((other, now));
        }
        while self.retired.len() > MOST_STREAMS {
            self.retired.pop_front();
        }
    }

    fn keep(&mut self, ssrc: u32, kept: Kept, counts: &mut Counts) {
        let Some(stream) = self.streams.get_mut(&ssrc) else { return };
        counts.kept += 1;
        stream.kept.push_back(kept);
        while stream.kept.len() > MOST_KEPT {
            stream.kept.pop_front();
            counts.undecryptable += 1;
        }
    }
}

impl Stream {
    /// Starts a new line at this packet, with new numbers.
    fn begin_line(&mut self, timestamp: u32) {
        self.clock = CaptureClock::new(timestamp);
        self.line = None;
    }

    /// Counts a trial. Returns whether all keys may be tried now.
    fn may_try(&mut self, now: Moment) -> bool {
        if now.since(self.trials.0) >= TRIALS_PER {
            self.trials = (now, 0);
        }
        self.trials.1 += 1;
        self.trials.1 <= MOST_TRIALS
    }
}

fn add<T>(count: &mut u64) -> Option<T> {
    *count += 1;
    None
}
