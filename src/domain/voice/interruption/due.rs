//! The deadlines of a spoken reply, and how each is handled.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::super::moment::Moment;
use super::preparing::Extension;
use super::{Effect, Outcome, Phase, Playing, SpokenReply, Talker};

/// The silence after which a reply is no longer held back, or plays at full level again.
const SHORT_SILENCE: Duration = Duration::from_millis(300);
/// The silence after which a paused reply gets its verdict.
const VERDICT_SILENCE: Duration = Duration::from_millis(800);
/// The longest wait for a final result after a person falls silent.
const FINAL_TIMEOUT: Duration = Duration::from_secs(1);
/// A reply that people hold back for this long is posted as text.
const LONGEST_HOLD: Duration = Duration::from_secs(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// If playback of sent audio makes no progress for this long, it counts as lost.
const PLAYBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// When to call [`SpokenReply::wake`], and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    pub at: Moment,
    /// The reason for the deadline. An earlier input may move or remove the deadline.
    pub why: Why,
}

/// The reason for a deadline. Deadlines of the same moment are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No person holds the reply back any longer.
    Release,
    HeldTooLong,
    NoAudio,
    /// All people are silent: the reply plays at full level again.
    Unduck,
    /// All people are silent: the pause gets its verdict.
    Verdict,
    PauseTooLong,
    /// Sent audio is not played.
    PlaybackLost,
    /// No more audio arrives, and all sent audio was played.
    Starved,
}

impl SpokenReply {
    /// The next deadline. There is one until the reply has ended.
    pub fn deadline(&self) -> Option<Deadline> {
        let candidates = match &self.phase {
            Phase::Preparing(preparing) => {
                let held_until = preparing.held_since.map(|since| since + LONGEST_HOLD);
                let release = match preparing.held_since {
                    Some(_) => Some(self.silent_at(SHORT_SILENCE, Moment::ZERO)),
                    None => (preparing.extension == Extension::Wanted).then_some(self.now),
                };
                let answer = (!preparing.is_ready).then_some(preparing.answer_by);
                [(release, Why::Release), (held_until, Why::HeldTooLong), (answer, Why::NoAudio)]
            }
            Phase::Speaking(playing) => [self.playback(playing), (None, Why::Unduck), (None, Why::Unduck)],
            Phase::Ducked(playing, _) => {
                let silence = Some(self.last_voiced().unwrap_or_default() + SHORT_SILENCE);
                [(silence, Why::Unduck), self.playback(playing), (None, Why::Unduck)]
            }
            Phase::Yielded { at, .. } => {
                let verdict = Some(self.silent_at(VERDICT_SILENCE, *at));
                [(verdict, Why::Verdict), (Some(*at + LONGEST_PAUSE), Why::PauseTooLong), (None, Why::Verdict)]
            }
            Phase::Ended(_) => return None,
        };
        let all = candidates.into_iter().filter_map(|(at, why)| Some(Deadline { at: at?.max(self.now), why }));
        all.min_by_key(|deadline| (deadline.at, deadline.why))
    }

    pub fn wake(&mut self, now: Moment) -> Vec<Effect> {
        let out = self.run(|due| due <= now);
        self.now = self.now.max(now);
        out
    }

    /// Handles all passed deadlines in their order, even if the call comes late.
    pub(super) fn run(&mut self, is_due: impl Fn(Moment) -> bool) -> Vec<Effect> {
        let mut out = Vec::new();
        while let Some(Deadline { at, why }) = self.deadline().filter(|deadline| is_due(deadline.at)) {
            self.now = at;
            match why {
                Why::Release => self.release(&mut out),
                Why::HeldTooLong => self.end(Outcome::AsText, &mut out),
                Why::NoAudio => self.end(Outcome::Failed, &mut out),
                Why::Unduck => self.unduck(&mut out),
                Why::Verdict => self.judge(&mut out),
                Why::PauseTooLong => self.end_pause(&mut out),
                Why::PlaybackLost => self.lose_playback(&mut out),
                // A reply that has begun to play is not generated again: it ends here.
                Why::Starved => self.end_played(&mut out),
            }
        }
        out
    }

    fn playback(&self, playing: &Playing) -> (Option<Moment>, Why) {
        if self.script.is_played() {
            (Some(playing.progress_at + self.answer_timeout), Why::Starved)
        } else {
            (Some(playing.progress_at + PLAYBACK_TIMEOUT), Why::PlaybackLost)
        }
    }

    /// When all people have been silent for this long, and the finals have arrived or are overdue. If no voice is known, the
    /// silence began at `otherwise`.
    fn silent_at(&self, silence: Duration, otherwise: Moment) -> Moment {
        let awaited = self.talking().filter_map(|talker| talker.final_by(FINAL_TIMEOUT)).max();
        awaited.unwrap_or_default().max(self.last_voiced().unwrap_or(otherwise) + silence)
    }

    /// The end of the last voiced hop of any person.
    fn last_voiced(&self) -> Option<Moment> {
        self.talking().filter_map(|talker| talker.last_voiced).max()
    }

    fn talking(&self) -> impl Iterator<Item = &Talker> {
        self.talkers.values().filter(|talker| !talker.is_noise)
    }
}
