//! A reply that has not begun to play: talkers hold it back, and their words extend it once (docs/design/voice.md ).

use serde::{Deserialize, Serialize};

use super::super::super::id::PersonId;
use super::super::super::moment::Moment;
use super::super::heard::Script;
use super::{Effect, Outcome, Phase, Said, SpokenReply, Stop, Words};

/// The state of a reply that is being prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Preparing {
    pub(super) answer_by: Moment,
    pub(super) held_since: Option<Moment>,
    /// Whether the first audio has arrived, and is kept.
    pub(super) is_ready: bool,
    pub(super) extension: Extension,
}

/// Whether the reply is generated again with words that arrived during its preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Extension {
    None,
    /// It will be generated again when no person holds it back any longer.
    Wanted,
    Made,
}

impl Preparing {
    pub(super) fn new(answer_by: Moment, held_since: Option<Moment>) -> Self {
        Self { answer_by, held_since, is_ready: false, extension: Extension::None }
    }

    pub(super) fn hold(&mut self, now: Moment) {
        self.held_since.get_or_insert(now);
    }
}

impl SpokenReply {
    pub(super) fn on_words_before(&mut self, user: &PersonId, is_final: bool, words: &Words, out: &mut Vec<Effect>) {
        if let Some(talker) = self.talkers.get_mut(user) {
            talker.recognised(self.now, is_final);
        }
        let is_meant = words.stop == Stop::Alone || words.addressed.contains(&self.companion);
        if words.stop != Stop::None && is_meant {
            return self.end(Outcome::Cancelled, out);
        }
        if let Phase::Preparing(preparing) = &mut self.phase
            && is_final
            && words.said == Said::Words
            && preparing.extension == Extension::None
        {
            preparing.extension = Extension::Wanted;
        }
    }

    pub(super) fn on_first_audio(&mut self, out: &mut Vec<Effect>) {
        let Phase::Preparing(preparing) = &mut self.phase else { return };
        if preparing.held_since.is_some() || preparing.extension == Extension::Wanted {
            preparing.is_ready = true;
        } else {
            self.begin(out);
        }
    }

    pub(super) fn on_finished(&mut self, out: &mut Vec<Effect>) {
        if let Phase::Preparing(preparing) = self.phase
            && !preparing.is_ready
        {
            // A reply that is generated again anyway has not failed.
            if preparing.extension != Extension::Wanted {
                self.end(Outcome::Failed, out);
            }
            return;
        }
        self.script.finish();
        self.is_finished = true;
    }

    /// Handles the loss of the reply's audio: a reply in preparation gets new audio; for one that was playing, playback is lost (docs/design/voice.md
    ///
    pub(super) fn on_player_restarted(&mut self, out: &mut Vec<Effect>) {
        let answer_by = self.now + self.answer_timeout;
        let Phase::Preparing(preparing) = &mut self.phase else { return self.lose_playback(out) };
        *preparing = Preparing { extension: preparing.extension, ..Preparing::new(answer_by, preparing.held_since) };
        (self.script, self.is_finished) = (Script::default(), false);
    }

    pub(super) fn release(&mut self, out: &mut Vec<Effect>) {
        let answer_by = self.now + self.answer_timeout;
        let Phase::Preparing(preparing) = &mut self.phase else { return };
        preparing.held_since = None;
        if preparing.extension == Extension::Wanted {
            *preparing = Preparing { extension: Extension::Made, ..Preparing::new(answer_by, None) };
            (self.script, self.is_finished) = (Script::default(), false);
            self.forget_words();
            out.push(Effect::Extend);
        } else if preparing.is_ready {
            self.begin(out);
        } else {
            self.forget_words();
        }
    }

    /// Begins to play. People who have stopped talking before do not interrupt.
    fn begin(&mut self, out: &mut Vec<Effect>) {
        self.forget_words();
        self.speak(out);
        self.end_if_played(out);
    }
}
