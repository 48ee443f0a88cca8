//! Checks rounds: who is asked, who votes, who is selected.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::floor::HeldVote;
use super::{Record, Round};
use crate::domain::closing::Stage as Closing;
use crate::domain::event::{Evaluated, Recorded, RoundClosed, RoundOpened};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::domain::round::message_id;
use crate::domain::trigger::Trigger;
use crate::domain::vote::{Stance, State};

impl Record<'_> {
    pub(super) fn opened(&mut self, recorded: &Recorded, opened: &RoundOpened) {
        if self.rounds.iter().any(|round| round.message == opened.message) {
            self.violate(format_args!("an open round has this number already: {recorded:?}"));
        }
        if self.streak() >= self.stage.plan.rules.streak {
            self.violate(format_args!("a round is held after {} statements in a row: {recorded:?}", self.streak()));
        }
        for state in &opened.listening {
            let current = self.seats.get(&state.from).map(|seat| seat.stage);
            if current != Some(state.closing) {
                self.violate(format_args!("{} is {current:?}, not {}: {recorded:?}", state.from, state.closing));
            }
        }
        let asked: BTreeSet<_> = opened.asked.iter().cloned().collect();
        let voters = opened.listening.iter().map(|state| state.from.clone()).chain(asked.clone()).collect();
        let is_besides = !self.is_free() && !self.is_due_unsure;
        if is_besides {
            self.stage.reach("asked while another is busy");
        } else if !self.is_due_unsure {
            self.candidates.clear();
            self.alone = None;
        }
        let (message, deadline) = (opened.message, opened.deadline);
        self.rounds.push(Round { message, deadline, is_besides, asked, voters, listeners: BTreeSet::new() });
        if self.rounds.len() > 1 {
            self.stage.reach("several rounds open");
        }
    }

    /// A companion that writes, was selected, or has an undecided YES is not asked. While anything is in progress, only a person's address leads to a
    /// question.
    pub(super) fn check_who_is_asked(&self, recorded: &Recorded, evaluated: &Evaluated) {
        let companion = &evaluated.companion;
        // One whose YES waits for the votes of others is asked about an address.
        let is_kept = evaluated.trigger != Trigger::DirectAddress || self.held.contains_key(companion);
        let has_wish = is_kept && self.seats.get(companion).is_some_and(|seat| seat.has_wish);
        let is_writing = self.floor.iter().chain(&self.late).any(|floor| floor.companion == *companion);
        let is_selected = !self.due.is_empty() && !self.is_due_unsure && self.candidates.first() == Some(companion);
        if has_wish || is_writing || is_selected {
            self.violate(format_args!("{companion} writes, or waits for the floor: {recorded:?}"));
        }
        if !self.due.is_empty() && self.speak_at.is_none() && !self.is_due_unsure {
            self.violate(format_args!("{:?} must speak first: {recorded:?}", self.due));
        }
        let is_cancelled = self.seats.get(companion).is_some_and(|seat| seat.cancelled.contains(&evaluated.message));
        if evaluated.trigger == Trigger::DirectAddress && is_cancelled {
            self.violate(format_args!("what {companion} is asked about was cancelled: {recorded:?}"));
        }
        let Some(round) = self.rounds.iter().rev().find(|round| round.asked.contains(companion)) else {
            if self.holds_rounds() || !self.is_free() {
                self.violate(format_args!("{companion} is asked in no round: {recorded:?}"));
            }
            return;
        };
        let is_called = |seq: &Seq| {
            let received = self.received.get(seq).filter(|received| received.role == Role::Person);
            received.is_some_and(|received| received.address.includes(companion))
        };
        let is_called = evaluated.trigger == Trigger::DirectAddress && evaluated.messages.iter().any(is_called);
        if round.is_besides && !is_called && self.skipped.is_empty() {
            self.violate(format_args!("{companion} is asked while others are busy: {recorded:?}"));
        }
    }

    pub(super) fn closed(&mut self, recorded: &Recorded, closed: &RoundClosed) {
        let Some(index) = self.rounds.iter().position(|round| round.message == closed.message) else {
            return self.violate(format_args!("no such round was open: {recorded:?}"));
        };
        let round = self.rounds.remove(index);
        self.stage.reach(if recorded.at >= round.deadline {
            "round closed by its deadline"
        } else {
            "round closed by its votes"
        });
        let voted: BTreeSet<_> = closed.states.iter().map(|state| state.from.clone()).collect();
        if voted != round.voters || voted.len() != closed.states.len() {
            self.violate(format_args!("not everybody of {:?} voted once about {}: {recorded:?}", round.voters, round.message));
        }
        if let Some(stray) = closed.states.iter().find(|state| state.message_id != message_id(closed.message)) {
            self.violate(format_args!("a State of another round counts: {stray:?}"));
        }
        let wants = |state: &&State| state.state == Stance::Speak && round.listeners.contains(&state.from);
        if let Some(state) = closed.states.iter().find(wants) {
            self.violate(format_args!("{} wants to speak about nothing, or is silent: {recorded:?}", state.from));
        }
        let wants = |state: &&State| {
            let has_wish = || self.seats.get(&state.from).is_some_and(|seat| seat.has_wish && seat.asked.is_none());
            state.state == Stance::Speak && round.asked.contains(&state.from) && !has_wish()
        };
        if let Some(state) = closed.states.iter().find(wants) {
            self.violate(format_args!("{} did not say YES: {recorded:?}", state.from));
        }
        let ranking = self.ranking(&closed.states);
        let selected = closed.selected.iter().chain(closed.others.iter().map(|other| &other.companion));
        let candidates: Vec<_> = selected.chain(&closed.held).cloned().collect();
        if candidates != ranking {
            self.violate(format_args!("the order is {candidates:?}, not {ranking:?}: {recorded:?}"));
        }
        let may_be_guarded = self.longest_streak() >= self.stage.plan.rules.least_streak;
        let must_be_held = self.is_floor_taken() || self.is_being_judged || self.streak() >= self.stage.plan.rules.streak;
        if closed.held.is_empty() {
            if must_be_held && !candidates.is_empty() && (self.is_certain() || self.floor.is_some() || self.is_being_judged) {
                self.violate(format_args!("the floor is not free: {recorded:?}"));
            }
        } else {
            self.stage.reach("vote held");
            if !closed.others.is_empty() || closed.selected.is_some() {
                self.violate(format_args!("votes are held although one is selected: {recorded:?}"));
            }
            let must_wait = self.is_floor_awaited();
            if !must_wait && !may_be_guarded && self.is_certain() {
                self.violate(format_args!("votes are held although the floor is free: {recorded:?}"));
            }
        }
        let listens =
            |companion: &CompanionId| closed.states.iter().any(|state| state.from == *companion && state.state == Stance::Listen);
        for (companion, seat) in self.seats.iter_mut().filter(|(_, seat)| seat.may_be_withdrawn) {
            if seat.round == Some(closed.message) && recorded.at < round.deadline && listens(companion) {
                (seat.asked, seat.has_wish, seat.may_be_withdrawn) = (None, false, false);
            }
        }
        self.check_delay(recorded, closed);
        let since = self.when(recorded.seq);
        for state in closed.states.iter().filter(|state| closed.held.contains(&state.from)) {
            let (message, is_for_silence) =
                self.seats.get(&state.from).map_or((Seq::NONE, false), |seat| (seat.message, seat.wants_to_start));
            self.held.insert(state.from.clone(), HeldVote { state: state.clone(), message, is_for_silence, since });
        }
        if closed.held.is_empty() {
            for companion in &candidates {
                self.seats.entry(companion.clone()).and_modify(|seat| seat.has_wish = false);
            }
        }
        if closed.selected.is_some() {
            (self.candidates, self.has_failed) = (candidates, false);
            self.selected_at = recorded.handled;
            self.opened = closed.message;
            self.set_due(closed.selected.iter().cloned().collect());
            self.speak_at = closed.speak_at.map(|at| (at, self.when(recorded.seq)));
        }
    }

    fn check_delay(&self, recorded: &Recorded, closed: &RoundClosed) {
        let delays = self.stage.plan.rules.turn_delays;
        let is_delayed = |at: Moment| (delays.least..=delays.most).contains(&at.since(recorded.at).as_secs_f64());
        if closed.speak_at.is_some() != closed.selected.is_some() || !closed.speak_at.is_none_or(is_delayed) {
            self.violate(format_args!("invalid time to speak: {recorded:?}"));
        }
    }

    /// The companions that want to speak: those called upon first, then by importance, then who spoke longest ago, then by id.
    pub(super) fn ranking<'s>(&self, states: impl IntoIterator<Item = &'s State>) -> Vec<CompanionId> {
        let wants = |state: &&State| state.state == Stance::Speak && state.closing != Closing::Terminal;
        let mut wishes: Vec<_> = states.into_iter().filter(wants).collect();
        let spoke = |state: &State| self.spoke.get(&state.from).copied().unwrap_or(Seq::NONE);
        wishes.sort_by_key(|state| {
            (Reverse(state.selected), Reverse((state.importance * 1_000.0) as u64), spoke(state), state.from.clone())
        });
        wishes.into_iter().map(|state| state.from.clone()).collect()
    }
}
