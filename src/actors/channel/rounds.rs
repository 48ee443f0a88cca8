//! Rounds as the channel holds them: the turn-taking manager's life, and what external companions say.

use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorId, ActorRef, ActorRuntime, RpcReplyPort};

use super::State;
use super::post_commit::{GRACE, PostCommitAction};
use crate::actors::channel::turn_taking_manager::{Arguments, TurnTakingManager};
use crate::actors::messages::turn_taking_manager::{ManagerMessage, VoteError};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::domain::conversation::{Input, Output};
use crate::domain::event::{Event, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::round::{Round, message_id};
use crate::domain::vote::State as Ballot;
use crate::telemetry::operations::{self, ActorFacts};
use crate::telemetry::plain::Plain;

/// A round's manager that dies is replaced so many times. Then the channel holds the rest of the round alone, and watches its deadline.
const MANAGERS_AT_MOST: u32 = 4;

/// The turn-taking manager of a round.
pub(super) struct Managed {
    actor: ActorRef<ManagerMessage>,
    round: Seq,
    /// Which one of this round it is.
    number: u32,
}

/// An external companion that was given the floor.
pub(super) struct Selected {
    companion: CompanionId,
    ticket: Ticket,
    opened: Seq,
    has_spoken: bool,
}

/// Somebody who waits for the number of an external companion's statement.
pub(super) struct Words {
    ticket: Ticket,
    pub(super) reply: RpcReplyPort<Result<Seq, VoteError>>,
}

impl State {
    /// A round is on record: it gets its manager.
    pub(super) fn hold_round(&mut self, round: Seq) {
        if self.manager.as_ref().is_none_or(|manager| manager.round != round) {
            self.appoint_manager(round, 1);
        }
    }

    fn appoint_manager(&mut self, message: Seq, number: u32) {
        let Some(round) = self.conversation.round().filter(|round| round.message == message).cloned() else { return };
        let external = self.conversation.companions().filter(|view| view.gate.external);
        let arguments = Arguments {
            channel_key: self.channel_key.clone(),
            asked: self.round_asked.clone(),
            external: external.map(|view| view.companion.clone()).collect(),
            patience: round.deadline.since(self.channel_clock.now(self.context.clock.now())),
            round,
            channel: self.myself.clone(),
            context: ActorContext::clone(&self.context),
        };
        self.dismiss_manager();
        match ActorRuntime::spawn_linked_instant(None, TurnTakingManager, arguments, self.myself.get_cell()) {
            Ok((actor, _)) => self.manager = Some(Managed { actor, round: message, number }),
            // Answers come straight to the channel then.
            Err(error) => {
                tracing::error!(channel = %Plain(self.channel_key.channel.as_str()), %error, "a turn-taking manager could not be started");
                self.arm();
            }
        }
    }

    /// When the next deadline is due that the channel watches itself. That of a round is its manager's; only a manager that died before it could
    /// watch anything would let it pass.
    pub(super) fn due_at(&self) -> Option<Moment> {
        let manager = self.manager.as_ref();
        let is_managed = |round: &Round| manager.is_some_and(|manager| manager.round == round.message);
        match self.conversation.round() {
            Some(round) if is_managed(round) => {
                self.conversation.wake_at_but_for_round().into_iter().chain([round.deadline + GRACE]).min()
            }
            _ => self.conversation.wake_at(),
        }
    }

    /// The manager of this round waits no longer. It is told to if that is too early by the channel's time.
    pub(super) fn round_due(&mut self, message: Seq) {
        let now = self.channel_clock.now(self.context.clock.now());
        let Some(round) = self.conversation.round().filter(|round| round.message == message) else { return };
        if round.deadline <= now {
            self.step(Input::Woken);
        } else if let Some(manager) = &self.manager {
            // One that is gone is replaced.
            let _ = manager.actor.cast(ManagerMessage::ExtendDeadline(round.deadline.since(now)));
        }
    }

    /// A State is on record: it is published.
    pub(super) fn tell_manager(&self, ballot: Ballot) {
        if let Some(manager) = &self.manager {
            // One that is gone is replaced by one that knows it.
            let _ = manager.actor.cast(ManagerMessage::StateRecorded(Box::new(ballot)));
        }
    }

    /// The round's end is on record: its manager publishes what is left, and goes.
    pub(super) fn end_round(&mut self, closed: RoundClosed) {
        if let Some(manager) = self.manager.take_if(|manager| manager.round == closed.message) {
            let _ = manager.actor.cast(ManagerMessage::RoundClosed(closed.states));
        }
    }

    pub(super) fn dismiss_manager(&mut self) {
        if let Some(manager) = self.manager.take() {
            manager.actor.stop(None);
        }
    }

    /// A manager is gone before its round was over: another goes on, and questions whose answers may have gone with it are asked anew.
    pub(super) fn manager_is_gone(&mut self, gone: ActorId) {
        let Some(manager) = self.manager.take_if(|manager| manager.actor.get_id() == gone) else { return };
        if self.conversation.round().is_none_or(|round| round.message != manager.round) {
            return;
        }
        let facts = ActorFacts {
            sort: Sort::TurnTakingManager.as_str(),
            address: self.channel_key.channel.as_str(),
            ending: "it died in an open round",
            at: self.context.clock.now(),
        };
        operations::restarted(&self.context.recorder, &facts, Duration::ZERO);
        if manager.number < MANAGERS_AT_MOST {
            self.appoint_manager(manager.round, manager.number + 1);
        }
        // Without another one the deadline is the channel's.
        self.arm();
        let Some(round) = self.conversation.round() else { return };
        let questions = self.conversation.open_questions().filter(|(companion, _)| round.awaits(companion));
        for ticket in questions.map(|(_, evaluation)| evaluation.ticket).collect::<Vec<_>>() {
            self.ask_anew(ticket);
        }
    }

    /// An external companion votes. Told that it counts once that is on record.
    pub(super) fn voted(&mut self, ballot: Ballot, reply: RpcReplyPort<Result<(), VoteError>>) {
        let is_external = self.is_external(&ballot.from);
        let objection = match self.conversation.round() {
            _ if self.heard_meanwhile.is_some() => Some(VoteError::Gone),
            Some(round) => VoteError::of_vote(&ballot, round, &self.round_asked, is_external),
            None => Some(VoteError::NoRound),
        };
        if let Some(objection) = objection {
            // Whoever asked may have stopped waiting; as below.
            let _ = reply.send(Err(objection));
            return;
        }
        let from = ballot.from.clone();
        let outputs = self.with_world(|conversation, now, world| conversation.step(now, Input::Voted(ballot), world));
        let counts = outputs.iter().any(|output| is_vote_of(output, &from));
        self.carry_out(outputs);
        match self.owed.back_mut().filter(|_| counts) {
            Some((_, actions)) => actions.push(PostCommitAction::Confirm(reply)),
            // The deadline came first.
            None => drop(reply.send(Err(VoteError::NoRound))),
        }
    }

    /// An external companion says its words, if it has the floor for what they are for.
    pub(super) fn worded(
        &mut self,
        from: &CompanionId,
        given: String,
        text: Arc<str>,
        reply: RpcReplyPort<Result<Seq, VoteError>>,
    ) {
        match self.ticket_for(from, given) {
            Ok(ticket) => {
                self.words = Some(Words { ticket, reply });
                self.step(Input::Written { ticket, text });
                // The deadline came first.
                if let Some(words) = self.words.take() {
                    let _ = words.reply.send(Err(VoteError::TooLate { from: from.clone() }));
                }
            }
            Err(objection) => drop(reply.send(Err(objection))),
        }
    }

    /// The reply that words for this message fulfil.
    fn ticket_for(&self, from: &CompanionId, given: String) -> Result<Ticket, VoteError> {
        let from = from.clone();
        if self.heard_meanwhile.is_some() {
            return Err(VoteError::Gone);
        }
        if !self.is_external(&from) {
            return Err(VoteError::NotExternal { from });
        }
        let is_for = |seq: Seq| message_id(seq) == given;
        if let Some(floor) = self.conversation.floor().filter(|floor| floor.companion == from) {
            return match floor {
                _ if !is_for(floor.selection.opened) && !is_for(floor.upto) && !is_for(self.conversation.handled()) => {
                    Err(VoteError::NotSelected { from, message_id: given })
                }
                floor if floor.is_posting => Err(VoteError::Twice { from }),
                floor => Ok(floor.ticket),
            };
        }
        match &self.selected {
            Some(last) if last.companion == from && is_for(last.opened) && last.has_spoken => Err(VoteError::Twice { from }),
            Some(last) if last.companion == from && is_for(last.opened) => Err(VoteError::TooLate { from }),
            _ => Err(VoteError::NotSelected { from, message_id: given }),
        }
    }

    /// Whoever waits for the number of this statement.
    pub(super) fn awaited_words(&mut self, ticket: Ticket) -> Option<Words> {
        if let Some(selected) = self.selected.as_mut().filter(|selected| selected.ticket == ticket) {
            selected.has_spoken = true;
        }
        self.words.take_if(|words| words.ticket == ticket)
    }

    /// An external companion has the floor: its words come from outside.
    pub(super) fn await_words(&mut self, ticket: Ticket) {
        let Some(floor) = self.conversation.floor().filter(|floor| floor.ticket == ticket) else { return };
        let (companion, opened) = (floor.companion.clone(), floor.selection.opened);
        self.selected = Some(Selected { companion, ticket, opened, has_spoken: floor.is_posting });
    }

    pub(super) fn is_external(&self, companion: &CompanionId) -> bool {
        self.conversation.gate(companion).is_some_and(|gate| gate.external)
    }
}

fn is_vote_of(output: &Output, from: &CompanionId) -> bool {
    let Output::Made(made) = output else { return false };
    let Event::Decided(decided) = &made.event else { return false };
    decided.vote.as_ref().is_some_and(|vote| vote.from == *from)
}

#[cfg(test)]
mod tests;
