//! The verdicts of interruptions (docs/design/voice.md ).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::super::id::PersonId;
use super::super::super::named::named;
use super::{Effect, Outcome, Phase, Said, SpokenReply};

/// A person who talked for less time than this does not cut a reply by words alone.
const LEAST_TO_CUT: Duration = Duration::from_secs(4);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupted {
    /// The person who interrupted. `None` if no person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<PersonId>,
    /// The number that was drawn, from 0 to 1. `None` without a draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<f64>,
    /// The probability that the companion pushes through, from 0 to 0.9. It does if the draw is smaller.
    pub tolerance: f64,
    pub verdict: Verdict,
    pub at_ms: u64,
}

named! {
    /// How an interruption ended.
    pub enum Verdict {
        /// The person fell silent before the reply paused.
        Unducked = "unducked",
        /// The reply was played to its end during the interruption.
        PlayedOut = "played_out",
        /// The reply paused, and no words were recognised: it resumes.
        NothingSaid = "nothing_said",
        /// The reply paused, and only backchannel was recognised: it resumes.
        Backchannel = "backchannel",
        /// The reply paused for a few words that address no companion: it resumes.
        FewWords = "few_words",
        /// The pause became too long without words: the reply resumes, and the voice counts as noise.
        Noise = "noise",
        StopWord = "stop_word",
        Addressed = "addressed",
        /// A person talked for long, which cut the reply.
        ManyWords = "many_words",
        /// The pause became too long, which cut the reply.
        TookTooLong = "took_too_long",
        StopPressed = "stop_pressed",
        CallEnded = "call_ended",
        PlaybackLost = "playback_lost",
        ServerStopping = "server_stopping",
        /// The voice connection no longer carried audio: people did not hear the companions, or the companions did not hear people.
        Silenced = "silenced",
        Cancelled = "cancelled",
    }
}

impl SpokenReply {
    /// Restores full volume: all people fell silent before the reply had to pause.
    pub(super) fn unduck(&mut self, out: &mut Vec<Effect>) {
        let Phase::Ducked(playing, _) = self.phase else { return };
        self.conclude(None, Verdict::Unducked, out);
        self.phase = Phase::Speaking(playing);
        self.forget_words();
        out.push(Effect::Unduck);
    }

    /// Decides the verdict once all people are silent, and the finals have arrived or are overdue (docs/design/voice.md A-33).
    pub(super) fn judge(&mut self, out: &mut Vec<Effect>) {
        if let Some(who) = self.talkers.iter().find(|(_, talker)| talker.has_said_stop()).map(|(user, _)| user.clone()) {
            return self.cut(Some(who), Verdict::StopWord, out);
        }
        let longest = self.talkers.values().map(|talker| talker.voiced).max().unwrap_or_default();
        match self.said() {
            Said::Nothing => self.resume(Verdict::NothingSaid, out),
            Said::Backchannel => self.resume(Verdict::Backchannel, out),
            Said::Words if longest < LEAST_TO_CUT => self.resume(Verdict::FewWords, out),
            Said::Words => self.cut(self.longest_talker(), Verdict::ManyWords, out),
        }
    }

    /// Ends the longest possible pause without a regular verdict (docs/design/voice.md A-34).
    pub(super) fn end_pause(&mut self, out: &mut Vec<Effect>) {
        if self.said() == Said::Words {
            return self.cut(self.longest_talker(), Verdict::TookTooLong, out);
        }
        for talker in self.talkers.values_mut().filter(|talker| talker.is_talking) {
            talker.is_noise = true;
        }
        self.resume(Verdict::Noise, out);
    }

    /// Resumes after a pause, or ends the reply if nothing is left to play.
    fn resume(&mut self, verdict: Verdict, out: &mut Vec<Effect>) {
        let Phase::Yielded { mut playing, .. } = self.phase else { return };
        self.conclude(None, verdict, out);
        playing.progress_at = self.now;
        self.phase = Phase::Speaking(playing);
        self.forget_words();
        if self.is_finished && self.script.is_played() {
            self.end(Outcome::Done, out);
        } else {
            out.push(Effect::Resume { from: self.script.resume_from() });
        }
    }

    pub(super) fn cut(&mut self, by: Option<PersonId>, verdict: Verdict, out: &mut Vec<Effect>) {
        self.conclude(Some(by.clone()), verdict, out);
        self.end(Outcome::Cut { by }, out);
    }

    /// Cancels the reply (docs/design/voice.md A-36).
    pub(super) fn cancel(&mut self, out: &mut Vec<Effect>) {
        self.end_early(Verdict::Cancelled, Outcome::Cut { by: None }, Outcome::Cancelled, out);
    }

    /// Stops speaking, and leaves the unheard rest to be posted as text (docs/design/voice.md A-50). `unheard` is the outcome if nothing was heard
    /// yet.
    pub(super) fn write_rest(&mut self, verdict: Verdict, unheard: Outcome, out: &mut Vec<Effect>) {
        self.end_early(verdict, Outcome::RestInWriting, unheard, out);
    }

    /// Ends the reply because its audio is no longer played (docs/design/voice.md A-35).
    pub(super) fn lose_playback(&mut self, out: &mut Vec<Effect>) {
        self.end_early(Verdict::PlaybackLost, Outcome::Cut { by: None }, Outcome::AsText, out);
    }

    /// Ends the reply at the current position, with the outcome `heard` if some of it was heard, else `unheard`.
    fn end_early(&mut self, verdict: Verdict, heard: Outcome, unheard: Outcome, out: &mut Vec<Effect>) {
        let was_heard = !self.heard().trim().is_empty();
        self.conclude(was_heard.then_some(None), verdict, out);
        self.end(if was_heard { heard } else { unheard }, out);
    }

    /// Records the verdict if there is an interruption. With `cut_by` the reply is cut, which is always recorded.
    pub(super) fn conclude(&mut self, cut_by: Option<Option<PersonId>>, verdict: Verdict, out: &mut Vec<Effect>) {
        let barge = match &self.phase {
            Phase::Ducked(_, barge) | Phase::Yielded { barge, .. } => Some(barge),
            Phase::Preparing(_) | Phase::Speaking(_) | Phase::Ended(_) => None,
        };
        if barge.is_none() && cut_by.is_none() {
            return;
        }
        let who = cut_by.flatten().or_else(|| barge.map(|barge| barge.who.clone()));
        let at_ms = u64::try_from(self.script.position().as_millis()).unwrap_or(u64::MAX);
        let draw = barge.map(|barge| barge.draw);
        out.push(Effect::Interrupted(Interrupted { who, draw, tolerance: self.tolerance, verdict, at_ms }));
    }

    fn said(&self) -> Said {
        self.talkers.values().map(super::Talker::said).max().unwrap_or_default()
    }

    /// The person who talked longest among those who said words.
    fn longest_talker(&self) -> Option<PersonId> {
        let talkers = self.talkers.iter().filter(|(_, talker)| talker.said() == Said::Words);
        talkers.max_by_key(|(_, talker)| talker.voiced).map(|(user, _)| user.clone())
    }

    /// Clears the words of this interruption, and keeps only the people who still talk for the next one.
    pub(super) fn forget_words(&mut self) {
        self.talkers.retain(|_, talker| talker.is_talking);
        self.talkers.values_mut().for_each(super::Talker::begin_anew);
    }
}
