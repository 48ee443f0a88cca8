//! Finds the onset and offset of a person's speech from the scores of a voice activity detector (docs/design/voice.md A-1).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::moment::Moment;

/// The length of one hop: the piece of audio that gets one score.
pub const HOP: Duration = Duration::from_millis(16);
/// A hop with at least this score is voiced.
pub const VOICED_SCORE: f32 = 0.5;
/// The number of consecutive voiced hops that make an onset.
pub const ONSET_HOPS: u8 = 3;
/// The silence after the last voiced hop that makes an offset.
pub const HANGOVER: Duration = Duration::from_millis(300);
/// The length at which speech is cut for recognisers without partial results (docs/design/voice.md A-2).
pub const LONGEST_CUT: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "pulse", rename_all = "snake_case")]
pub enum Pulse {
    /// Speech began (onset). `started` is the beginning of its first voiced hop, `until` the end of the newest one.
    Started { started: Moment, until: Moment },
    /// Speech continued: one more hop is voiced.
    Voiced { from: Moment, to: Moment },
    /// The speech reached the maximum length: the finished stretch ends here, and the newest hop begins the next one without a new onset.
    Cut(Stretch),
    /// Speech ended (offset).
    Ended(Stretch),
}

/// One stretch of speech.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// The beginning of the first voiced hop.
    pub started: Moment,
    /// The end of the last voiced hop, which is earlier than the moment of detection.
    pub ended: Moment,
    /// The sum of the voiced hops.
    pub voiced: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speech {
    state: State,
    heard_until: Moment,
    /// The length at which a stretch is cut. `None` for recognisers with partial results.
    longest: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    #[default]
    Silent,
    /// Consecutive voiced hops, fewer than an onset needs.
    Rising { started: Moment, hops: u8 },
    /// Between onset and offset.
    Talking(Stretch),
}

impl Speech {
    /// The state for a silent person. With `longest`, stretches are cut at this length (docs/design/voice.md A-2).
    pub fn new(longest: Option<Duration>) -> Self {
        Self { longest, ..Self::default() }
    }

    /// Processes the score of the hop that begins at `from` (docs/design/voice.md A-1). A hop that begins before the end of the last one is ignored;
    /// a gap between two hops counts as silence.
    pub fn hop(&mut self, from: Moment, score: f32) -> Option<Pulse> {
        if from < self.heard_until {
            return None;
        }
        let (is_gapless, to) = (from == self.heard_until, from + HOP);
        let ended = self.wake(from);
        self.heard_until = to;
        if score >= VOICED_SCORE {
            let pulse = self.voiced(from, to, is_gapless);
            // If the gap ended the speech, the first hop after it cannot make an onset yet.
            return ended.or(pulse);
        }
        if matches!(self.state, State::Rising { .. }) {
            self.state = State::Silent;
        }
        ended.or_else(|| self.wake(to))
    }

    fn voiced(&mut self, from: Moment, to: Moment, is_gapless: bool) -> Option<Pulse> {
        match &mut self.state {
            State::Rising { started, hops } if is_gapless => {
                *hops += 1;
                if *hops < ONSET_HOPS {
                    return None;
                }
                let (started, voiced) = (*started, HOP * u32::from(*hops));
                self.state = State::Talking(Stretch { started, ended: to, voiced });
                Some(Pulse::Started { started, until: to })
            }
            State::Silent | State::Rising { .. } => {
                self.state = State::Rising { started: from, hops: 1 };
                None
            }
            State::Talking(stretch) => {
                let is_long = self.longest.is_some_and(|longest| to.since(stretch.started) > longest);
                let before = *stretch;
                if is_long {
                    *stretch = Stretch { started: from, ended: to, voiced: HOP };
                    return Some(Pulse::Cut(before));
                }
                (stretch.ended, stretch.voiced) = (to, before.voiced + HOP);
                Some(Pulse::Voiced { from, to })
            }
        }
    }

    /// When the speech ends, unless a voiced hop arrives first.
    pub fn deadline(&self) -> Option<Moment> {
        match self.state {
            State::Silent | State::Rising { .. } => None,
            State::Talking(Stretch { ended, .. }) => Some(ended + HANGOVER),
        }
    }

    /// Ends the speech if its deadline has passed, even if no more audio arrives.
    pub fn wake(&mut self, now: Moment) -> Option<Pulse> {
        self.deadline().filter(|deadline| *deadline <= now)?;
        self.stop()
    }

    /// Ends the speech at once: the person was muted, left or lost the connection (docs/design/voice.md A-15).
    pub fn stop(&mut self) -> Option<Pulse> {
        match std::mem::take(&mut self.state) {
            State::Silent | State::Rising { .. } => None,
            State::Talking(stretch) => Some(Pulse::Ended(stretch)),
        }
    }

    pub fn is_talking(&self) -> bool {
        self.deadline().is_some()
    }
}

#[cfg(test)]
mod tests;
