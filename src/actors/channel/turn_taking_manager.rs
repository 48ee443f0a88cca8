//! The turn-taking manager of a channel: lives while a round is open, reads the votes, publishes the States, and alone
//! watches the deadline (docs/design/turn-taking.md T-18).
//!
//! What it knows is on record or on its way there, so one that dies is simply replaced: the new one begins with the round as the channel
//! knows it, and whatever was lost with the old one is asked for again.

mod objection;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use serde_json::{Value, json};

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::models::Outcome;
use crate::actors::messages::turn_taking_manager::{ManagerMessage, VoteError};
use crate::actors::runtime::actor_keys::TurnTakingManagerKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Address, Registration, Sort};
use crate::actors::runtime::hub::Live;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::round::Round;
use crate::domain::vote::{self, State as Ballot};
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::language_model::LazyRequest;
use crate::telemetry::instruments::kinds::Counted;

/// The actor.
pub struct TurnTakingManager;

/// Which round it holds, and for whom.
pub struct Arguments {
    /// Where.
    pub channel_key: ChannelKey,
    /// The round as far as it has come.
    pub round: Round,
    /// Who was asked when it was opened.
    pub asked: Vec<CompanionId>,
    /// Those present that programs outside play.
    pub external: BTreeSet<CompanionId>,
    /// How long States that are missing are still waited for.
    pub patience: Duration,
    /// Who decides.
    pub channel: ActorRef<ChannelMessage>,
    /// What it works with.
    pub context: ActorContext,
}

/// What it keeps: what is on record of the round, and whose State was published.
pub struct State {
    channel_key: ChannelKey,
    round: Round,
    asked: Vec<CompanionId>,
    external: BTreeSet<CompanionId>,
    published: BTreeSet<CompanionId>,
    channel: ActorRef<ChannelMessage>,
    context: ActorContext,
    _registration: Registration,
    _counted: Counted,
}

impl Actor for TurnTakingManager {
    type Msg = ManagerMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<ManagerMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { channel_key, round, asked, external, patience, channel, context } = arguments;
        let registration = context.directory.register(&TurnTakingManagerKey(channel_key.channel.clone()), &myself);
        // It dies with its timer: another takes its place, or the channel watches the deadline.
        myself.send_after(patience, || ManagerMessage::Due);
        let known: Vec<Ballot> = round.states().cloned().collect();
        let counted = context.recorder.instruments().actors.one([Sort::TurnTakingManager.as_str()]);
        let mut state = State {
            published: BTreeSet::new(),
            channel_key,
            round,
            asked,
            external,
            channel,
            context,
            _registration: registration,
            _counted: counted,
        };
        state.publish(known);
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
            ManagerMessage::Answered { ticket, asked, outcome } => state.answered(ticket, asked, outcome)?,
            ManagerMessage::Submit { state: ballot, reply } => state.submit(ballot, reply),
            ManagerMessage::StateRecorded(ballot) => {
                state.round.submit((*ballot).clone());
                state.publish([*ballot]);
            }
            ManagerMessage::RoundClosed(ballots) => {
                state.publish(ballots);
                myself.stop(None);
            }
            ManagerMessage::Due => state.channel.cast(ChannelMessage::RoundDue(state.round.message))?,
            ManagerMessage::ExtendDeadline(patience) => drop(myself.send_after(patience, || ManagerMessage::Due)),
        }
        Ok(())
    }
}

impl State {
    /// What the answer says goes to the channel, which decides by it.
    fn answered(&self, ticket: Ticket, asked: Arc<LazyRequest>, outcome: Box<Outcome>) -> Result<(), ActorProcessingErr> {
        let vote = outcome.result.as_ref().ok().map(|answer| Box::new(vote::read(&answer.text())));
        self.channel.cast(ChannelMessage::Answered { ticket, asked, outcome, vote })?;
        Ok(())
    }

    /// What can count goes to the channel, which decides by it and answers.
    fn submit(&self, ballot: Ballot, reply: RpcReplyPort<Result<(), VoteError>>) {
        match VoteError::of_vote(&ballot, &self.round, &self.asked, self.external.contains(&ballot.from)) {
            // Whoever asked may have stopped waiting.
            Some(objection) => drop(reply.send(Err(objection))),
            // A channel that is gone drops the reply, which says so.
            None => drop(self.channel.cast(ChannelMessage::Voted { state: Box::new(ballot), reply })),
        }
    }

    /// Publishes each State once; a manager that takes another's place publishes again what was known before it.
    fn publish(&mut self, ballots: impl IntoIterator<Item = Ballot>) {
        for ballot in ballots {
            if !self.published.insert(ballot.from.clone()) {
                continue;
            }
            if self.context.hub.is_watched(&self.channel_key) {
                self.context.hub.publish(&self.channel_key, Live::Note(self.shown(&ballot).to_string().into()));
            }
            self.context.hub.publish_state(&self.channel_key, ballot);
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
