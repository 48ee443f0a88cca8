//! What a spoken reply waits for, and what happens when the time has come.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::super::moment::Moment;
use super::preparing::Extension;
use super::{Effect, Outcome, Phase, Playing, SpokenReply, Talker};

/// The silence after which a reply is no longer held back, or plays at full level again.
const SHORT_SILENCE: Duration = Duration::from_millis(300);
/// The silence after which a pause is judged.
const VERDICT_SILENCE: Duration = Duration::from_millis(800);
/// The longest wait for a final result after a person falls silent.
const FINAL_TIMEOUT: Duration = Duration::from_secs(1);
/// A reply that people hold back for this long is posted as text.
const LONGEST_HOLD: Duration = Duration::from_secs(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// If sent audio makes no progress for this long, playback counts as lost.
const PLAYBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// When [`SpokenReply::wake`] is to be called, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    pub at: Moment,
    /// What happens then, unless something else happens first.
    pub why: Why,
}

/// Why a reply must be woken. Deadlines of the same moment are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Nobody holds the reply back any longer.
    Release,
    HeldTooLong,
    NoAudio,
    /// Everybody is silent: it plays at full level again.
    Unduck,
    /// Everybody is silent, and the pause is judged.
    Verdict,
    PauseTooLong,
    /// What was sent is not played.
    PlaybackLost,
    /// No more audio comes, and everything was played.
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

    /// Does what is due, in the order of the deadlines, however late that is noticed.
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
                // A reply that was begun is not made again: it ends here.
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

    /// When everybody is silent for this long, and the finals are in or overdue. Without a voice it is silent since `otherwise`.
    fn silent_at(&self, silence: Duration, otherwise: Moment) -> Moment {
        let awaited = self.talking().filter_map(|talker| talker.final_by(FINAL_TIMEOUT)).max();
        awaited.unwrap_or_default().max(self.last_voiced().unwrap_or(otherwise) + silence)
    }

    /// The end of the last voiced hop of anybody.
    fn last_voiced(&self) -> Option<Moment> {
        self.talking().filter_map(|talker| talker.last_voiced).max()
    }

    fn talking(&self) -> impl Iterator<Item = &Talker> {
        self.talkers.values().filter(|talker| !talker.is_noise)
    }
}
