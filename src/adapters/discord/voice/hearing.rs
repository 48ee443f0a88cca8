//! Whose packets these are: which key opens them, or whom the voice server named.
//!
//! Under end-to-end encryption only a key says who speaks: what the server says about a stream is no more than the first guess.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::counts::Counts;
use super::dave::{Dave, SILENCE, is_encrypted};
use super::events::Heard;
use super::rtp::{self, NoPacket};
use super::stream::{Arrival, CaptureClock, Window};
use super::transport::Transport;
use crate::domain::moment::Moment;

/// The most frames of a stream that are kept.
const MOST_KEPT: usize = 25;
/// For how long they are kept.
const KEPT_FOR: Duration = Duration::from_secs(1);
/// How often in a second all keys are tried on a stream.
const MOST_TRIALS: u32 = 3;
const TRIALS_PER: Duration = Duration::from_secs(1);
/// The most streams. Beyond it the one that was silent for longest is forgotten.
const MOST_STREAMS: usize = 256;
/// Packets of a stream that its speaker has replaced are ignored for this long.
const RETIRED_FOR: Duration = Duration::from_secs(2);

/// The streams of the people in a call, and whose they are.
pub struct Hearing {
    user: u64,
    streams: BTreeMap<u32, Stream>,
    /// Whom the server named. Bounded like the streams.
    named: BTreeMap<u32, u64>,
    /// Streams that were replaced.
    retired: VecDeque<(u32, Moment)>,
    /// The number of the newest line.
    line: u64,
}

struct Stream {
    window: Window,
    clock: CaptureClock,
    /// The clock when the newest line began.
    line: Option<u64>,
    /// Whose key opened the newest frame, or whom the server named when it was taken.
    speaker: Option<u64>,
    kept: VecDeque<Kept>,
    /// When the trials that count began, and how many there were since.
    trials: (Moment, u32),
    newest: Moment,
}

/// A frame that no key opens yet.
struct Kept {
    at: Moment,
    timestamp: u32,
    frame: Vec<u8>,
}

/// What became of a frame.
enum Outcome {
    Opened(u64, Vec<u8>),
    /// It may be opened later.
    Keep,
    Dropped,
}

impl Hearing {
    /// Hears everybody but this user, who we are.
    pub fn new(user: u64) -> Self {
        Self { user, streams: BTreeMap::new(), named: BTreeMap::new(), retired: VecDeque::new(), line: 0 }
    }

    /// Forgets all streams, because the session is another one. Numbers of lines go on.
    pub fn reset(&mut self, user: u64) {
        *self = Self { line: self.line, ..Self::new(user) };
    }

    /// Takes a datagram.
    pub fn hear(
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

    /// Tries once more what no key opened, because there are other keys.
    pub fn retry_encrypted(&mut self, dave: &mut Dave, now: Moment, counts: &mut Counts) -> Vec<Heard> {
        let waiting = self.streams.iter().filter(|(_, stream)| !stream.kept.is_empty());
        let waiting: Vec<u32> = waiting.map(|(ssrc, _)| *ssrc).collect();
        waiting.into_iter().flat_map(|ssrc| self.retry(ssrc, true, dave, now, counts)).collect()
    }

    /// Tries once more what nobody was named for, because somebody was.
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

    /// The server names who uses a stream.
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

    /// Drops what was kept for too long.
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

    /// Takes the place of a packet in its stream.
    fn arrive(&mut self, header: &rtp::Header, nonce: u32, now: Moment, counts: &mut Counts) -> Arrival {
        let (sequence, timestamp) = (header.sequence, header.timestamp);
        if let Some(stream) = self.streams.get_mut(&header.ssrc) {
            let skipped = stream.window.skipped_by(sequence);
            let arrival = stream.window.take(sequence, nonce);
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
                // Without end-to-end encryption the voice server says whose stream it is. It could send any audio itself.
                return named.map_or(Outcome::Keep, |user| Outcome::Opened(user, frame.to_vec()));
            }
            // Silence is not encrypted. Only of those whose key opened a frame is it certain where it belongs.
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

    /// Gives a frame to its speaker. Somebody who speaks on another stream now has replaced the one before.
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
    /// From this packet on, numbers begin again.
    fn begin_line(&mut self, timestamp: u32) {
        self.clock = CaptureClock::new(timestamp);
        self.line = None;
    }

    /// Whether all keys may be tried now.
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
