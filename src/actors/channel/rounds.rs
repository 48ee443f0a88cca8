//! The channel's part in rounds: it starts and stops the turn-taking manager, and accepts the votes and statements of external companions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorId, ActorRef, ActorRuntime, RpcReplyPort};

use super::State;
use super::post_commit::{GRACE, PostCommitAction};
use crate::actors::channel::turn_taking_manager::{Arguments, TurnTakingManager};
use crate::actors::messages::turn_taking_manager::{ManagerMessage, OpenRound, VoteError};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::actors::runtime::planted::{Bug, is_planted};
use crate::domain::conversation::{Input, Output};
use crate::domain::event::{Event, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::round::{Round, message_id};
use crate::domain::vote::State as Ballot;
use crate::telemetry::plain::Plain;

/// The most managers that are started for one round. If the last one dies, the channel runs the rest of the round alone and watches its deadline.
const MAX_MANAGERS: u32 = 4;

/// The turn-taking manager of the open rounds.
pub(super) struct RoundManager {
    actor: ActorRef<ManagerMessage>,
    /// The rounds that it manages, by their messages.
    rounds: BTreeSet<Seq>,
    /// Counts the managers since a round was opened while none was open, from 1.
    number: u32,
}

/// An external companion that holds the floor, or held it last.
pub(super) struct Selected {
    companion: CompanionId,
    ticket: Ticket,
    opened: Seq,
    has_spoken: bool,
}

/// A caller that waits for the number of an external companion's statement.
pub(super) struct StatementWaiter {
    ticket: Ticket,
    pub(super) reply: RpcReplyPort<Result<Seq, VoteError>>,
}

impl State {
    /// Starts a manager for a round that is on record, unless it has one.
    pub(super) fn manage_round(&mut self, round: Seq) {
        let Some(opened) = self.open_round(round) else { return };
        match &mut self.manager {
            Some(manager) => {
                if manager.rounds.insert(round) {
                    // A manager that has stopped is replaced by one that gets this round, too.
                    let _ = manager.actor.cast(ManagerMessage::RoundOpened(Box::new(opened)));
                }
            }
            None => self.start_manager([round].into(), 1),
        }
    }

    fn open_round(&mut self, message: Seq) -> Option<OpenRound> {
        let now = self.channel_clock.now(self.context.clock.now());
        let round = self.conversation.round(message)?.clone();
        let timeout = round.deadline.since(now);
        Some(OpenRound { round, timeout })
    }

    fn start_manager(&mut self, messages: BTreeSet<Seq>, number: u32) {
        let rounds: Vec<_> = messages.iter().filter_map(|message| self.open_round(*message)).collect();
        if rounds.is_empty() {
            return;
        }
        let external = self.conversation.companions().filter(|view| view.gate.external);
        let arguments = Arguments {
            channel_key: self.channel_key.clone(),
            rounds,
            external: external.map(|view| view.companion.clone()).collect(),
            channel: self.myself.clone(),
            context: ActorContext::clone(&self.context),
        };
        self.stop_manager();
        match ActorRuntime::spawn_linked_instant(None, TurnTakingManager, arguments, self.myself.get_cell()) {
            Ok((actor, _)) => self.manager = Some(RoundManager { actor, rounds: messages, number }),
            // Then the companions send their answers directly to the channel.
            Err(error) => {
                tracing::error!(channel = %Plain(self.channel_key.channel.as_str()), %error, "a turn-taking manager could not be started");
                self.arm();
            }
        }
    }

    /// The next deadline that the channel itself watches. The manager watches the deadlines of its rounds. The channel watches them too, a little
    /// later, in case the manager died before it could.
    pub(super) fn due_at(&self) -> Option<Moment> {
        let is_managed = |round: &Round| self.manager.as_ref().is_some_and(|manager| manager.rounds.contains(&round.message));
        let rounds = self.conversation.rounds().iter();
        let deadlines = rounds.map(|round| if is_managed(round) { round.deadline + GRACE } else { round.deadline });
        deadlines.chain(self.conversation.wake_at_except_rounds()).min()
    }

    /// The manager reports that the deadline of this round has passed. If it has not by the channel's clock, the manager must wait longer.
    pub(super) fn round_due(&mut self, message: Seq) {
        let now = self.channel_clock.now(self.context.clock.now());
        let Some(round) = self.conversation.round(message) else { return };
        if round.deadline <= now {
            self.step(Input::Woken);
        } else if let Some(manager) = &self.manager {
            // A manager that has stopped is replaced.
            let _ = manager.actor.cast(ManagerMessage::ExtendDeadline { message, timeout: round.deadline.since(now) });
        }
    }

    /// Has the manager publish a State that is on record.
    pub(super) fn publish_vote(&self, ballot: Ballot) {
        if let Some(manager) = &self.manager {
            // A manager that has stopped is replaced by one that knows this State.
            let _ = manager.actor.cast(ManagerMessage::StateRecorded(Box::new(ballot)));
        }
    }

    /// The end of the round is on record. Its manager publishes the remaining States, and stops after the last round.
    pub(super) fn end_round(&mut self, closed: RoundClosed) {
        let Some(manager) = &mut self.manager else { return };
        if !manager.rounds.remove(&closed.message) {
            return;
        }
        if is_planted(Bug::ManagerStays) {
            let publish = |state| drop(manager.actor.cast(ManagerMessage::StateRecorded(Box::new(state))));
            closed.states.into_iter().for_each(publish);
        } else {
            let _ = manager.actor.cast(ManagerMessage::RoundClosed { message: closed.message, states: closed.states });
        }
        self.manager.take_if(|manager| manager.rounds.is_empty());
    }

    pub(super) fn stop_manager(&mut self) {
        if let Some(manager) = self.manager.take() {
            manager.actor.stop(None);
        }
    }

    /// If a manager stopped before its rounds were over, starts another one, and asks those questions again whose answers may be lost.
    pub(super) fn manager_stopped(&mut self, stopped: ActorId) {
        let Some(manager) = self.manager.take_if(|manager| manager.actor.get_id() == stopped) else { return };
        let mut rounds = manager.rounds;
        rounds.retain(|message| self.conversation.round(*message).is_some());
        if rounds.is_empty() {
            return;
        }
        let address = self.channel_key.channel.as_str();
        self.context.restarted(Sort::TurnTakingManager, address, "it died in an open round", Duration::ZERO);
        if manager.number < MAX_MANAGERS {
            self.start_manager(rounds.clone(), manager.number + 1);
        }
        // Without another manager the channel watches the deadlines.
        self.arm();
        let rounds: Vec<_> = rounds.into_iter().filter_map(|message| self.conversation.round(message)).collect();
        let is_awaited = |companion| rounds.iter().any(|round| round.awaits(companion));
        let questions = self.conversation.open_questions().filter(|(companion, _)| is_awaited(companion));
        for ticket in questions.map(|(_, evaluation)| evaluation.ticket).collect::<Vec<_>>() {
            self.cancel_and_ask_again(ticket);
        }
    }

    /// Handles the vote of an external companion. The vote is confirmed once it is on record.
    pub(super) fn external_vote(&mut self, ballot: Ballot, reply: RpcReplyPort<Result<(), VoteError>>) {
        let is_external = self.is_external(&ballot.from);
        let error = match self.received_while_restoring {
            Some(_) => Some(VoteError::Gone),
            None => VoteError::of_vote(&ballot, self.conversation.rounds().iter(), is_external),
        };
        if let Some(error) = error {
            // The caller may have stopped waiting, here and below.
            let _ = reply.send(Err(error));
            return;
        }
        let from = ballot.from.clone();
        let outputs = self.with_world(|conversation, now, world| conversation.step(now, Input::Voted(ballot), world));
        let counts = outputs.iter().any(|output| contains_vote_of(output, &from));
        self.carry_out(outputs);
        match self.post_commit_actions.back_mut().filter(|_| counts) {
            Some((_, actions)) => actions.push(PostCommitAction::Confirm(reply)),
            // The deadline had passed.
            None => drop(reply.send(Err(VoteError::NoRound))),
        }
    }

    /// Somebody pressed Stop. It is confirmed once it is on record. A spoken reply stops in the voice call, and its end is on record later.
    pub(super) fn stop_reply(&mut self, companion: CompanionId, reply: RpcReplyPort<Result<(), VoteError>>) {
        if self.received_while_restoring.is_some() || self.conversation.stoppable_reply(&companion).is_none() {
            let is_restoring = self.received_while_restoring.is_some();
            let error = if is_restoring { VoteError::Gone } else { VoteError::NotWriting { companion } };
            // The caller may have stopped waiting, here and below.
            return drop(reply.send(Err(error)));
        }
        let stop = Input::StopPressed { companion };
        let outputs = self.with_world(|conversation, now, world| conversation.step(now, stop, world));
        let is_on_record = outputs.iter().any(|output| matches!(output, Output::Made(_)));
        self.carry_out(outputs);
        match self.post_commit_actions.back_mut().filter(|_| is_on_record) {
            Some((_, actions)) => actions.push(PostCommitAction::Confirm(reply)),
            None => drop(reply.send(Ok(()))),
        }
    }

    /// Handles the statement of an external companion, if it holds the floor for the message that the statement answers.
    pub(super) fn external_statement(
        &mut self,
        from: &CompanionId,
        answered_id: String,
        text: Arc<str>,
        reply: RpcReplyPort<Result<Seq, VoteError>>,
    ) {
        match self.ticket_for(from, answered_id) {
            Ok(ticket) => {
                self.waiter = Some(StatementWaiter { ticket, reply });
                self.step(Input::Written { ticket, text });
                // The deadline had passed.
                if let Some(waiter) = self.waiter.take() {
                    let _ = waiter.reply.send(Err(VoteError::TooLate { from: from.clone() }));
                }
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// The ticket of the reply that a statement for this message fulfils.
    fn ticket_for(&self, from: &CompanionId, answered_id: String) -> Result<Ticket, VoteError> {
        let from = from.clone();
        if self.received_while_restoring.is_some() {
            return Err(VoteError::Gone);
        }
        if !self.is_external(&from) {
            return Err(VoteError::NotExternal { from });
        }
        let is_for = |seq: Seq| message_id(seq) == answered_id;
        if let Some(floor) = self.conversation.floor().filter(|floor| floor.companion == from) {
            return match floor {
                _ if !is_for(floor.selection.opened) && !is_for(floor.upto) && !is_for(self.conversation.handled()) => {
                    Err(VoteError::NotSelected { from, message_id: answered_id })
                }
                floor if floor.is_posting => Err(VoteError::Twice { from }),
                floor => Ok(floor.ticket),
            };
        }
        match &self.selected {
            Some(last) if last.companion == from && is_for(last.opened) && last.has_spoken => Err(VoteError::Twice { from }),
            Some(last) if last.companion == from && is_for(last.opened) => Err(VoteError::TooLate { from }),
            _ => Err(VoteError::NotSelected { from, message_id: answered_id }),
        }
    }

    /// Takes the caller that waits for the number of this statement.
    pub(super) fn take_waiter(&mut self, ticket: Ticket) -> Option<StatementWaiter> {
        if let Some(selected) = self.selected.as_mut().filter(|selected| selected.ticket == ticket) {
            selected.has_spoken = true;
        }
        self.waiter.take_if(|waiter| waiter.ticket == ticket)
    }

    /// Notes that an external companion holds the floor. Its statement comes from outside.
    pub(super) fn await_external_statement(&mut self, ticket: Ticket) {
        let Some(floor) = self.conversation.floor().filter(|floor| floor.ticket == ticket) else { return };
        let (companion, opened) = (floor.companion.clone(), floor.selection.opened);
        self.selected = Some(Selected { companion, ticket, opened, has_spoken: floor.is_posting });
    }

    pub(super) fn is_external(&self, companion: &CompanionId) -> bool {
        self.conversation.gate(companion).is_some_and(|gate| gate.external)
    }
}

fn contains_vote_of(output: &Output, from: &CompanionId) -> bool {
    let Output::Made(made) = output else { return false };
    let Event::Decided(decided) = &made.event else { return false };
    decided.vote.as_ref().is_some_and(|vote| vote.from == *from)
}

#[cfg(test)]
mod tests;
