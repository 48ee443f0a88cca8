//! Which words are new, which final is the last of a stretch, and when it was said: the rules for a service that returns words with times in the audio.
//!
//! A final covers the audio up to a time, and nothing of it counts again: so late and repeated finals add nothing. A stretch gets its one last final when
//! its end is covered, when the service has answered `Finalize`, or a second later without an answer; words that come after that are no last final.

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

/// A service finds the end of an utterance this much earlier than the own detector, at most.
const ENDPOINT_TOLERANCE: Duration = Duration::from_millis(500);
/// Words that begin this long after the end of a stretch are of the next one.
const AFTER: Duration = Duration::from_millis(150);
/// The caller repeats the audio of the last 5 s. Words that are older, and not final when the connection ends, are taken as they are.
const REPEATED: Duration = Duration::from_secs(3);
/// Words that were said longer ago do not wait for a final, because the stream may end at any time without telling.
const LONGEST_OPEN: Duration = Duration::from_secs(4);
/// Later words wait in any case.
const NEW: Duration = Duration::from_secs(2);
/// How often `Finalize` is sent again if there is no answer.
const MOST_REPEATS: u8 = 3;
/// A longer text is cut.
pub(in crate::adapters::speech) const MAX_TEXT_BYTES: usize = 16 * 1024;
/// No more stretches wait for their last final.
const MOST_PENDING: usize = 64;

/// A word, with its times in samples of the audio that was sent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::adapters::speech) struct Word {
    pub text: String,
    pub start: u64,
    pub end: u64,
}

/// What the service returned for the audio up to a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::adapters::speech) struct Result {
    pub upto: u64,
    pub words: Vec<Word>,
    /// All words as the service writes them.
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
    /// What was sent when it ended.
    sent: u64,
    due: Instant,
}

/// A `Finalize` that may get no answer.
struct Asked {
    /// What was sent before it.
    sent: u64,
    again: Instant,
    left: u8,
}

/// The state of one connection.
#[derive(Default)]
pub(in crate::adapters::speech) struct Utterances {
    pub table: Table,
    /// The audio that finals have covered.
    covered: u64,
    /// What was sent when the newest stretch ended that has its last final.
    over: u64,
    pending: VecDeque<Pending>,
    interim: Option<Result>,
    asked: Option<Asked>,
    newest: Moment,
    /// Whether the service has returned something since an end that it did not answer.
    is_answered: bool,
}

impl Utterances {
    /// Whether there is audio that no final covers.
    pub const fn is_uncovered(&self) -> bool {
        self.covered < self.table.sent()
    }

    /// The end of what is final.
    pub const fn covered(&self) -> u64 {
        self.covered
    }

    /// The end of what is final, and of the newest stretch that has its last final.
    pub fn settled(&self) -> u64 {
        self.covered.max(self.over)
    }

    /// The newest result that is not final.
    pub fn take_interim(&mut self) -> Option<Result> {
        self.interim.take()
    }

    pub fn has_due(&self, now: Instant) -> bool {
        self.pending.front().is_some_and(|pending| pending.due <= now)
    }

    /// A stretch has ended. Returns whether the service is to be asked for the rest of it.
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

    /// The service is asked to finish.
    pub fn asked(&mut self, now: Instant) {
        self.asked = Some(Asked { sent: self.table.sent(), again: now + FINALIZE_TIMEOUT, left: MOST_REPEATS });
    }

    /// Words that may change.
    pub fn hear_interim(&mut self, mut result: Result, out: &mut Vec<Recognised>) {
        self.is_answered = true;
        self.clamp(&mut result);
        if let Some(first) = result.words.first() {
            out.push(Recognised::Partial { text: result.text.as_str().into(), started: self.table.begin(first.start) });
            self.interim = Some(result);
        }
    }

    /// Makes old words final, up to the widest gap between them. Returns how many.
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

    /// Words that do not change any more. Returns how many are new.
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

    /// Closes stretches whose rest did not come. Returns whether the service is to be asked again, which it is while nothing more is said.
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

    /// The connection has ended without all results. Returns the words that the caller cannot have recognised again.
    pub fn cut(&mut self, out: &mut Vec<Recognised>) {
        let Some(mut result) = self.interim.take() else { return };
        let newest = self.table.end(self.table.sent());
        result.words.retain(|word| newest.since(self.table.end(word.end)) >= REPEATED);
        let Some(last) = result.words.last() else { return };
        (result.upto, result.text, result.confidence) = (last.end, joined(&result.words), None);
        self.hear_final(result, Cause::Certain, out);
    }

    /// All results are there.
    pub fn finish(&mut self, out: &mut Vec<Recognised>) {
        while !self.pending.is_empty() {
            self.close_first(out);
        }
    }

    fn reaches(&self, upto: u64, end: u64, tolerance: Duration) -> bool {
        upto + samples(tolerance) >= end
    }

    /// Times lie within the audio that was sent, and words that are covered are no new ones.
    fn clamp(&self, result: &mut Result) {
        let before = result.words.len();
        let sent = self.table.sent();
        result.upto = result.upto.min(sent);
        result.words.retain(|word| word.start.midpoint(word.end) >= self.covered && word.start < sent);
        for word in &mut result.words {
            word.end = word.end.min(sent).max(word.start);
        }
        // The service may say that a result is shorter than its words.
        result.upto = result.words.iter().map(|word| word.end).max().unwrap_or_default().max(result.upto);
        if result.words.len() < before {
            result.text = joined(&result.words);
        }
    }

    /// Gives the oldest stretch its last final. What the service did not return may still come, and is recognised again after a failure.
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

    /// A final, with an id that audio gets again which is sent again: by the packet in which the audio begins that no final has covered.
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

/// The words as a text, cut if it is too long.
pub(in crate::adapters::speech) fn joined(words: &[Word]) -> String {
    let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    first_bytes(&text, MAX_TEXT_BYTES).to_owned()
}
