//! Decides how a spoken reply reacts when people talk (docs/design/voice.md ).
//!
//! There is one state machine for each spoken reply. It lives from the moment the companion gets the floor until the reply ends.
//! [`SpokenReply::handle`] processes an input, [`SpokenReply::deadline`] returns the next deadline, and [`SpokenReply::wake`] handles deadlines that
//! have passed. Times come from the inputs, and random draws from the caller.

mod due;
mod input;
mod preparing;
mod talker;
#[cfg(test)]
mod tests;
pub mod tolerance;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::id::{CompanionId, PersonId};
use super::super::moment::Moment;
use super::echo::PlayedWords;
use super::heard::Script;
use super::pronounced::Pronounced;
pub use due::{Deadline, Why};
pub use input::{Effect, Input, Outcome, Said, Stop, Words};
use preparing::Preparing;
use talker::Talker;
pub use verdict::{Interrupted, Verdict};

/// Draws a number from 0 to 1 for an interruption.
type Draw<'a> = &'a mut dyn FnMut() -> Option<f64>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpokenReply {
    companion: CompanionId,
    tolerance: f64,
    answer_timeout: Duration,
    /// The time of the newest input or deadline.
    now: Moment,
    phase: Phase,
    /// The people who talk, or have talked since the last interruption ended.
    talkers: BTreeMap<PersonId, Talker>,
    script: Script,
    is_finished: bool,
    played_words: PlayedWords,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// No audio has been played yet.
    Preparing(Preparing),
    Speaking(Playing),
    /// The reply plays quietly, because a person talks.
    Ducked(Playing, Barge),
    /// The reply is paused since `at`, because a person talks or said a stop word or a companion's name.
    Yielded {
        playing: Playing,
        barge: Barge,
        at: Moment,
    },
    Ended(Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Playing {
    /// The time of the reply's first frame. Words that were begun before it are ignored.
    first_frame: Moment,
    /// When playback last advanced, or when new audio arrived after all earlier audio was played.
    progress_at: Moment,
    reported: Duration,
}

/// A person talks during the reply (barge-in).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Barge {
    who: PersonId,
    draw: f64,
    is_tolerant: bool,
}

impl SpokenReply {
    /// Creates the state for a reply whose companion has just got the floor. `talkers` are already talking at that moment. `tolerance` is the
    /// probability that the companion pushes through ([`tolerance::probability`]), `answer_timeout` the longest wait for audio (`models.main.timeout`
    /// + 5 s), and `played_words` the words of earlier replies ([`Self::played_words`]).
    pub fn new(
        companion: CompanionId,
        tolerance: f64,
        answer_timeout: Duration,
        played_words: PlayedWords,
        talkers: impl IntoIterator<Item = PersonId>,
        now: Moment,
    ) -> Self {
        let talkers: BTreeMap<_, _> = talkers.into_iter().map(|user| (user, Talker::started(now))).collect();
        let preparing = Preparing::new(now + answer_timeout, (!talkers.is_empty()).then_some(now));
        let (phase, script) = (Phase::Preparing(preparing), Script::default());
        Self { companion, tolerance, answer_timeout, now, phase, talkers, script, is_finished: false, played_words }
    }

    /// Extends the waits for audio by the duration of a call of a tool, which does not count (docs/design/tools.md X-8).
    pub fn extend_waits(&mut self, span: Duration) {
        self.answer_timeout += span;
        if let Phase::Preparing(preparing) = &mut self.phase {
            preparing.answer_by = preparing.answer_by + span;
        }
    }

    /// Marks the reply as extended already, after a restart: it is not extended again.
    pub fn extended_before(mut self) -> Self {
        if let Phase::Preparing(preparing) = &mut self.phase {
            preparing.extension = preparing::Extension::Made;
        }
        self
    }

    /// Processes an input that happened at `at`. Deadlines before `at` are handled first; deadlines at `at` itself are left to [`Self::wake`]. After
    /// the end of the reply, inputs have no effect. If the input begins an interruption, `draw` is called once for a number from 0 to 1
    /// (docs/design/voice.md A-32). `None` counts as 1: never tolerant.
    pub fn handle(&mut self, at: Moment, input: Input, draw: Draw<'_>) -> Vec<Effect> {
        let mut out = self.run(|due| due < at);
        self.now = self.now.max(at);
        if self.outcome().is_some() {
            return out;
        }
        let effects = &mut out;
        match input {
            Input::Started { user, started } => self.on_started(user, started, draw, effects),
            Input::Voiced { user, from, to } => self.on_voiced(&user, from, to, draw, effects),
            Input::Ended { user, ended } => self.on_ended(&user, ended, effects),
            // The offset is the last voiced hop.
            Input::PersonGone { user } => self.on_ended(&user, Moment::ZERO, effects),
            Input::Noise { user } => {
                self.talkers.entry(user).and_modify(|talker| talker.is_noise = talker.is_talking);
            }
            Input::Words { user, started, is_final, words } => self.on_words(user, started, is_final, &words, draw, effects),
            Input::Sentence { text, words } => self.script.sentence(text, words),
            Input::WordTimes { sentence, words } => self.script.words(sentence, &words),
            Input::Audio { sentence, length } => self.on_audio(sentence, length),
            Input::Whole { sentence } => self.script.whole(sentence),
            Input::FirstAudio => self.on_first_audio(effects),
            Input::Played { position } => self.on_played(position),
            Input::Finished => self.on_finished(effects),
            Input::Stall => effects.extend(self.script.drop_stalled().map(|sentence| Effect::SentenceDropped { sentence })),
            Input::StopPressed => self.cut(None, Verdict::StopPressed, effects),
            Input::CallEnded => self.cut(None, Verdict::CallEnded, effects),
            Input::Cancelled => self.cancel(effects),
            Input::ShutDown => self.write_rest(Verdict::ServerStopping, Outcome::StaysOwed, effects),
            Input::Silenced => self.write_rest(Verdict::Silenced, Outcome::AsText, effects),
            Input::PlayerRestarted => self.on_player_restarted(effects),
        }
        self.end_if_played(&mut out);
        out
    }

    /// Handles the deadlines before `at`. Deadlines at `at` itself follow the inputs of that moment, and are left to [`Self::wake`].
    pub fn advance_to(&mut self, at: Moment) -> Vec<Effect> {
        let out = self.run(|due| due < at);
        self.now = self.now.max(at);
        out
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Whether nothing was played yet, so that more words still extend the reply (docs/design/voice.md A-23).
    pub fn is_preparing(&self) -> bool {
        matches!(self.phase, Phase::Preparing(_))
    }

    /// Whether the reply will be generated again, because people have said more.
    pub fn will_extend(&self) -> bool {
        matches!(&self.phase, Phase::Preparing(preparing) if preparing.extension == preparing::Extension::Wanted)
    }

    pub fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Speaking(_) | Phase::Ducked(..))
    }

    pub fn heard(&self) -> String {
        self.script.heard()
    }

    /// The sentences, and how far they were played.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The words that were played recently, for recognising echo.
    pub fn played_words(&self) -> &PlayedWords {
        &self.played_words
    }

    fn on_started(&mut self, user: PersonId, started: Moment, draw: Draw<'_>, out: &mut Vec<Effect>) {
        let started = started.min(self.now);
        self.talkers.entry(user.clone()).or_insert_with(|| Talker::started(started)).begin(started);
        self.begin_talk(user, draw, out);
    }

    fn on_voiced(&mut self, user: &PersonId, from: Moment, to: Moment, draw: Draw<'_>, out: &mut Vec<Effect>) {
        let to = to.min(self.now);
        let Some(talker) = self.talkers.get_mut(user).filter(|talker| talker.is_talking && !talker.is_noise) else { return };
        talker.voiced(from, to);
        // After a pause of just the length of an offset, the next voiced hop continues the talk.
        self.begin_talk(user.clone(), draw, out);
        if let Phase::Ducked(_, barge) = &self.phase
            && self.talkers.get(user).is_some_and(|talker| talker.has_insisted(to, barge.is_tolerant))
        {
            self.pause(out);
        }
    }

    /// Reacts to a talker: holds back a reply in preparation, and ducks a playing one.
    fn begin_talk(&mut self, user: PersonId, draw: Draw<'_>, out: &mut Vec<Effect>) {
        if let Phase::Preparing(preparing) = &mut self.phase {
            preparing.hold(self.now);
        } else if self.begin_interruption(user, draw) {
            out.push(Effect::Duck);
        }
    }

    fn on_ended(&mut self, user: &PersonId, ended: Moment, out: &mut Vec<Effect>) {
        let Some(talker) = self.talkers.get_mut(user).filter(|talker| talker.is_talking) else { return };
        talker.end(ended.min(self.now), self.now);
        if talker.awaits_final && !talker.is_noise && matches!(self.phase, Phase::Preparing(_) | Phase::Yielded { .. }) {
            out.push(Effect::Finalize { user: user.clone() });
        }
    }

    fn on_words(
        &mut self,
        user: PersonId,
        started: Moment,
        is_final: bool,
        words: &Words,
        draw: Draw<'_>,
        out: &mut Vec<Effect>,
    ) {
        if !is_final && words.said == Said::Nothing {
            return;
        }
        let first_frame = match &self.phase {
            Phase::Preparing(_) => return self.on_words_before(&user, is_final, words, out),
            Phase::Speaking(playing) | Phase::Ducked(playing, _) | Phase::Yielded { playing, .. } => playing.first_frame,
            Phase::Ended(_) => return,
        };
        if started < first_frame {
            return;
        }
        if !words.stops() && matches!(self.phase, Phase::Speaking(_)) {
            // Words outside an interruption do not count towards one.
            self.talkers.entry(user).and_modify(|talker| talker.recognised(self.now, is_final));
            return;
        }
        let talker = self.talkers.entry(user.clone()).or_insert_with(|| Talker::heard(self.now));
        talker.words(self.now, is_final, words);
        if !words.stops() {
            return;
        }
        if is_final {
            let verdict = if words.stop == Stop::None { Verdict::Addressed } else { Verdict::StopWord };
            self.cut(Some(user), verdict, out);
        } else {
            self.begin_interruption(user, draw);
            self.pause(out);
        }
    }

    fn on_audio(&mut self, sentence: usize, length: Duration) {
        let (now, was_played) = (self.now, self.script.is_played());
        self.script.audio(sentence, length);
        let is_played = self.script.is_played();
        if let Some(playing) = self.playing_mut()
            && was_played
            && !is_played
        {
            playing.progress_at = playing.progress_at.max(now);
        }
    }

    fn on_played(&mut self, position: Duration) {
        let (now, position) = (self.now, position.min(self.script.sent()));
        let Some(playing) = self.playing_mut() else { return };
        if playing.reported != position {
            (playing.reported, playing.progress_at) = (position, now);
        }
        let text = self.script.played(position);
        self.played_words.add(now, &Pronounced::plain(&text).text);
    }

    fn playing_mut(&mut self) -> Option<&mut Playing> {
        match &mut self.phase {
            Phase::Speaking(playing) | Phase::Ducked(playing, _) | Phase::Yielded { playing, .. } => Some(playing),
            Phase::Preparing(_) | Phase::Ended(_) => None,
        }
    }

    fn speak(&mut self, out: &mut Vec<Effect>) {
        let playing = Playing { first_frame: self.now, progress_at: self.now, reported: Duration::ZERO };
        self.phase = Phase::Speaking(playing);
        out.push(Effect::Speak);
    }

    /// Begins an interruption and draws its number (docs/design/voice.md ). Returns false unless the reply was playing at full level.
    fn begin_interruption(&mut self, who: PersonId, draw: Draw<'_>) -> bool {
        let Phase::Speaking(playing) = self.phase else { return false };
        let draw = draw().unwrap_or(1.0);
        self.phase = Phase::Ducked(playing, Barge { who, draw, is_tolerant: draw < self.tolerance });
        true
    }

    /// Pauses the ducked reply, and requests outstanding finals of the people who have stopped talking.
    fn pause(&mut self, out: &mut Vec<Effect>) {
        let Phase::Ducked(playing, barge) = &self.phase else { return };
        self.phase = Phase::Yielded { playing: *playing, barge: barge.clone(), at: self.now };
        out.push(Effect::Pause);
        let awaited = self.talkers.iter().filter(|(_, talker)| talker.awaits_final && !talker.is_talking);
        out.extend(awaited.map(|(user, _)| Effect::Finalize { user: user.clone() }));
    }

    /// Ends the reply if all of its audio was made and played (docs/design/voice.md A-35). A paused reply waits for its verdict.
    fn end_if_played(&mut self, out: &mut Vec<Effect>) {
        let is_playing = matches!(self.phase, Phase::Speaking(_) | Phase::Ducked(..));
        if is_playing && self.is_finished && self.script.is_played() {
            self.end_played(out);
        }
    }

    /// Ends a reply whose audio was all played. If not one word was heard, the reply has failed.
    fn end_played(&mut self, out: &mut Vec<Effect>) {
        self.conclude(None, Verdict::PlayedOut, out);
        let is_unheard = self.script.heard().trim().is_empty();
        self.end(if is_unheard { Outcome::Failed } else { Outcome::Done }, out);
    }

    fn end(&mut self, outcome: Outcome, out: &mut Vec<Effect>) {
        self.phase = Phase::Ended(outcome.clone());
        self.talkers.clear();
        out.push(Effect::Ended(outcome));
    }
}
