//! The turn-taking manager of a channel. It runs while rounds are open. It accepts the votes of external companions, publishes the States, and
//! watches the deadlines (docs/design/turn-taking.md T-18).
//!
//! Its state is journaled or about to be, so a manager that dies is simply replaced. The new one starts with the rounds as the channel knows them.

mod vote_check;

use std::collections::BTreeSet;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use serde_json::{Value, json};

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::turn_taking_manager::{ManagerMessage, OpenRound, VoteError};
use crate::actors::runtime::actor_keys::TurnTakingManagerKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Address, Registration, Sort};
use crate::actors::runtime::hub::Live;
use crate::actors::runtime::owned_task::OwnedTask;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::round::Round;
use crate::domain::vote::State as Ballot;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::stamp::rfc3339;
use crate::telemetry::instruments::kinds::Counted;

pub struct TurnTakingManager;

pub struct Arguments {
    pub channel_key: ChannelKey,
    /// The open rounds, at least one.
    pub rounds: Vec<OpenRound>,
    pub external: BTreeSet<CompanionId>,
    /// The channel, which decides about answers and votes.
    pub channel: ActorRef<ChannelMessage>,
    pub context: ActorContext,
}

pub struct State {
    channel_key: ChannelKey,
    /// The open rounds, oldest first.
    rounds: Vec<Managed>,
    external: BTreeSet<CompanionId>,
    myself: ActorRef<ManagerMessage>,
    channel: ActorRef<ChannelMessage>,
    context: ActorContext,
    _registration: Registration,
    _counted: Counted,
}

struct Managed {
    round: Round,
    /// The companions whose States were published.
    published: BTreeSet<CompanionId>,
    /// Aborted with the manager, because a running timer would keep its memory allocated.
    _timer: OwnedTask,
}

impl Actor for TurnTakingManager {
    type Msg = ManagerMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<ManagerMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { channel_key, rounds, external, channel, context } = arguments;
        let registration = context.directory.register(&TurnTakingManagerKey(channel_key.channel.clone()), &myself);
        let counted = context.recorder.instruments().actors.one([Sort::TurnTakingManager.as_str()]);
        let mut state = State {
            channel_key,
            rounds: Vec::new(),
            external,
            myself,
            channel,
            context,
            _registration: registration,
            _counted: counted,
        };
        rounds.into_iter().for_each(|round| state.open(round));
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<ManagerMessage>,
        message: ManagerMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::TurnTakingManager(state.channel_key.channel.clone()));
        match message {
            ManagerMessage::Vote { state: ballot, reply } => state.submit(ballot, reply),
            ManagerMessage::StateRecorded(ballot) => {
                let is_of = |managed: &Managed| managed.round.message_id() == ballot.message_id;
                if let Some(index) = state.rounds.iter().position(is_of) {
                    state.rounds[index].round.submit((*ballot).clone());
                    state.publish(index, [*ballot]);
                }
            }
            ManagerMessage::RoundOpened(round) => state.open(*round),
            ManagerMessage::RoundClosed { message, states } => {
                if let Some(index) = state.rounds.iter().position(|managed| managed.round.message == message) {
                    state.publish(index, states);
                    state.rounds.remove(index);
                }
                if state.rounds.is_empty() {
                    myself.stop(None);
                }
            }
            ManagerMessage::Due(message) => state.channel.cast(ChannelMessage::RoundDue(message))?,
            ManagerMessage::ExtendDeadline { message, timeout } => {
                if let Some(managed) = state.rounds.iter_mut().find(|managed| managed.round.message == message) {
                    managed._timer = timer(&myself, message, timeout);
                }
            }
        }
        Ok(())
    }
}

/// Reports the deadline of a round.
fn timer(manager: &ActorRef<ManagerMessage>, message: Seq, timeout: Duration) -> OwnedTask {
    manager.send_after(timeout, move || ManagerMessage::Due(message)).into()
}

impl State {
    fn open(&mut self, OpenRound { round, timeout }: OpenRound) {
        // If the manager dies, its timer dies, too. Then another manager is started, or the channel watches the deadline.
        let _timer = timer(&self.myself, round.message, timeout);
        let known: Vec<Ballot> = round.states().cloned().collect();
        self.rounds.push(Managed { round, published: BTreeSet::new(), _timer });
        self.publish(self.rounds.len() - 1, known);
    }

    /// Sends a vote that can count to the channel, which decides and answers the caller.
    fn submit(&self, ballot: Ballot, reply: RpcReplyPort<Result<(), VoteError>>) {
        match VoteError::of_vote(&ballot, self.rounds.iter().map(|managed| &managed.round), self.external.contains(&ballot.from))
        {
            // The caller may have stopped waiting.
            Some(error) => drop(reply.send(Err(error))),
            // A channel that has stopped drops the reply, and the caller gets an error.
            None => drop(self.channel.cast(ChannelMessage::Vote { state: Box::new(ballot), reply })),
        }
    }

    /// Publishes each State once. A replacement publishes the States of its predecessor again.
    fn publish(&mut self, index: usize, ballots: impl IntoIterator<Item = Ballot>) {
        for ballot in ballots {
            if !self.rounds[index].published.insert(ballot.from.clone()) {
                continue;
            }
            if self.context.hub.is_watched(&self.channel_key) {
                self.context.hub.publish(&self.channel_key, Live::Note(self.shown(&ballot).to_string().into()));
            }
        }
    }

    fn shown(&self, ballot: &Ballot) -> Value {
        let mut shown = serde_json::to_value(ballot).unwrap_or_else(|_| json!({}));
        shown["event"] = "state".into();
        shown["at"] = rfc3339(self.context.clock.now()).into();
        shown["channel"] = self.channel_key.channel.as_str().into();
        shown
    }
}
