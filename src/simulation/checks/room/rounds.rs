//! Rounds and the floor: who votes, who is selected, who speaks.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Floor, Record, Round};
use crate::domain::closing::Stage as Closing;
use crate::domain::event::{Recorded, RoundClosed, RoundOpened};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::round::message_id;
use crate::domain::vote::{Stance, State};

impl Record<'_> {
    pub(super) fn opened(&mut self, recorded: &Recorded, opened: &RoundOpened) {
        if self.round.is_some() || self.floor.is_some() {
            self.broken(format_args!("a round is opened while another is, or somebody speaks: {recorded:?}"));
        }
        if self.streak >= self.told.plan.rules.streak {
            self.broken(format_args!("a round is held after {} statements in a row: {recorded:?}", self.streak));
        }
        for state in &opened.listening {
            let known = self.seats.get(&state.from).map(|seat| seat.stage);
            if known != Some(state.closing) {
                self.broken(format_args!("{} is {known:?}, not {}: {recorded:?}", state.from, state.closing));
            }
        }
        let voters = opened.asked.iter().cloned().chain(opened.listening.iter().map(|state| state.from.clone())).collect();
        self.round = Some(Round { message: opened.message, voters, about_nothing: BTreeSet::new() });
        self.candidates.clear();
        self.alone = None;
    }

    pub(super) fn closed(&mut self, recorded: &Recorded, closed: &RoundClosed) {
        let Some(round) = self.round.take() else {
            return self.broken(format_args!("no round was open: {recorded:?}"));
        };
        self.told.reach(if closed.by_deadline { "round closed by its deadline" } else { "round closed by its votes" });
        let voted: BTreeSet<_> = closed.states.iter().map(|state| state.from.clone()).collect();
        if closed.message != round.message || voted != round.voters || voted.len() != closed.states.len() {
            self.broken(format_args!("not everybody of {:?} voted once about {}: {recorded:?}", round.voters, round.message));
        }
        if let Some(stray) = closed.states.iter().find(|state| state.message_id != message_id(closed.message)) {
            self.broken(format_args!("a State of another round counts: {stray:?}"));
        }
        let wants = |state: &&State| state.state == Stance::Speak && round.about_nothing.contains(&state.from);
        if let Some(state) = closed.states.iter().find(wants) {
            self.broken(format_args!("{} wants to speak about what was taken back: {recorded:?}", state.from));
        }
        let candidates: Vec<_> =
            closed.selected.iter().chain(closed.others.iter().map(|other| &other.companion)).cloned().collect();
        let ranking = self.ranking(&closed.states);
        if candidates != ranking {
            self.broken(format_args!("the floor goes by {candidates:?}, not by {ranking:?}: {recorded:?}"));
        }
        (self.candidates, self.has_failed) = (candidates, false);
        self.selected_at = recorded.handled;
    }

    /// Whoever wants to speak: those called upon first, then by importance, then who spoke longest ago, then by id.
    fn ranking(&self, states: &[State]) -> Vec<CompanionId> {
        let wants = |state: &&State| state.state == Stance::Speak && state.closing != Closing::Terminal;
        let mut wishes: Vec<_> = states.iter().filter(wants).collect();
        let spoke = |state: &State| self.spoke.get(&state.from).copied().unwrap_or(Seq::NONE);
        wishes.sort_by_key(|state| {
            (Reverse(state.selected), Reverse((state.importance * 1_000.0) as u64), spoke(state), state.from.clone())
        });
        wishes.into_iter().map(|state| state.from.clone()).collect()
    }

    pub(super) fn owed(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket, messages: &[Seq]) {
        self.new_ticket(ticket);
        if self.floor.is_some() || self.round.is_some() {
            self.broken(format_args!("the floor is not free: {recorded:?}"));
        }
        let selected_at = match self.alone.take() {
            Some(alone) if alone == *companion => recorded.handled,
            _ => {
                match self.candidates.iter().position(|candidate| candidate == companion) {
                    Some(rank) => {
                        if self.has_failed {
                            self.told.reach("next candidate speaks");
                        }
                        drop(self.candidates.drain(..=rank));
                    }
                    None => self.broken(format_args!("nobody selected {companion}, or it has spoken already: {recorded:?}")),
                }
                self.selected_at
            }
        };
        let Some(seat) = self.seats.get_mut(companion) else {
            return self.broken(format_args!("{companion} is not present: {recorded:?}"));
        };
        let unsettled = std::mem::take(&mut seat.unsettled);
        seat.about.clear();
        if seat.stage == Closing::Terminal || seat.paused {
            self.broken(format_args!("{companion} speaks though it is silent: {recorded:?}"));
        }
        if self.without_skipped(&unsettled) != self.without_skipped(messages) {
            self.broken(format_args!("{companion} answers something else than {unsettled:?}: {recorded:?}"));
        }
        self.floor = Some(Floor { companion: companion.clone(), ticket, selected_at, messages: messages.to_vec() });
    }
}
