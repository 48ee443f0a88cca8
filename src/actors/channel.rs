//! A channel: runs its conversation, journals the decisions, and carries them out once they are committed.
//!
//! Every decision is on record before the channel acts on it. The state of this actor can be rebuilt from the store, so a channel that
//! fails is simply restarted.

mod cancellation;
mod clock;
mod deliveries;
pub mod delivery;
mod dry_run;
pub mod folded;
mod interjection_policies;
mod judging;
mod notes;
mod post_commit;
mod question_timeouts;
mod questions;
mod restore;
mod rounds;
mod spending;
mod steps;
mod summarising;
mod traces;
pub mod turn_taking_manager;
mod voice;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::OnceCell;

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::models::CallId;
use crate::actors::messages::writer::{Committed, WriteError};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Address, Registration, Sort};
use crate::actors::runtime::in_flight::InFlight;
use crate::actors::runtime::supervision::child::DependencyLost;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::budget::{Budget, Ledger};
use crate::domain::conversation::{Conversation, Notice};
use crate::domain::event::Recorded;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::{OutboxRecord, Used};
use crate::ports::voice_call::CallEffect;
use crate::telemetry::instruments::kinds::Counted;
use clock::ChannelClock;
use deliveries::RunningDelivery;
use interjection_policies::{InterjectionPolicies, SharedPolicies};
use notes::Shown;
use post_commit::PostCommitAction;
use question_timeouts::QuestionTimeouts;
use rounds::{RoundManager, Selected, StatementWaiter};
use traces::Traces;

/// A channel at rest goes to sleep after this time without an inbound event.
const SLEEP_AFTER: Duration = Duration::from_secs(300);
/// How often a question is handed to its companion in all, when the companion loses it. The attempts take two seconds.
const MAX_ASK_ATTEMPTS: u32 = 43;
/// How many deaths of its actor make a reply fail.
const MAX_REPLY_ATTEMPTS: u32 = 3;

pub struct Channel;

#[derive(Clone)]
pub struct Arguments {
    pub channel_key: ChannelKey,
    pub context: Arc<ActorContext>,
    pub budgets: Arc<GuildBudgets>,
    /// Marks the event in flight, so that a message that kills the channel is found.
    pub in_flight: Arc<InFlight>,
}

/// A guild's usage and interjection policies, shared by its channels.
#[derive(Debug, Default)]
pub struct GuildBudgets {
    /// The usage that counts against the budgets.
    pub ledger: std::sync::Mutex<Ledger>,
    /// Set once the usage from before the start is in the ledger.
    pub is_loaded: OnceCell<()>,
    /// When each used-up budget of the guild last silenced a companion.
    pub last_refused: std::sync::Mutex<BTreeMap<Budget, Moment>>,
    /// The policies are mostly the same in all channels of a guild.
    policies: SharedPolicies,
}

impl GuildBudgets {
    /// Locks the ledger. The guard must not be held across an await.
    pub fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The journal has events that were never dispatched to this channel, because the writer died before it dispatched them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {found} was dispatched after event {known}; the events in between were not dispatched")]
struct MissedEvents {
    known: Seq,
    found: Seq,
}

pub struct State {
    channel_key: ChannelKey,
    context: Arc<ActorContext>,
    budgets: Arc<GuildBudgets>,
    in_flight: Arc<InFlight>,
    myself: ActorRef<ChannelMessage>,
    registration: Option<Registration>,
    conversation: Conversation,
    /// What arrived while the record was being read. `None` once the channel is restored.
    received_while_restoring: Option<Vec<Received>>,
    /// Events below this number have expired. They are dropped from memory once the channel is restored.
    expired_below: Seq,
    /// The actions to run once a batch is committed, by batch, oldest first.
    post_commit_actions: VecDeque<(u64, Vec<PostCommitAction>)>,
    batches: u64,
    is_pending: bool,
    /// The newest event that this channel knows. Events are dispatched in the order of their numbers.
    newest: Seq,
    /// Once restored, check for events that were committed and never dispatched.
    must_check_for_missed: bool,
    since_snapshot: u32,
    last_received: tokio::time::Instant,
    /// The interjection policies of this channel, with the edition of the memberships that they were read from.
    policies: (u64, Arc<InterjectionPolicies>),
    /// The language of this channel, of the same edition.
    language: Option<Arc<str>>,
    channel_clock: ChannelClock,
    alarm: Option<Alarm>,
    /// When the channel next checks whether it can sleep. `None` until it is restored.
    sleep_at: Option<Moment>,
    /// Judgements that are queued in the pool.
    judgement_calls: HashMap<Ticket, CallId>,
    /// Questions in flight, with the companions that they were handed to.
    asked_companions: HashMap<Ticket, CompanionId>,
    attempts: HashMap<Ticket, u32>,
    question_timeouts: QuestionTimeouts,
    replies: HashMap<ActorId, (Ticket, ractor::ActorCell)>,
    deliveries: HashMap<ActorId, RunningDelivery>,
    /// Held by a delivery while it runs, so that a channel's statements are posted one after the other.
    delivery_lock: Arc<tokio::sync::Mutex<()>>,
    /// The statement whose delivery a restart interrupted.
    interrupted_delivery: Option<Box<(Ticket, OutboxRecord)>>,
    /// The turn-taking manager of the open rounds.
    manager: Option<RoundManager>,
    /// The external companion that had the floor last.
    selected: Option<Selected>,
    /// The external companion that waits for its statement to be accepted.
    waiter: Option<StatementWaiter>,
    traces: Traces,
    /// Usage that is not on record yet. The next batch records it.
    unrecorded_usage: Vec<Used>,
    /// What a spoken reply may do once the next batch is committed.
    calls_after_commit: Vec<CallEffect>,
    shown: Shown,
    /// When the channel began to read its record.
    restore_started: tokio::time::Instant,
    _counted: Counted,
}

/// The error that restarts the channel after a lost write. Only a record that can never be written counts as the channel's own failure.
fn restart_error(lost: WriteError) -> ActorProcessingErr {
    match lost {
        WriteError::Unfit(_) => lost.into(),
        WriteError::Unknown | WriteError::Unavailable(_) | WriteError::Unreadable(_) | WriteError::Deleted => {
            DependencyLost(lost.to_string()).into()
        }
    }
}

/// Something that was dispatched to the channel, with the time when it was committed.
enum Received {
    Event(Box<Recorded>, Moment),
    HandOver(Vec<Recorded>, Moment),
    /// It is not on record.
    Voice(Notice),
    /// It is not on record, but the back-offs that it ends are.
    ModelsReplaced,
}

struct Alarm {
    rings_at: tokio::time::Instant,
    task: tokio::task::AbortHandle,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Actor for Channel {
    type Msg = ChannelMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<ChannelMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { channel_key, context, budgets, in_flight } = arguments;
        // Registered before the record is read, so that events accepted after the read are dispatched here.
        let registration = context.directory.register(&ChannelActorKey(channel_key.channel.clone()), &myself);
        restore::begin(channel_key.clone(), context.clone(), budgets.clone(), myself.clone());
        let channel_clock = ChannelClock::new(context.clock.now());
        let counted = context.recorder.instruments().actors.one([Sort::Channel.as_str()]);
        Ok(State {
            channel_key,
            context,
            budgets,
            in_flight,
            myself,
            registration: Some(registration),
            conversation: Conversation::default(),
            received_while_restoring: Some(Vec::new()),
            expired_below: Seq::NONE,
            post_commit_actions: VecDeque::new(),
            batches: 0,
            is_pending: true,
            newest: Seq::NONE,
            must_check_for_missed: false,
            since_snapshot: 0,
            last_received: tokio::time::Instant::now(),
            policies: (u64::MAX, Arc::default()),
            language: None,
            channel_clock,
            alarm: None,
            sleep_at: None,
            judgement_calls: HashMap::new(),
            asked_companions: HashMap::new(),
            attempts: HashMap::new(),
            question_timeouts: QuestionTimeouts::default(),
            replies: HashMap::new(),
            deliveries: HashMap::new(),
            delivery_lock: Arc::default(),
            interrupted_delivery: None,
            manager: None,
            selected: None,
            waiter: None,
            traces: Traces::default(),
            unrecorded_usage: Vec::new(),
            calls_after_commit: Vec::new(),
            shown: Shown::default(),
            restore_started: tokio::time::Instant::now(),
            _counted: counted,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<ChannelMessage>,
        message: ChannelMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::Channel(state.channel_key.channel.clone()));
        match message {
            ChannelMessage::Restored(Ok(restored)) => state.restored(*restored),
            ChannelMessage::Restored(Err(error)) => state.not_restored(error)?,
            ChannelMessage::Inbound(recorded, committed) => {
                state.note_journaled(recorded.seq, recorded.seq)?;
                state.take(Received::Event(recorded, committed));
            }
            ChannelMessage::HandedOver(batch, committed) => {
                if let (Some(first), Some(last)) = (batch.first(), batch.last()) {
                    state.note_journaled(first.seq, last.seq)?;
                }
                state.take(Received::HandOver(batch, committed));
            }
            ChannelMessage::NotHandedOver(lost) => return Err(restart_error(lost)),
            ChannelMessage::Voice(input) => state.take(Received::Voice(input)),
            ChannelMessage::Recorded { batch, result } => {
                // After a lost write nobody knows what is stored, so the channel restarts from its record.
                let Committed { first, last } = result.map_err(restart_error)?;
                state.note_journaled(first, last)?;
                state.batch_committed(batch);
            }
            ChannelMessage::Posted { result } => state.statement_recorded(result.map_err(restart_error)?)?,
            ChannelMessage::QuestionLost { ticket } => state.question_lost(ticket),
            ChannelMessage::QuestionPanicked { ticket } => state.question_unasked(ticket),
            ChannelMessage::AskAgain { ticket } => state.ask_again(ticket),
            ChannelMessage::Answered { ticket, asked, outcome, vote } => state.answered(ticket, &asked, *outcome, vote),
            ChannelMessage::Vote { state: ballot, reply } => state.external_vote(*ballot, reply),
            ChannelMessage::Speak { from, message_id, text, reply } => state.external_statement(&from, message_id, text, reply),
            ChannelMessage::StopReply { companion, reply } => state.stop_reply(companion, reply),
            ChannelMessage::Judged { ticket, asked, outcome } => state.judged(ticket, &asked, *outcome),
            ChannelMessage::RoundDue(round) => state.round_due(round),
            ChannelMessage::ManagerGone(manager) => state.manager_stopped(manager),
            ChannelMessage::SentenceWritten { ticket, text } => state.sentence_written(ticket, text),
            ChannelMessage::ReplyEnded { ticket, text, asked, outcome } => state.reply_ended(ticket, text, &asked, *outcome),
            ChannelMessage::Delivered { ticket, delivered } => state.delivered(ticket, *delivered),
            ChannelMessage::DeliveryGone(delivery) => state.delivery_stopped(delivery)?,
            ChannelMessage::ReplyGone(reply) => state.reply_stopped(reply),
            ChannelMessage::Repeated { ticket, asked, outcome } => state.question_repeated(ticket, &asked, &outcome),
            ChannelMessage::Unclaimed { asked, outcome } => state.record_unclaimed_usage(&asked, &outcome),
            ChannelMessage::Summarised { upto, messages, text, outcome } => {
                state.summarised(upto, messages, text, outcome.as_deref());
            }
            ChannelMessage::Expired(below) => state.drop_expired(below),
            ChannelMessage::Woken => state.wake()?,
            ChannelMessage::ModelsReplaced => state.take(Received::ModelsReplaced),
            ChannelMessage::MembershipChanged => state.membership_changed(),
            ChannelMessage::WriterReplaced => state.check_for_missed_events(),
            ChannelMessage::Fenced(last) => state.note_journaled(last.next(), last)?,
            ChannelMessage::Inspect(reply) => state.look(reply),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<ChannelMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        // Replies, deliveries and the turn-taking manager are linked to the channel. One that died is restarted while it is still needed.
        match event {
            SupervisionEvent::ActorTerminated(child, ..) | SupervisionEvent::ActorFailed(child, _) => {
                let child = child.get_id();
                let message = if state.replies.contains_key(&child) {
                    ChannelMessage::ReplyGone(child)
                } else if state.deliveries.contains_key(&child) {
                    ChannelMessage::DeliveryGone(child)
                } else {
                    ChannelMessage::ManagerGone(child)
                };
                // Supervision events overtake the mailbox, where the child's last messages may still wait. A cast keeps those first.
                let _ = state.myself.cast(message);
            }
            _ => {}
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<ChannelMessage>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.wake_successor();
        Ok(())
    }
}
