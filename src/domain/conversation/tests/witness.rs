//! Who hears a spoken reply and those who talk into it, and checks independently how interruptions come out: one draw for each, no verdict before words
//! are final, a cut on record as the statement says, one extension, and nobody who is promoted afterwards (docs/design/voice.md ).

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::event::Evaluated;
use super::super::super::id::PersonId;
use super::super::super::voice::interruption::{self, Interrupted, Outcome, Said, Verdict};
use super::super::super::voice::utterance;
use super::super::*;
use super::mouth::Mouth;

/// The silence before a verdict, and the wait for a final after the offset and after the last voiced hop.
const SILENCE: Duration = Duration::from_millis(800);
const FINAL_AFTER_OFFSET: Duration = Duration::from_secs(1);
const FINAL_AFTER_VOICE: Duration = Duration::from_millis(1_300);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Witness {
    level: Level,
    talkers: BTreeMap<PersonId, Talk>,
    /// The people who want to be ignored.
    ignored: BTreeSet<PersonId>,
    /// The draw of the interruption in progress.
    barge: Option<f64>,
    began_at: Moment,
    paused_at: Moment,
    /// The newest interruption that was concluded and did not let the reply go on.
    concluded: Option<(Ticket, Interrupted)>,
    /// The replies that were made again because of new words.
    extended: BTreeSet<Ticket>,
    /// The person who cut the newest statement.
    cut_by: Option<PersonId>,
    /// The verdicts and outcomes that came up, also before a restart.
    pub(super) seen: BTreeSet<&'static str>,
    /// What the step before left behind, and what this one does.
    step: Step,
}

#[derive(Debug, Default)]
struct Step {
    /// The number of draws before it.
    rolls: usize,
    /// Whether a deadline was noticed late, so that times do not tell when something happened.
    is_late: bool,
    is_restart: bool,
    is_final: bool,
    /// Who would have taken over the floor.
    others: Vec<Candidate>,
    was_interrupted: bool,
    asks_turn: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Level {
    #[default]
    Silent,
    Full,
    Quiet,
    Paused,
}

#[derive(Debug)]
struct Talk {
    is_talking: bool,
    is_noise: bool,
    last_voiced: Moment,
    offset_at: Option<Moment>,
    final_at: Option<Moment>,
    has_partial: bool,
}

impl Talk {
    fn new(at: Moment) -> Self {
        Self { is_talking: true, is_noise: false, last_voiced: at, offset_at: None, final_at: None, has_partial: false }
    }

    /// Whether a verdict at `now` would come before the words are final.
    fn is_awaited(&self, now: Moment) -> bool {
        let final_is_in = !self.has_partial && self.final_at.is_some_and(|at| at >= self.last_voiced);
        let until = self.offset_at.map_or(self.last_voiced + FINAL_AFTER_VOICE, |at| at + FINAL_AFTER_OFFSET);
        !self.is_noise && (now.since(self.last_voiced) < SILENCE || !final_is_in && now < until)
    }
}

impl Witness {
    /// The process dies. The next one does not know what was drawn or extended.
    pub(super) fn die(&mut self) {
        let step = Step { is_restart: true, rolls: self.step.rolls, ..Step::default() };
        *self = Self { step, seen: std::mem::take(&mut self.seen), ..Self::default() };
    }

    /// Whether the step before handled a deadline late, after more was played or sent.
    pub(super) fn was_late(&self) -> bool {
        self.step.is_late
    }

    /// Before a step.
    pub(super) fn see(&mut self, input: &Input, conversation: &Conversation, rolls: usize, now: Moment) {
        let others = conversation.turns.floor.as_ref().map(|floor| floor.selection.others.clone()).unwrap_or_default();
        let is_late = conversation.wake_at().is_some_and(|due| due < now);
        self.step = Step { rolls, is_late, others, ..Step::default() };
        let is_heard = |user: &PersonId| conversation.voice.people_in_call().any(|person| person == user);
        match input {
            Input::Voice(Notice::Call(utterance::Input::Started { user, .. })) if !is_heard(user) || self.ignores(user) => {}
            Input::Voice(Notice::Call(heard)) => self.hear(heard, now),
            Input::Voice(Notice::Voiced { user, to, .. }) if is_heard(user) && !self.ignores(user) => {
                if let Some(talk) = self.talkers.get_mut(user).filter(|talk| talk.is_talking && !talk.is_noise) {
                    talk.last_voiced = talk.last_voiced.max((*to).min(now));
                }
            }
            Input::Voice(Notice::Partial { user, started, words }) => {
                let is_meant = words.said != Said::Nothing && *started >= self.began_at;
                let is_meant = is_meant && is_heard(user) && !self.ignores(user);
                if let Some(talk) = self.talkers.get_mut(user).filter(|_| is_meant) {
                    talk.has_partial = true;
                }
            }
            Input::Inbound(recorded) => match &recorded.event {
                Event::Segment(segment) => {
                    self.step.is_final = true;
                    self.hear_final(&segment.person(), now);
                }
                Event::VoiceLeft { from } => self.end(&PersonId::from(&*from.id), Moment::ZERO, now),
                _ => {}
            },
            _ => {}
        }
    }

    fn hear(&mut self, heard: &utterance::Input, now: Moment) {
        match heard {
            utterance::Input::Started { user, started } => {
                let talk = self.talkers.entry(user.clone()).or_insert_with(|| Talk::new(*started));
                let last_voiced = talk.last_voiced.max(*started);
                *talk = Talk { final_at: talk.final_at, ..Talk::new(last_voiced) };
            }
            utterance::Input::Ended { user, ended } => self.end(user, *ended, now),
            utterance::Input::Muted { user } | utterance::Input::SocketLost { user } | utterance::Input::Left { user } => {
                self.end(user, Moment::ZERO, now)
            }
            utterance::Input::OptedOut { user } => {
                self.end(user, Moment::ZERO, now);
                self.ignored.insert(user.clone());
            }
            utterance::Input::OptedIn { user } => drop(self.ignored.remove(user)),
            utterance::Input::Final { user, .. } => self.hear_final(user, now),
            _ => {}
        }
    }

    fn ignores(&self, user: &PersonId) -> bool {
        self.ignored.contains(user)
    }

    fn hear_final(&mut self, user: &PersonId, now: Moment) {
        let is_ignored = self.ignores(user);
        if let Some(talk) = self.talkers.get_mut(user).filter(|_| !is_ignored) {
            (talk.final_at, talk.has_partial) = (Some(now), false);
        }
    }

    fn end(&mut self, user: &PersonId, ended: Moment, now: Moment) {
        if let Some(talk) = self.talkers.get_mut(user).filter(|talk| talk.is_talking) {
            (talk.is_talking, talk.offset_at) = (false, Some(now));
            talk.last_voiced = talk.last_voiced.max(ended.min(now));
        }
    }

    /// What a step does, in order.
    pub(super) fn check(&mut self, output: &Output, conversation: &Conversation, rolls: &[f64], mouth: &Mouth, now: Moment) {
        match output {
            Output::HasLeft { user } => self.end(user, Moment::ZERO, now),
            Output::Made(made) => self.check_event(&made.event, mouth, now),
            Output::Call(effect) => match &**effect {
                CallEffect::CountsAsNoise { user } => {
                    self.talkers.entry(user.clone()).and_modify(|talk| talk.is_noise = talk.is_talking);
                }
                CallEffect::Reply { aloud: Aloud::Prepare { .. }, .. } => {
                    let talk = |user: &PersonId| (user.clone(), Talk::new(now));
                    self.talkers = conversation.voice.talkers().map(talk).collect();
                    (self.level, self.barge) = (Level::Silent, None);
                    self.began_at = Moment::ZERO;
                }
                CallEffect::Reply { aloud: Aloud::Play(effect), .. } => self.check_effect(effect, rolls, now),
                _ => {}
            },
            Output::Post(posting) => self.check_posting(posting, conversation),
            _ => {}
        }
    }

    fn check_effect(&mut self, effect: &interruption::Effect, rolls: &[f64], now: Moment) {
        match effect {
            interruption::Effect::Speak => {
                (self.level, self.began_at) = (Level::Full, now);
                self.go_on();
            }
            interruption::Effect::Duck => {
                assert_eq!(self.level, Level::Full, "a reply is ducked that does not play at full level");
                self.level = Level::Quiet;
                self.begin(rolls);
            }
            interruption::Effect::Pause => {
                if self.level == Level::Full {
                    self.begin(rolls);
                }
                (self.level, self.paused_at) = (Level::Paused, now);
            }
            interruption::Effect::Unduck | interruption::Effect::Resume { .. } => {
                assert_eq!(self.barge, None, "an interruption is not on record");
                self.level = Level::Full;
                self.go_on();
            }
            interruption::Effect::Ended(outcome) => {
                self.seen.insert(match outcome {
                    Outcome::Done => "done",
                    Outcome::Cut { by: None } => "cut",
                    Outcome::Cut { by: Some(_) } => "cut by a person",
                    Outcome::Cancelled => "ended before it was heard",
                    Outcome::AsText => "as text",
                    Outcome::Failed => "failed",
                    Outcome::StaysOwed => "stays owed",
                    Outcome::RestInWriting => "rest in writing",
                });
                if let Outcome::Cut { by } = outcome {
                    let who = self.concluded.as_ref().and_then(|(_, interrupted)| interrupted.who.clone());
                    assert!(by.is_none() || *by == who, "{by:?} has cut a reply, and {who:?} is on record");
                }
                self.cut_by = if let Outcome::Cut { by } = outcome { by.clone() } else { None };
                (self.level, self.barge) = (Level::Silent, None);
            }
            interruption::Effect::Finalize { .. }
            | interruption::Effect::Extend
            | interruption::Effect::SentenceDropped { .. }
            | interruption::Effect::Interrupted(_) => {}
        }
    }

    /// An interruption begins, and one number is drawn for it.
    fn begin(&mut self, rolls: &[f64]) {
        assert_eq!(self.barge, None, "an interruption begins within another");
        self.barge = rolls.get(self.step.rolls).copied();
        assert!(self.barge.is_some(), "an interruption begins without a draw");
        self.step.rolls += 1;
    }

    /// Who is silent does not belong to the next interruption.
    fn go_on(&mut self) {
        self.concluded = None;
        self.talkers.retain(|_, talk| talk.is_talking);
        self.talkers.values_mut().for_each(|talk| talk.has_partial = false);
    }

    fn check_event(&mut self, event: &Event, mouth: &Mouth, now: Moment) {
        match event {
            Event::Interrupted { ticket, interrupted, .. } => {
                self.check_interrupted(interrupted, now);
                if let Some(played) = mouth.played_ms(*ticket).filter(|_| !self.step.is_late) {
                    assert_eq!(interrupted.at_ms, played, "the position on record is not what was played: {interrupted:?}");
                }
                self.concluded = Some((*ticket, interrupted.clone()));
            }
            Event::ReplyExtended { ticket, next, .. } => {
                assert!(!self.extended.contains(ticket), "a reply is extended twice");
                self.extended.insert(*next);
                self.talkers.retain(|_, talk| talk.is_talking);
            }
            // Another choice is made.
            Event::HeldSelected { .. } | Event::RoundClosed { .. } => self.step.was_interrupted = false,
            Event::ReplyOwed { companion, trigger, .. } if self.step.was_interrupted => {
                let is_next = |next: &Candidate| next.companion == *companion && next.trigger == *trigger;
                assert!(!self.step.others.iter().any(is_next), "{companion} takes over from a reply that was interrupted");
            }
            Event::ReplyFailed { error, .. } if &**error == INTERRUPTED => self.step.was_interrupted = true,
            Event::Evaluated(Evaluated { trigger: Trigger::Turn, .. }) => self.step.asks_turn = true,
            _ => {}
        }
    }

    fn check_interrupted(&mut self, interrupted: &Interrupted, now: Moment) {
        let Interrupted { draw, verdict, .. } = interrupted;
        self.seen.insert(verdict.as_str());
        assert_eq!(*draw, self.barge.take(), "another draw is on record than was made: {interrupted:?}");
        if self.step.is_late || self.level != Level::Paused {
            return;
        }
        let is_judged = match verdict {
            Verdict::NothingSaid | Verdict::Backchannel | Verdict::FewWords | Verdict::ManyWords => true,
            Verdict::StopWord => !self.step.is_final,
            _ => false,
        };
        let awaited = self.talkers.iter().find(|(_, talk)| talk.is_awaited(now));
        assert!(!is_judged || awaited.is_none(), "{verdict:?} at {now:?} before the words of {awaited:?} are final");
        if matches!(verdict, Verdict::Noise | Verdict::TookTooLong) {
            assert!(now.since(self.paused_at) >= LONGEST_PAUSE, "{verdict:?} after a short pause");
            let talking = self.talkers.values_mut().filter(|talk| talk.is_talking && *verdict == Verdict::Noise);
            talking.for_each(|talk| talk.is_noise = true);
        }
    }

    /// A statement says by whom it was cut, as its interruption does.
    fn check_posting(&mut self, posting: &Posting, conversation: &Conversation) {
        let Some(spoken) = &posting.spoken else { return };
        let concluded = self.concluded.take().filter(|(ticket, _)| *ticket == posting.ticket).map(|(_, interrupted)| interrupted);
        let cut_by = spoken.cut.as_ref().and_then(|cut| cut.by.as_ref()).map(|by| PersonId::from(&*by.id));
        let by_person =
            |verdict| matches!(verdict, Verdict::StopWord | Verdict::Addressed | Verdict::ManyWords | Verdict::TookTooLong);
        let not_by_person = |verdict| {
            matches!(
                verdict,
                Verdict::StopPressed
                    | Verdict::CallEnded
                    | Verdict::PlaybackLost
                    | Verdict::Cancelled
                    | Verdict::ServerStopping
                    | Verdict::Silenced
            )
        };
        match (&spoken.cut, &concluded) {
            (None, None) => {}
            (None, Some(interrupted)) => {
                let is_cut = by_person(interrupted.verdict) || not_by_person(interrupted.verdict);
                let is_written_on = matches!(interrupted.verdict, Verdict::ServerStopping | Verdict::Silenced);
                assert!(!is_cut || is_written_on, "a statement is whole that was cut: {interrupted:?}");
            }
            (Some(cut), None) => assert!(self.step.is_restart && cut.by.is_none(), "no interruption of a cut is on record"),
            (Some(_), Some(interrupted)) if not_by_person(interrupted.verdict) => {
                assert_eq!(cut_by, None, "nobody has cut the statement: {interrupted:?}");
            }
            (Some(_), Some(interrupted)) => {
                assert!(by_person(interrupted.verdict), "a statement is cut that went on: {interrupted:?}");
                let who = interrupted.who.clone().filter(|who| conversation.voice.people_in_call().any(|person| person == who));
                assert_eq!(cut_by, who, "the statement and the record differ: {interrupted:?}");
            }
        }
    }

    /// After a step.
    pub(super) fn check_step(&mut self, conversation: &Conversation, rolls: &[f64]) {
        assert_eq!(rolls.len(), self.step.rolls, "a draw was made, and no interruption began");
        if self.step.was_interrupted {
            let next = conversation.turns.selected.as_ref().map(|turn| &turn.candidate);
            let is_promoted = next.is_some_and(|next| self.step.others.contains(next));
            assert!(!is_promoted, "{next:?} takes over from a reply that was interrupted");
        }
        if let Some(person) = self.cut_by.as_ref().filter(|_| self.step.asks_turn && conversation.voice.call.is_connected()) {
            // Who wants to be ignored is not waited for.
            let is_heard = self.ignores(person) || conversation.voice.buffered_segments_of(person).is_empty();
            assert!(is_heard, "somebody takes a turn before {person} is heard who cut the statement");
        }
        self.step.is_restart = false;
    }
}
