//! Decides which words are new, which final completes a stretch, and when it was said. The rules apply to a service that returns words with times in
//! the audio.
//!
//! A final covers the audio up to a time, and covered audio never counts again: late and repeated finals add nothing. A stretch gets exactly one last
//! final: when its end is covered, when the service has answered `Finalize`, or a second later without an answer. Words that arrive after that are
//! not a last final.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::table::{Table, samples};
use crate::domain::moment::Moment;
use crate::domain::text::first_bytes;
use crate::domain::voice::pump::FINALIZE_TIMEOUT;
use crate::domain::voice::speech::{HOP, Stretch};
use crate::ports::speech_recognition::{Recognised, Segment};

/// The maximum time by which a service detects the end of an utterance earlier than our own detector.
const ENDPOINT_TOLERANCE: Duration = Duration::from_millis(500);
/// Words that begin this long after the end of a stretch belong to the next one.
const AFTER: Duration = Duration::from_millis(150);
/// Words of this age that are not final when the connection ends are kept. Newer words are recognised again, because the caller repeats the audio of
/// the last 5 s.
const REPEATED: Duration = Duration::from_secs(3);
/// Words of this age are made final without waiting for the service, because the stream may end at any time without notice.
const LONGEST_OPEN: Duration = Duration::from_secs(4);
/// Words newer than this always wait for a final.
const NEW: Duration = Duration::from_secs(2);
/// How often an unanswered `Finalize` is repeated.
const MOST_REPEATS: u8 = 3;
/// Longer texts are truncated.
pub(in crate::adapters::speech) const MAX_TEXT_BYTES: usize = 16 * 1024;
/// The maximum number of stretches that wait for their last final.
const MOST_PENDING: usize = 64;

/// A word, with its times in samples of the sent audio.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::adapters::speech) struct Word {
    pub text: String,
    pub start: u64,
    pub end: u64,
}

/// A result of the service for the audio up to a position.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::adapters::speech) struct Result {
    pub upto: u64,
    pub words: Vec<Word>,
    /// All words, formatted by the service.
    pub text: String,
    /// In thousandths.
    pub confidence: Option<u16>,
}

/// Why a result is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::adapters::speech) enum Cause {
    /// The service will not change it.
    Certain,
    /// The service found the end of an utterance.
    Endpoint,
    /// The service was asked to finish.
    Asked,
}

/// A stretch without its last final.
struct Pending {
    stretch: Stretch,
    begin: u64,
    end: u64,
    /// The number of samples that were sent when the stretch ended.
    sent: u64,
    due: Instant,
}

/// A `Finalize` that may remain unanswered.
struct Asked {
    /// The number of samples that were sent before it.
    sent: u64,
    again: Instant,
    left: u8,
}

/// The state of one connection.
#[derive(Default)]
pub(in crate::adapters::speech) struct Utterances {
    pub table: Table,
    /// The position up to which finals cover the audio.
    covered: u64,
    /// The number of samples that were sent at the end of the newest stretch with a last final.
    over: u64,
    pending: VecDeque<Pending>,
    interim: Option<Result>,
    asked: Option<Asked>,
    newest: Moment,
    /// Whether the service has returned anything since the last stretch that was closed without an answer.
    is_answered: bool,
}

impl Utterances {
    /// Whether some audio is not covered by a final.
    pub const fn is_uncovered(&self) -> bool {
        self.covered < self.table.sent()
    }

    /// The position up to which the audio is final.
    pub const fn covered(&self) -> u64 {
        self.covered
    }

    /// The larger of the covered position and the end of the newest stretch with a last final.
    pub fn settled(&self) -> u64 {
        self.covered.max(self.over)
    }

    /// Takes the newest result that is not final.
    pub fn take_interim(&mut self) -> Option<Result> {
        self.interim.take()
    }

    pub fn has_due(&self, now: Instant) -> bool {
        self.pending.front().is_some_and(|pending| pending.due <= now)
    }

    /// Handles the end of a stretch. Returns whether to request the rest of it from the service.
    pub fn ended(&mut self, stretch: Stretch, now: Instant, out: &mut Vec<Recognised>) -> bool {
        let [begin, end] = [stretch.started, stretch.ended].map(|moment| self.table.offset(moment));
        let pending = Pending { stretch, begin, end, sent: self.table.sent(), due: now + FINALIZE_TIMEOUT };
        if self.reaches(self.covered, end, HOP) {
            self.over = pending.sent;
            out.push(self.last(&pending, Result { upto: end, ..Result::default() }));
            return false;
        }
        self.pending.push_back(pending);
        if self.pending.len() > MOST_PENDING {
            self.close_first(out);
        }
        let is_asked = self.asked.as_ref().is_some_and(|asked| asked.sent == self.table.sent());
        if !is_asked {
            self.asked(now);
        }
        !is_asked
    }

    /// Records that the service was asked to finish.
    pub fn asked(&mut self, now: Instant) {
        self.asked = Some(Asked { sent: self.table.sent(), again: now + FINALIZE_TIMEOUT, left: MOST_REPEATS });
    }

    /// Handles words that may still change.
    pub fn hear_interim(&mut self, mut result: Result, out: &mut Vec<Recognised>) {
        self.is_answered = true;
        self.clamp(&mut result);
        if let Some(first) = result.words.first() {
            out.push(Recognised::Partial { text: result.text.as_str().into(), started: self.table.begin(first.start) });
            self.interim = Some(result);
        }
    }

    /// Makes old words final, up to the widest gap between them. Returns their number.
    pub fn finalise_old(&mut self, out: &mut Vec<Recognised>) -> usize {
        let Some(interim) = &self.interim else { return 0 };
        let newest = self.table.end(self.table.sent());
        let is_long = interim.words.first().is_some_and(|word| newest.since(self.table.begin(word.start)) >= LONGEST_OPEN);
        let pairs = interim.words.windows(2).filter(|_| is_long);
        let old = pairs.take_while(|pair| newest.since(self.table.end(pair[0].end)) >= NEW).enumerate();
        let Some((last, pair)) = old.max_by_key(|(_, pair)| pair[1].start.saturating_sub(pair[0].end)) else { return 0 };
        let upto = pair[0].end.midpoint(pair[1].start.max(pair[0].end));
        let words = interim.words[..=last].to_vec();
        self.hear_final(Result { upto, text: joined(&words), words, confidence: None }, Cause::Certain, out)
    }

    /// Handles words that do not change any more. Returns the number of new words.
    pub fn hear_final(&mut self, mut result: Result, cause: Cause, out: &mut Vec<Recognised>) -> usize {
        self.is_answered = true;
        self.clamp(&mut result);
        let new = result.words.len();
        let mut is_answered = false;
        while let Some(first) = self.pending.front() {
            let is_over = match cause {
                Cause::Certain => self.reaches(result.upto, first.end, HOP),
                Cause::Endpoint => result.upto > first.begin && self.reaches(result.upto, first.end, ENDPOINT_TOLERANCE),
                Cause::Asked => {
                    self.reaches(result.upto, first.end, HOP)
                        || !std::mem::replace(&mut is_answered, true) && result.upto > first.begin
                }
            };
            if !is_over {
                break;
            }
            let until = first.end + samples(AFTER);
            let own = result.words.iter().take_while(|word| word.start < until).count();
            let mut rest = result.clone();
            rest.words = result.words.split_off(own);
            if own == 0 {
                result.text.clear();
            } else if rest.words.is_empty() {
                rest.text.clear();
            } else {
                (result.text, rest.text) = (joined(&result.words), joined(&rest.words));
            }
            if let Some(pending) = self.pending.pop_front() {
                out.push(self.last(&pending, result));
                self.over = pending.sent;
            }
            self.covered = self.covered.max(rest.upto.min(until));
            result = rest;
        }
        if !result.words.is_empty() {
            let upto = result.upto;
            out.push(self.segment(result, self.table.end(upto), None));
            self.covered = self.covered.max(upto);
        } else {
            self.covered = self.covered.max(result.upto);
        }
        if self.interim.as_ref().is_some_and(|interim| interim.upto <= self.covered) {
            self.interim = None;
        }
        let needed = self.interim.as_ref().and_then(|interim| interim.words.first()).map_or(self.covered, |word| word.start);
        self.table.forget(needed.min(self.covered));
        new
    }

    /// When [`Self::wake`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        let again = self.asked.as_ref().filter(|_| self.is_uncovered()).map(|asked| asked.again);
        again.into_iter().chain(self.pending.front().map(|pending| pending.due)).min()
    }

    /// Closes stretches whose remaining results are overdue. Returns whether to repeat the request to the service; it is repeated only while no more
    /// audio is sent.
    pub fn wake(&mut self, now: Instant, out: &mut Vec<Recognised>) -> bool {
        while self.has_due(now) {
            self.close_first(out);
        }
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.again <= now) else { return false };
        if asked.left == 0 || asked.sent != self.table.sent() || self.covered >= asked.sent {
            self.asked = None;
            return false;
        }
        (asked.left, asked.again) = (asked.left - 1, now + FINALIZE_TIMEOUT);
        true
    }

    /// Handles a connection that ended without all results. Returns the words whose audio the caller will not send again.
    pub fn cut(&mut self, out: &mut Vec<Recognised>) {
        let Some(mut result) = self.interim.take() else { return };
        let newest = self.table.end(self.table.sent());
        result.words.retain(|word| newest.since(self.table.end(word.end)) >= REPEATED);
        let Some(last) = result.words.last() else { return };
        (result.upto, result.text, result.confidence) = (last.end, joined(&result.words), None);
        self.hear_final(result, Cause::Certain, out);
    }

    /// Closes all stretches: all results have arrived.
    pub fn finish(&mut self, out: &mut Vec<Recognised>) {
        while !self.pending.is_empty() {
            self.close_first(out);
        }
    }

    fn reaches(&self, upto: u64, end: u64, tolerance: Duration) -> bool {
        upto + samples(tolerance) >= end
    }

    /// Limits times to the sent audio, and removes words that are covered already.
    fn clamp(&self, result: &mut Result) {
        let before = result.words.len();
        let sent = self.table.sent();
        result.upto = result.upto.min(sent);
        result.words.retain(|word| word.start.midpoint(word.end) >= self.covered && word.start < sent);
        for word in &mut result.words {
            word.end = word.end.min(sent).max(word.start);
        }
        // A result may be shorter than its words, according to the service.
        result.upto = result.words.iter().map(|word| word.end).max().unwrap_or_default().max(result.upto);
        if result.words.len() < before {
            result.text = joined(&result.words);
        }
    }

    /// Gives the oldest stretch its last final. Its missing words may still arrive, and their audio is recognised again after a failure.
    fn close_first(&mut self, out: &mut Vec<Recognised>) {
        if let Some(pending) = self.pending.pop_front() {
            out.push(self.last(&pending, Result { upto: self.covered.min(pending.end), ..Result::default() }));
            self.is_answered = false;
        }
    }

    fn last(&mut self, pending: &Pending, result: Result) -> Recognised {
        let upto = result.upto;
        let is_covered = self.reaches(upto, pending.end, HOP);
        let begin = self.table.begin(self.covered);
        let ended = match (is_covered, result.words.is_empty()) {
            (true, _) => pending.stretch.ended,
            (false, true) => begin.min(pending.stretch.ended),
            (false, false) => self.table.end(upto).min(pending.stretch.ended),
        };
        self.segment(result, ended, Some(pending.stretch))
    }

    /// Makes a final. Its id is derived from the packet in which the uncovered audio begins, so that repeated audio gets the same id.
    fn segment(&mut self, result: Result, ended: Moment, last_of: Option<Stretch>) -> Recognised {
        let first = result.words.first().map_or(ended, |word| self.table.begin(word.start));
        let started = first.min(ended).max(self.newest);
        self.newest = started;
        let last = last_of.map(|stretch| format!("-{}", stretch.started.as_micros())).unwrap_or_default();
        let id = format!("{}.{}{last}", self.table.packet(self.covered).as_micros(), result.words.len());
        Recognised::Final(Segment {
            id: Arc::from(id),
            text: result.text.into(),
            is_verbatim: true,
            started,
            ended: ended.max(started),
            voiced: None,
            no_speech: None,
            confidence: result.confidence,
            is_last: last_of.is_some(),
            is_answer: self.is_answered,
        })
    }
}

/// Joins the words to a text, truncated if it is too long.
pub(in crate::adapters::speech) fn joined(words: &[Word]) -> String {
    let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    first_bytes(&text, MAX_TEXT_BYTES).to_owned()
}
