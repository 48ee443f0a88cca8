//! Decides which turn an event belongs to. The questions of one trigger, or of several at once, are one turn. It ends with silence or a statement.

use super::super::event::{Decided, Group};
use super::super::round::Round;
use super::*;

impl Conversation {
    /// The turns in progress.
    pub fn turn_ids(&self) -> impl Iterator<Item = TurnId> {
        let gate_turns = self.gates.values().flat_map(|gate| {
            let asked = gate.evaluation.and_then(|evaluation| evaluation.turn);
            asked.into_iter().chain(gate.wish.as_ref().and_then(|wish| wish.turn))
        });
        gate_turns.chain(self.turns.ids())
    }
}

impl Step<'_, '_> {
    /// The turn of an event that is about to be journaled. A question begins a turn, unless a round awaits its companion or the same step made a
    /// decision without a question.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events have none, or one by their group")]
    pub(super) fn turn_of(&mut self, event: &Event) -> Option<TurnId> {
        let turns = &self.state.turns;
        let wished = |companion: &CompanionId| self.state.gates.get(companion)?.wish.as_ref()?.turn;
        let of_selected = || turns.selected().map(|selected| selected.selection.turn);
        let of_posted = || turns.posted.as_ref().and_then(|posted| posted.turn);
        match event {
            Event::Evaluated(evaluated) => match turns.round_awaiting(&evaluated.companion) {
                Some(round) => round.turn,
                None => Some(self.next_turn()),
            },
            // An event that must be acknowledged has a turn of its own, even while a round is open.
            Event::RoundOpened(_) | Event::Decided(Decided { reason: Reason::Event, .. }) => Some(self.next_turn()),
            Event::Decided(Decided { ticket: None, reason: Reason::LoopGuard | Reason::Budget, companions, .. })
                if companions.iter().any(|companion| turns.is_held(companion)) =>
            {
                companions.iter().find_map(wished)
            }
            Event::Decided(Decided { ticket: None, .. }) => match turns.rounds.last() {
                Some(round) if self.turn_without_question.is_none() => round.turn,
                _ => {
                    self.turn_without_question = Some(self.next_turn());
                    self.turn_without_question
                }
            },
            Event::Decided(Decided { ticket: Some(ticket), .. }) | Event::Unanswered { ticket, .. } => {
                self.state.gates.question(*ticket).and_then(|(_, evaluation)| evaluation.turn)
            }
            Event::RoundClosed(closed) => turns.round(closed.message).and_then(|round| round.turn),
            Event::HeldSelected { selected, .. } => wished(selected),
            // The change is due to a State in a round, to the State of a single companion, or to the posting of an announced farewell.
            Event::StageChanged { companion, cause: Cause::State, .. } => {
                let is_of = |round: &&Round| round.states().any(|state| state.from == *companion);
                match turns.rounds.iter().rev().find(is_of) {
                    Some(round) => round.turn,
                    None => self.answered_turn.or_else(of_posted),
                }
            }
            Event::StageChanged { cause: Cause::MaxTurns, to: Stage::Closing, .. } => turns.floor()?.selection.turn,
            Event::StageChanged { cause: Cause::MaxTurns | Cause::Repetition, .. }
            | Event::RepetitionAsked { .. }
            | Event::RepetitionJudged { .. } => of_posted(),
            Event::ReplyOwed { again: Some(_), .. } | Event::ReplyOwed { trigger: Trigger::Chosen, .. } => Some(self.begin()),
            Event::ReplyOwed { companion, .. } => of_selected().unwrap_or_else(|| wished(companion)),
            Event::Cancelled { ticket: None, .. } => of_selected().flatten(),
            Event::ToolCalled(called) => turns.owed_reply(called.ticket)?.selection.turn,
            Event::ToolConfirmed(confirmed) => self.state.call(confirmed.call)?.turn,
            Event::ToolAnswered(answered) => self.state.call(answered.call)?.turn,
            _ if event.group() == Group::Reply => turns.owed_reply(event.reply()?)?.selection.turn,
            // Events that led to a turn get it later, by `assign_first_turn`.
            _ => None,
        }
    }

    /// The turn that began in this step and has no question yet, or a new one.
    fn next_turn(&mut self) -> TurnId {
        self.turn_without_question.take().unwrap_or_else(|| self.begin())
    }

    fn begin(&mut self) -> TurnId {
        let turn = (self.world.turn)();
        self.oldest_started.get_or_insert(turn);
        turn
    }
}

/// Assigns the first turn of this step to the events that led to it: timers that fired, and stages that a message changed.
pub(super) fn assign_first_turn(turn: TurnId, out: &mut [Output]) {
    for output in out {
        let Output::Made(made) = output else { continue };
        let leads_to_it = made.event.group() == Group::Occasion || matches!(made.event, Event::StageChanged { .. });
        if leads_to_it {
            made.turn = made.turn.or(Some(turn));
        }
    }
}
