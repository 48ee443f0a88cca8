//! The state of one talker before or during a reply.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::super::moment::Moment;
use super::super::speech::HANGOVER;
use super::{Said, Stop, Words};

/// How long a person must talk within a window until a reply pauses.
const INSISTS: Share = Share { voiced: Duration::from_millis(500), within: Duration::from_secs(1) };
/// The same for a reply that pushes through.
const INSISTS_LONG: Share = Share { voiced: Duration::from_secs(2), within: Duration::from_secs(3) };

struct Share {
    voiced: Duration,
    within: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Talker {
    pub(super) is_talking: bool,
    /// Whether the talk counts as noise, until its offset.
    pub(super) is_noise: bool,
    pub(super) awaits_final: bool,
    /// The end of the last voiced hop. `None` if only words of the person are known.
    pub(super) last_voiced: Option<Moment>,
    /// When the talk ended. Without a known voice: when the first words arrived.
    offset_at: Option<Moment>,
    /// When the newest final arrived, unless a partial result has followed.
    final_at: Option<Moment>,
    /// The sum of the voiced hops in this interruption.
    pub(super) voiced: Duration,
    /// The voiced intervals of the last seconds, in order.
    recent: VecDeque<(Moment, Moment)>,
    /// The highest class of this interruption's finals.
    finals: Said,
    /// The newest partial result, unless a final has followed.
    partial: Option<Partial>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Partial {
    said: Said,
    is_stop: bool,
}

impl Talker {
    pub(super) fn started(at: Moment) -> Self {
        Self { is_talking: true, awaits_final: true, last_voiced: Some(at), ..Self::default() }
    }

    /// A person whose words are known, but no voice activity.
    pub(super) fn heard(at: Moment) -> Self {
        Self { awaits_final: true, offset_at: Some(at), ..Self::default() }
    }

    pub(super) fn begin(&mut self, started: Moment) {
        (self.is_talking, self.is_noise, self.awaits_final) = (true, false, true);
        // A final before this onset does not belong to this talk.
        (self.last_voiced, self.offset_at, self.final_at) = (self.last_voiced.max(Some(started)), None, None);
    }

    /// Records voice activity. Intervals that were recorded already do not count twice.
    pub(super) fn voiced(&mut self, from: Moment, to: Moment) {
        let known = self.recent.back().map_or(Moment::ZERO, |(_, to)| *to);
        let from = from.max(known);
        self.last_voiced = self.last_voiced.max(Some(to));
        if to <= from {
            return;
        }
        self.voiced = self.voiced.saturating_add(to.since(from));
        match self.recent.back_mut() {
            Some((_, end)) if *end == from => *end = to,
            _ => self.recent.push_back((from, to)),
        }
        while self.recent.front().is_some_and(|(_, end)| to.since(*end) > INSISTS_LONG.within) {
            self.recent.pop_front();
        }
    }

    /// Records the offset, detected at `at`. If a final arrived after the last voiced hop, it is the awaited one.
    pub(super) fn end(&mut self, ended: Moment, at: Moment) {
        (self.is_talking, self.offset_at) = (false, Some(at));
        self.last_voiced = self.last_voiced.max(Some(ended));
        self.awaits_final &= self.final_at < self.last_voiced;
    }

    /// The deadline of the outstanding final: `timeout` after the offset. The offset is at most the hangover after the last voiced hop.
    pub(super) fn final_by(&self, timeout: Duration) -> Option<Moment> {
        let offset = self.offset_at.or(self.last_voiced.map(|voiced| voiced + HANGOVER))?;
        self.awaits_final.then(|| offset + timeout)
    }

    /// Records words that arrived at `at`. A final replaces the partial result before it.
    pub(super) fn words(&mut self, at: Moment, is_final: bool, words: &Words) {
        self.recognised(at, is_final);
        if is_final {
            self.finals = self.finals.max(words.said);
            self.partial = None;
        } else {
            self.partial = Some(Partial { said: words.said, is_stop: words.stop != Stop::None });
        }
    }

    /// Records that a result arrived at `at`. A final may be the awaited one; after a partial result, another final is awaited.
    pub(super) fn recognised(&mut self, at: Moment, is_final: bool) {
        (self.final_at, self.awaits_final) = (is_final.then_some(at), self.is_talking || !is_final);
    }

    /// What the person said in this interruption. The newest partial result counts while its final is missing.
    pub(super) fn said(&self) -> Said {
        self.partial.map_or(Said::Nothing, |partial| partial.said).max(self.finals)
    }

    /// Whether the newest partial result begins with a stop word, and no final has followed.
    pub(super) fn has_said_stop(&self) -> bool {
        self.partial.is_some_and(|partial| partial.is_stop)
    }

    /// Whether the person has talked enough to pause the reply (docs/design/voice.md A-25): 0.5 s within the last second before `now`, or 2 s within
    /// three seconds if the reply pushes through.
    pub(super) fn has_insisted(&self, now: Moment, is_tolerant: bool) -> bool {
        let share = if is_tolerant { INSISTS_LONG } else { INSISTS };
        let begin = now - share.within;
        let voiced: Duration = self.recent.iter().map(|(from, to)| to.since((*from).max(begin))).sum();
        voiced >= share.voiced
    }

    /// Clears the words and voiced times, because the interruption is over.
    pub(super) fn begin_anew(&mut self) {
        (self.finals, self.partial, self.voiced) = (Said::Nothing, None, Duration::ZERO);
        self.recent.clear();
    }
}
