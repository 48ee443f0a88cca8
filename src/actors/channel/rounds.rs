//! Hosts the rounds of a channel: starts the turn-taking manager of the open rounds, sends it updates, and stops it.

use std::collections::BTreeSet;
use std::time::Duration;

use ractor::{ActorId, ActorRef};

use super::channel_context::ChannelContext;
use super::questions::GRACE;
use super::turn_taking_manager::{Arguments, TurnTakingManager};
use crate::actors::messages::turn_taking_manager::{ManagerMessage, OpenRound};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::domain::conversation::Conversation;
use crate::domain::event::RoundClosed;
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::domain::round::Round;
use crate::domain::vote::State as Ballot;

/// The maximum number of managers that are started for one round. If the last one dies, the channel runs the rest of the round without a manager, and
/// watches its deadline.
const MAX_MANAGERS: u32 = 4;

#[derive(Default)]
pub(super) struct RoundHost {
    /// The turn-taking manager of the open rounds.
    manager: Option<RoundManager>,
}

struct RoundManager {
    actor: ActorRef<ManagerMessage>,
    /// The rounds that it manages, by their messages.
    rounds: BTreeSet<Seq>,
    /// How many managers, including this one, have been started since no round was open.
    number: u32,
}

/// Whether a manager watches the deadlines of these rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    ByManager,
    /// The manager could not be started, so the channel watches the deadlines.
    ByChannel,
}

impl RoundHost {
    /// Gives a committed round to the manager, unless the manager already has it.
    pub(super) fn manage(&mut self, round: Seq, conversation: &Conversation, now: Moment, channel: &ChannelContext) -> Watched {
        let Some(opened) = open_round(round, conversation, now) else { return Watched::ByManager };
        match &mut self.manager {
            Some(manager) => {
                if manager.rounds.insert(round) {
                    // If the manager has stopped, its replacement gets this round, too.
                    let _ = manager.actor.cast(ManagerMessage::RoundOpened(Box::new(opened)));
                }
                Watched::ByManager
            }
            None => self.start([round].into(), 1, conversation, now, channel),
        }
    }

    fn start(
        &mut self,
        messages: BTreeSet<Seq>,
        number: u32,
        conversation: &Conversation,
        now: Moment,
        channel: &ChannelContext,
    ) -> Watched {
        let external = conversation.companions().filter(|view| view.gate.external);
        let arguments = Arguments {
            channel_key: channel.key.clone(),
            rounds: messages.iter().filter_map(|message| open_round(*message, conversation, now)).collect(),
            external: external.map(|view| view.companion.clone()).collect(),
            channel: channel.actor.clone(),
            context: ActorContext::clone(&channel.context),
        };
        self.stop();
        let actor = channel.start(TurnTakingManager, arguments, "a turn-taking manager could not be started");
        self.manager = actor.map(|actor| RoundManager { actor, rounds: messages, number });
        if self.manager.is_some() { Watched::ByManager } else { Watched::ByChannel }
    }

    /// The next deadline that the channel itself watches. The manager watches the deadlines of its rounds. The channel watches them, too, with a
    /// grace period in case the manager dies before it reports them.
    pub(super) fn next_deadline(&self, conversation: &Conversation) -> Option<Moment> {
        let is_managed = |round: &Round| self.manager.as_ref().is_some_and(|manager| manager.rounds.contains(&round.message));
        let due = |round: &Round| if is_managed(round) { round.deadline + GRACE } else { round.deadline };
        let deadlines = conversation.turns().rounds().iter().map(due);
        deadlines.chain(conversation.wake_at_except_rounds()).min()
    }

    /// Makes the manager wait this much longer, because it reported a deadline too early by the channel's clock.
    pub(super) fn extend_deadline(&self, message: Seq, timeout: Duration) {
        // A manager that has stopped is replaced.
        self.cast(ManagerMessage::ExtendDeadline { message, timeout });
    }

    /// Makes the manager publish a committed State.
    pub(super) fn publish(&self, ballot: Ballot) {
        // A manager that has stopped is replaced by one that knows this State.
        self.cast(ManagerMessage::StateRecorded(Box::new(ballot)));
    }

    fn cast(&self, message: ManagerMessage) {
        if let Some(manager) = &self.manager {
            let _ = manager.actor.cast(message);
        }
    }

    /// Ends a round after the commit of its end. Its manager publishes the remaining States, and stops after the last round.
    pub(super) fn end(&mut self, closed: RoundClosed) {
        let Some(manager) = &mut self.manager else { return };
        if !manager.rounds.remove(&closed.message) {
            return;
        }
        let _ = manager.actor.cast(ManagerMessage::RoundClosed { message: closed.message, states: closed.states });
        self.manager.take_if(|manager| manager.rounds.is_empty());
    }

    /// Stops the manager, if one runs.
    pub(super) fn stop(&mut self) {
        if let Some(manager) = self.manager.take() {
            manager.actor.stop(None);
        }
    }

    /// Handles the stop of an actor. If it was the manager, and its rounds are not over, starts another one. Returns whether the manager had open
    /// rounds.
    pub(super) fn replace_stopped(
        &mut self,
        stopped: ActorId,
        conversation: &Conversation,
        now: Moment,
        channel: &ChannelContext,
    ) -> bool {
        let Some(stopped) = self.manager.take_if(|manager| manager.actor.get_id() == stopped) else { return false };
        let RoundManager { mut rounds, number, .. } = stopped;
        rounds.retain(|message| conversation.turns().round(*message).is_some());
        if rounds.is_empty() {
            return false;
        }
        channel.record_restart(Sort::TurnTakingManager, "it died in an open round");
        if number < MAX_MANAGERS {
            self.start(rounds, number + 1, conversation, now, channel);
        }
        true
    }
}

fn open_round(message: Seq, conversation: &Conversation, now: Moment) -> Option<OpenRound> {
    let round = conversation.turns().round(message)?.clone();
    let timeout = round.deadline.since(now);
    Some(OpenRound { round, timeout })
}

#[cfg(test)]
mod tests;
