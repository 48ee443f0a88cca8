//! Decides which turn an event belongs to. The questions of one trigger, or of several at once, are one turn, until silence or a statement.

use super::super::event::Decided;
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
    /// The turn of an event that is about to be journaled. Questions begin a turn, unless a round is open or something was decided in the same step.
    pub(super) fn turn_of(&mut self, event: &Event) -> Option<TurnId> {
        match event {
            Event::RoundOpened(_) => Some(self.turn_without_question.take().unwrap_or_else(|| self.begin())),
            Event::Evaluated(evaluated) => match self.state.turns.round_awaiting(&evaluated.companion) {
                Some(round) => round.turn,
                None => Some(self.turn_without_question.take().unwrap_or_else(|| self.begin())),
            },
            Event::Decided(Decided { ticket: None, reason: Reason::LoopGuard | Reason::Budget, companions, .. })
                if companions.iter().any(|companion| self.state.turns.held.contains_key(companion)) =>
            {
                let gates = companions.iter().filter_map(|companion| self.state.gates.get(companion));
                gates.filter_map(|gate| gate.wish.as_ref()).find_map(|wish| wish.turn)
            }
            // Its turn is its own, also while a round is open.
            Event::Decided(Decided { reason: Reason::Event, .. }) => {
                Some(self.turn_without_question.take().unwrap_or_else(|| self.begin()))
            }
            Event::Decided(Decided { ticket: None, .. }) => {
                match self.state.turns.rounds.last().filter(|_| self.turn_without_question.is_none()) {
                    Some(round) => round.turn,
                    None => {
                        let turn = self.turn_without_question.unwrap_or_else(|| self.begin());
                        self.turn_without_question = Some(turn);
                        Some(turn)
                    }
                }
            }
            Event::Decided(Decided { ticket: Some(ticket), .. }) | Event::Unanswered { ticket, .. } => {
                self.state.gates.question(*ticket).and_then(|(_, evaluation)| evaluation.turn)
            }
            Event::RoundClosed(closed) => self.state.turns.round(closed.message).and_then(|round| round.turn),
            Event::HeldSelected { selected, .. } => {
                self.state.gates.get(selected).and_then(|gate| gate.wish.as_ref()).and_then(|wish| wish.turn)
            }
            // A State in a round, or of a companion that is alone; or the farewell that it announced was posted.
            Event::StageChanged { companion, cause: Cause::State, .. } => {
                let is_of = |round: &&Round| round.states().any(|state| state.from == *companion);
                match self.state.turns.rounds.iter().rev().find(is_of) {
                    Some(round) => round.turn,
                    None => self.answered_turn.or(self.state.turns.posted.as_ref().and_then(|spoken| spoken.turn)),
                }
            }
            Event::StageChanged { cause: Cause::MaxTurns, to: Stage::Closing, .. } => {
                self.state.turns.floor.as_ref().and_then(|floor| floor.selection.turn)
            }
            Event::StageChanged { cause: Cause::MaxTurns | Cause::Repetition, .. }
            | Event::RepetitionAsked { .. }
            | Event::RepetitionJudged { .. } => self.state.turns.posted.as_ref().and_then(|spoken| spoken.turn),
            // They may lead to a turn. If they do, `assign_first_turn` sets it later.
            Event::StageChanged { .. }
            | Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::VoiceQuiet { .. }
            | Event::SilenceFired { .. }
            | Event::EventsReleased
            | Event::BackOffEnded { .. }
            | Event::AddressRefused { .. } => None,
            Event::EventsDeferred { .. } | Event::DeadlinesExtended { .. } | Event::Filtered(_) | Event::Summarised { .. } => {
                None
            }
            // Inbound events.
            Event::Said { .. }
            | Event::Edited { .. }
            | Event::Deleted { .. }
            | Event::Joined { .. }
            | Event::Left { .. }
            | Event::Paused { .. }
            | Event::Cleared
            | Event::CaughtUp { .. }
            | Event::VoiceJoined { .. }
            | Event::VoiceLeft { .. }
            | Event::Segment(_) => None,
            Event::ReplyOwed { again: Some(_), .. } => Some(self.begin()),
            Event::ReplyOwed { companion, .. } => match &self.state.turns.selected {
                Some(turn) => turn.selection.turn,
                None => self.state.gates.get(companion).and_then(|gate| gate.wish.as_ref()).and_then(|wish| wish.turn),
            },
            Event::Cancelled { ticket: None, .. } => self.state.turns.selected.as_ref().and_then(|turn| turn.selection.turn),
            Event::Cancelled { .. }
            | Event::Replanning { .. }
            | Event::Replanned { .. }
            | Event::ReplyExtended { .. }
            | Event::SentenceStarting { .. }
            | Event::SentencePlayed { .. }
            | Event::Interrupted { .. }
            | Event::FloorExpired { .. }
            | Event::FloorTaken { .. }
            | Event::ReplyFailed { .. } => {
                event.reply().and_then(|ticket| self.state.turns.owed_reply(ticket)).and_then(|floor| floor.selection.turn)
            }
        }
    }

    fn begin(&mut self) -> TurnId {
        let turn = (self.world.turn)();
        self.oldest_started.get_or_insert(turn);
        turn
    }
}

/// Assigns the first turn of this step to the events that led to it: timers that fired, stages that a message changed.
pub(super) fn assign_first_turn(turn: TurnId, out: &mut [Output]) {
    for output in out {
        let Output::Made(made) = output else { continue };
        let leads_to_it = matches!(
            made.event,
            Event::LullFired { .. }
                | Event::SilenceFired { .. }
                | Event::VoiceQuiet { .. }
                | Event::EventsReleased
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
