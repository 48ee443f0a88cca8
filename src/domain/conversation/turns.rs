//! Which turn an event belongs to: one for the questions that come of one trigger, or of several at once, until silence or a statement.

use super::super::event::Decided;
use super::*;

impl Conversation {
    /// The turn of an event that is about to be made. Questions begin one, unless a round is open or something was decided in the same step.
    pub(super) fn turn_of(&mut self, event: &Event, world: &mut World<'_>) -> Option<TurnId> {
        match event {
            Event::RoundOpened(_) => Some(self.begun.take().unwrap_or_else(|| self.begin(world))),
            Event::Evaluated(_) => match &self.round {
                Some(round) => round.turn,
                None => Some(self.begun.take().unwrap_or_else(|| self.begin(world))),
            },
            Event::Decided(Decided { ticket: None, .. }) => match &self.round {
                Some(round) => round.turn,
                None => {
                    let turn = self.begun.unwrap_or_else(|| self.begin(world));
                    self.begun = Some(turn);
                    Some(turn)
                }
            },
            Event::Decided(Decided { ticket: Some(ticket), .. }) | Event::Unanswered { ticket, .. } => {
                self.asked(*ticket).and_then(|(_, evaluation)| evaluation.turn)
            }
            Event::RoundClosed(_) => self.round.as_ref().and_then(|round| round.turn),
            Event::StageChanged { cause: Cause::State, .. } => self.round.as_ref().and_then(|round| round.turn),
            Event::StageChanged { cause: Cause::MaxTurns | Cause::Repetition, .. }
            | Event::RepetitionAsked { .. }
            | Event::RepetitionJudged { .. } => self.spoken.as_ref().and_then(|spoken| spoken.turn),
            Event::ReplyOwed { companion, .. } => match &self.turn {
                Some(turn) => turn.selection.turn,
                None => self.gates.get(companion).and_then(|gate| gate.wish.as_ref()).and_then(|wish| wish.turn),
            },
            Event::ReplyFailed { .. } => self.floor.as_ref().and_then(|floor| floor.selection.turn),
            // What leads to a turn, or to none.
            Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::StageChanged { cause: Cause::DirectAddress | Cause::ReopenAfter | Cause::NewEpisode, .. } => None,
            Event::Summarised { .. } => None,
            Event::Said { .. }
            | Event::Edited { .. }
            | Event::Deleted { .. }
            | Event::Joined { .. }
            | Event::Left { .. }
            | Event::Paused { .. }
            | Event::Cleared
            | Event::CaughtUp { .. } => None,
        }
    }

    fn begin(&mut self, world: &mut World<'_>) -> TurnId {
        let turn = (world.turn)();
        self.oldest_started.get_or_insert(turn);
        turn
    }

    /// The turns that go on: something is still to come of them.
    pub fn turns(&self) -> impl Iterator<Item = TurnId> {
        let of_round = self.round.as_ref().and_then(|round| round.turn);
        let of_gates = self.gates.values().flat_map(|gate| {
            let asked = gate.evaluation.and_then(|evaluation| evaluation.turn);
            asked.into_iter().chain(gate.wish.as_ref().and_then(|wish| wish.turn))
        });
        let selected = self.turn.as_ref().and_then(|turn| turn.selection.turn);
        let owed = self.floor.as_ref().and_then(|floor| floor.selection.turn);
        of_round.into_iter().chain(of_gates).chain(selected).chain(owed).chain(self.judged_turn())
    }

    /// The turn whose statement is being judged for repetition.
    pub fn judged_turn(&self) -> Option<TurnId> {
        self.spoken.as_ref().filter(|_| self.is_being_judged()).and_then(|spoken| spoken.turn)
    }
}

/// What led to a turn that begins in this step belongs to it: timers that fired, stages that a message took back.
pub(super) fn name_turn_that_begins(turn: TurnId, out: &mut [Output]) {
    for output in out {
        let Output::Made(made) = output else { continue };
        let leads_to_it = matches!(
            made.event,
            Event::LullFired { .. }
                | Event::BackOffEnded { .. }
                | Event::AddressRefused { .. }
                | Event::JitterDrawn { .. }
                | Event::StageChanged { .. }
        );
        if leads_to_it {
            made.turn = made.turn.or(Some(turn));
        }
    }
}
