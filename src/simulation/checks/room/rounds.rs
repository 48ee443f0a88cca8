//! Checks rounds and the floor: who votes, who is selected, who speaks.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Floor, Record, Round};
use crate::domain::closing::Stage as Closing;
use crate::domain::event::{Event, Recorded, RoundClosed, RoundOpened};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::round::message_id;
use crate::domain::trigger::Trigger;
use crate::domain::vote::{Stance, State};

impl Record<'_> {
    pub(super) fn opened(&mut self, recorded: &Recorded, opened: &RoundOpened) {
        if self.round.is_some() || self.floor.is_some() {
            self.violate(format_args!("a round is opened while another is open, or a companion speaks: {recorded:?}"));
        }
        if self.streak >= self.stage.plan.rules.streak {
            self.violate(format_args!("a round is held after {} statements in a row: {recorded:?}", self.streak));
        }
        for state in &opened.listening {
            let current = self.seats.get(&state.from).map(|seat| seat.stage);
            if current != Some(state.closing) {
                self.violate(format_args!("{} is {current:?}, not {}: {recorded:?}", state.from, state.closing));
            }
        }
        let voters = opened.asked.iter().cloned().chain(opened.listening.iter().map(|state| state.from.clone())).collect();
        self.round = Some(Round { message: opened.message, deadline: opened.deadline, voters, about_nothing: BTreeSet::new() });
        if !self.due.is_empty() && self.skipped.is_empty() {
            self.violate(format_args!("{:?} was to speak and does not: {recorded:?}", self.due));
        }
        self.due.clear();
        self.candidates.clear();
        self.alone = None;
    }

    pub(super) fn closed(&mut self, recorded: &Recorded, closed: &RoundClosed) {
        let Some(round) = self.round.take() else {
            return self.violate(format_args!("no round was open: {recorded:?}"));
        };
        self.stage.reach(if recorded.at >= round.deadline {
            "round closed by its deadline"
        } else {
            "round closed by its votes"
        });
        let voted: BTreeSet<_> = closed.states.iter().map(|state| state.from.clone()).collect();
        if closed.message != round.message || voted != round.voters || voted.len() != closed.states.len() {
            self.violate(format_args!("not everybody of {:?} voted once about {}: {recorded:?}", round.voters, round.message));
        }
        if let Some(stray) = closed.states.iter().find(|state| state.message_id != message_id(closed.message)) {
            self.violate(format_args!("a State of another round counts: {stray:?}"));
        }
        let wants = |state: &&State| state.state == Stance::Speak && round.about_nothing.contains(&state.from);
        if let Some(state) = closed.states.iter().find(wants) {
            self.violate(format_args!("{} wants to speak about deleted messages: {recorded:?}", state.from));
        }
        let candidates: Vec<_> =
            closed.selected.iter().chain(closed.others.iter().map(|other| &other.companion)).cloned().collect();
        let ranking = self.ranking(&closed.states);
        if candidates != ranking {
            self.violate(format_args!("the order is {candidates:?}, not {ranking:?}: {recorded:?}"));
        }
        (self.candidates, self.has_failed) = (candidates, false);
        self.selected_at = recorded.handled;
        self.due = closed.selected.iter().cloned().collect();
        self.speak_at = closed.speak_at.map(|at| (at, self.when(recorded.seq)));
        let delays = self.stage.plan.rules.turn_delays;
        let is_delayed = |at: Moment| (delays.least..=delays.most).contains(&at.since(recorded.at).as_secs_f64());
        if closed.speak_at.is_some() != closed.selected.is_some() || !closed.speak_at.is_none_or(is_delayed) {
            self.violate(format_args!("invalid time to speak: {recorded:?}"));
        }
    }

    /// The time to wait for the statement of an external companion.
    fn check_deadline(&self, recorded: &Recorded, companion: &CompanionId, due_at: Option<Moment>) {
        let patience = self.stage.plan.rules.external_patience;
        let is_its = |at: Moment| (patience.least..=patience.most).contains(&at.since(recorded.at).as_secs_f64());
        let is_external = self.seats.get(companion).is_some_and(|seat| seat.is_external);
        if due_at.is_some() != is_external || !due_at.is_none_or(is_its) {
            self.violate(format_args!("invalid deadline for {companion}: {recorded:?}"));
        }
    }

    /// A statement was not made. One more candidate takes over, if the message that it wanted to speak about is unsettled.
    pub(super) fn failed(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket) {
        self.stage.reach("statement failed");
        match self.floor.take_if(|floor| floor.ticket == ticket && floor.companion == *companion) {
            Some(floor) => self.fulfilled(recorded.seq, companion, floor.since),
            None => self.violate(format_args!("nobody owes {ticket}: {recorded:?}")),
        }
        if std::mem::replace(&mut self.has_failed, true) {
            self.candidates.clear();
        }
        let is_able = |candidate: &CompanionId| {
            let seat = self.seats.get(candidate);
            seat.is_some_and(|seat| !seat.is_silent() && !seat.is_unsure && seat.unsettled.contains(&seat.message))
        };
        self.due = if self.candidates.iter().any(is_able) { self.candidates.clone() } else { Vec::new() };
        self.selected_at = recorded.handled;
    }

    /// The companions that want to speak: those called upon first, then by importance, then who spoke longest ago, then by id.
    fn ranking(&self, states: &[State]) -> Vec<CompanionId> {
        let wants = |state: &&State| state.state == Stance::Speak && state.closing != Closing::Terminal;
        let mut wishes: Vec<_> = states.iter().filter(wants).collect();
        let spoke = |state: &State| self.spoke.get(&state.from).copied().unwrap_or(Seq::NONE);
        wishes.sort_by_key(|state| {
            (Reverse(state.selected), Reverse((state.importance * 1_000.0) as u64), spoke(state), state.from.clone())
        });
        wishes.into_iter().map(|state| state.from.clone()).collect()
    }

    pub(super) fn owed(
        &mut self,
        recorded: &Recorded,
        companion: &CompanionId,
        ticket: Ticket,
        messages: &[Seq],
        due_at: Option<Moment>,
    ) {
        self.new_ticket(ticket);
        self.check_deadline(recorded, companion, due_at);
        if self.floor.is_some() || self.round.is_some() {
            self.violate(format_args!("the floor is not free: {recorded:?}"));
        }
        if !self.due.is_empty() && !self.due.contains(companion) {
            self.violate(format_args!("{:?} is to speak: {recorded:?}", self.due));
        }
        self.due.clear();
        self.check_time_to_speak(recorded);
        let selected_at = match self.alone.take() {
            Some(alone) if alone == *companion => recorded.handled,
            _ => {
                match self.candidates.iter().position(|candidate| candidate == companion) {
                    Some(rank) => {
                        if self.has_failed {
                            self.stage.reach("next candidate speaks");
                        }
                        drop(self.candidates.drain(..=rank));
                    }
                    None => self.violate(format_args!("nobody selected {companion}, or it has spoken already: {recorded:?}")),
                }
                self.selected_at
            }
        };
        let since = self.when(recorded.seq);
        let acknowledges = matches!(recorded.event, Event::ReplyOwed { trigger: Trigger::Event, .. });
        let Some(seat) = self.seats.get_mut(companion) else {
            return self.violate(format_args!("{companion} is not present: {recorded:?}"));
        };
        let unsettled = std::mem::take(&mut seat.unsettled);
        seat.about.clear();
        seat.is_unsure = false;
        if seat.stage == Closing::Terminal || seat.paused {
            self.violate(format_args!("{companion} speaks although it is silent: {recorded:?}"));
        }
        if self.without_skipped(&unsettled) != self.without_skipped(messages) {
            self.violate(format_args!("{companion} answers other messages than {unsettled:?}: {recorded:?}"));
        }
        self.floor =
            Some(Floor { companion: companion.clone(), ticket, selected_at, messages: messages.to_vec(), acknowledges, since });
    }
}
