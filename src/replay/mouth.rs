//! The voices of companions in a script: synthesis and playback progress.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::script::ScriptError;
use crate::domain::moment::Moment;

/// The interval of playback reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The synthesis of a reply's audio: one entry of `models.mouth`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a voice: an object with `first_audio` and `words_per_second`")]
pub struct Mouth {
    /// The time from the first sentence to its first audio, in seconds.
    pub first_audio: f64,
    /// The speaking rate.
    pub words_per_second: f64,
    /// The index of the sentence whose synthesis stalls.
    pub stalls: Option<usize>,
    /// Whether no audio is produced.
    pub silent: bool,
    /// The playback position at which playback freezes, in seconds.
    pub freezes_at: Option<f64>,
}

impl Default for Mouth {
    fn default() -> Self {
        Self { first_audio: 0.4, words_per_second: 2.5, stalls: None, silent: false, freezes_at: None }
    }
}

impl Mouth {
    /// Checks all ranges. `position` is the place in the script, for error messages.
    pub(super) fn check(&self, position: &str) -> Result<(), ScriptError> {
        let within = |key: &str, value: f64, range: std::ops::RangeInclusive<f64>| match range.contains(&value) {
            true => Ok(()),
            false => Err(ScriptError::Malformed(format!(
                "{position}.{key}: {value:?} is not a number from {} to {}",
                range.start(),
                range.end()
            ))),
        };
        within("first_audio", self.first_audio, 0.0..=600.0)?;
        within("words_per_second", self.words_per_second, 0.1..=20.0)?;
        self.freezes_at.map_or(Ok(()), |at| within("freezes_at", at, 0.0..=600.0))
    }

    /// The time to the first audio.
    pub(super) fn first_audio(&self) -> Duration {
        secs(self.first_audio)
    }

    fn lasts(&self, text: &str) -> Duration {
        secs(text.split_whitespace().count().max(1) as f64 / self.words_per_second)
    }
}

/// Plays a reply.
#[derive(Clone, Debug, Default)]
pub(super) struct Player {
    mouth: Mouth,
    /// The synthesis of a sentence stalls after this time without audio.
    stall_timeout: Duration,
    sentences: Vec<Arc<str>>,
    /// The length of the audio sent for each sentence. Zero if its synthesis stalled.
    sent: Vec<Duration>,
    /// Whether all sentences are known.
    is_all: bool,
    is_finished: bool,
    /// The position, and the time since which playback continues from there. `None` while paused.
    position: Duration,
    plays_since: Option<Moment>,
    /// The time since which the audio of the next sentence is awaited.
    awaited_since: Option<Moment>,
}

/// The player's progress.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Progress {
    /// The complete audio of a sentence is sent.
    Sends(usize, Duration),
    /// The synthesis of a sentence stalls.
    Stalls,
    /// All audio is produced.
    Finishes,
    /// Playback has reached a position.
    Plays(Duration),
}

impl Player {
    pub(super) fn new(mouth: Mouth, stall_timeout: Duration) -> Self {
        Self { mouth, stall_timeout, ..Self::default() }
    }

    pub(super) fn mouth(&self) -> &Mouth {
        &self.mouth
    }

    pub(super) fn sentences(&self) -> &[Arc<str>] {
        &self.sentences
    }

    /// Adds a sentence. Returns whether it is the first.
    pub(super) fn say(&mut self, text: Arc<str>) -> bool {
        self.sentences.push(text);
        self.sentences.len() == 1
    }

    pub(super) fn said_all(&mut self) {
        self.is_all = true;
    }

    /// Starts playback at a position, or continues it.
    pub(super) fn play(&mut self, from: Option<Duration>, now: Moment) {
        self.position = from.unwrap_or(self.position);
        self.plays_since = Some(now);
    }

    /// Pauses. Returns the position.
    pub(super) fn pause(&mut self, now: Moment) -> Duration {
        self.position = self.position_at(now);
        self.plays_since = None;
        self.position
    }

    pub(super) fn is_playing(&self) -> bool {
        self.plays_since.is_some()
    }

    /// Continues without the stalled sentence.
    pub(super) fn skip(&mut self, now: Moment) {
        self.sent.push(Duration::ZERO);
        self.awaited_since = Some(now);
    }

    /// The progress up to now, and the time of the next call. A paused player makes no progress.
    pub(super) fn advance(&mut self, now: Moment) -> (Vec<Progress>, Option<Moment>) {
        let Some(_) = self.plays_since else { return (Vec::new(), None) };
        let mut out = vec![Progress::Plays(self.position_at(now))];
        // Synthesis is one sentence ahead of playback.
        while self.sent.len() < self.sentences.len() && self.starts(self.sent.len().saturating_sub(1)) <= self.position_at(now) {
            let number = self.sent.len();
            if self.mouth.stalls == Some(number) {
                let since = *self.awaited_since.get_or_insert(now);
                if now.since(since) >= self.stall_timeout {
                    out.push(Progress::Stalls);
                    return (out, Some(now));
                }
                break;
            }
            let lasts = self.mouth.lasts(&self.sentences[number]);
            self.sent.push(lasts);
            out.push(Progress::Sends(number, lasts));
        }
        if self.is_all && self.sent.len() == self.sentences.len() && !self.is_finished {
            self.is_finished = true;
            out.push(Progress::Finishes);
        }
        (out, Some(now + REPORT_EVERY.min(self.until_next_sentence(now))))
    }

    /// The time until the next sentence begins or playback ends.
    fn until_next_sentence(&self, now: Moment) -> Duration {
        let position = self.position_at(now);
        let starts = (1..=self.sent.len()).map(|number| self.starts(number)).find(|starts| *starts > position);
        starts.map_or(REPORT_EVERY, |starts| starts - position)
    }

    fn position_at(&self, now: Moment) -> Duration {
        let played = self.plays_since.map_or(Duration::ZERO, |since| now.since(since));
        let end = self.starts(self.sent.len());
        let position = (self.position + played).min(end);
        self.mouth.freezes_at.map_or(position, |at| position.min(secs(at)))
    }

    /// The position at which a sentence begins.
    fn starts(&self, number: usize) -> Duration {
        self.sent.iter().take(number).sum()
    }
}

fn secs(secs: f64) -> Duration {
    Duration::from_micros((secs * 1e6).round() as u64)
}
