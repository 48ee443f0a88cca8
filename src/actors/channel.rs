//! A channel: runs its conversation, puts on record what it decides, and carries that out once it is committed.
//!
//! Everything that matters is on record before it is acted on. What is kept here can be rebuilt from the store, so a channel that
//! fails is simply started again.

mod clock;
mod conduct;
mod delivering;
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
mod traces;
pub mod turn_taking_manager;

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
use crate::domain::conversation::Conversation;
use crate::domain::event::Recorded;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::{OutboxRecord, Used};
use crate::telemetry::instruments::kinds::Counted;
use clock::ChannelClock;
use delivering::Underway;
use interjection_policies::{InterjectionPolicies, SharedPolicies};
use notes::Shown;
use post_commit::PostCommitAction;
use question_timeouts::QuestionTimeouts;
use rounds::{Managed, Selected, Words};
use traces::Traces;

/// A channel at rest that hears nothing for so long goes to sleep.
const DOZE_AFTER: Duration = Duration::from_secs(300);
/// A question that its companion lost is handed over again so many times, which takes two seconds.
const ASK_AGAIN_AT_MOST: u32 = 43;
/// A reply whose actor died is begun again so many times.
const REPLY_AGAIN_AT_MOST: u32 = 3;

/// The actor.
pub struct Channel;

/// Who it is and what it works with.
#[derive(Clone)]
pub struct Arguments {
    /// Which channel.
    pub channel_key: ChannelKey,
    /// What it works with.
    pub context: Arc<ActorContext>,
    /// What the guild has used.
    pub budgets: Arc<GuildBudgets>,
    /// Marks the event in flight, so that a message that kills the channel is found.
    pub in_flight: Arc<InFlight>,
}

/// What a guild has used, shared by its channels; and how patient its companions are.
#[derive(Debug, Default)]
pub struct GuildBudgets {
    /// What counts against its budgets.
    pub ledger: std::sync::Mutex<Ledger>,
    /// Whether what was used before the start is counted.
    pub is_open: OnceCell<()>,
    /// When somebody last had to be silent for want of each budget of the guild.
    pub refused: std::sync::Mutex<BTreeMap<Budget, Moment>>,
    /// Mostly the same in all of its channels.
    policies: SharedPolicies,
}

impl GuildBudgets {
    /// What counts against its budgets, for as long as nothing is waited for.
    pub fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Something is on record that was never handed over: whoever should have done so died over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after event {known} comes {found}; what is in between was never handed over")]
struct Missed {
    known: Seq,
    found: Seq,
}

/// What a channel keeps.
pub struct State {
    channel_key: ChannelKey,
    context: Arc<ActorContext>,
    budgets: Arc<GuildBudgets>,
    in_flight: Arc<InFlight>,
    myself: ActorRef<ChannelMessage>,
    registration: Option<Registration>,
    conversation: Conversation,
    /// What was heard while the record was read; none once it was.
    heard_meanwhile: Option<Vec<(Box<Recorded>, Moment)>>,
    /// What stands below this was kept for long enough, and is let go of once the record is read.
    let_go_below: Seq,
    /// What follows once a batch is committed, by batch, oldest first.
    owed: VecDeque<(u64, Vec<PostCommitAction>)>,
    batches: u64,
    is_pending: bool,
    /// The newest event that is known here; they are handed over one after the other.
    newest: Seq,
    /// It is looked whether something was missed, once the record was read.
    is_to_look_again: bool,
    since_snapshot: u32,
    last_heard: tokio::time::Instant,
    /// How patient everyone is here, as of an edition of who lives where.
    policies: (u64, Arc<InterjectionPolicies>),
    channel_clock: ChannelClock,
    alarm: Option<Alarm>,
    /// When it is looked whether it may sleep; none before its record was read.
    doze_at: Option<Moment>,
    /// Judgements that are with the pool.
    calls: HashMap<Ticket, CallId>,
    /// Questions, and the companions that have them.
    asked: HashMap<Ticket, CompanionId>,
    tries: HashMap<Ticket, u32>,
    question_timeouts: QuestionTimeouts,
    replies: HashMap<ActorId, (Ticket, ractor::ActorCell)>,
    deliveries: HashMap<ActorId, Underway>,
    /// Where they go one after the other.
    lane: Arc<tokio::sync::Mutex<()>>,
    /// The statement that was on its way when the channel began.
    owed_before: Option<Box<(Ticket, OutboxRecord)>>,
    /// Who was asked in the newest round.
    round_asked: Vec<CompanionId>,
    /// The turn-taking manager of the round that is open.
    manager: Option<Managed>,
    /// The external companion that had the floor last.
    selected: Option<Selected>,
    /// Whoever waits for its words to be accepted.
    words: Option<Words>,
    traces: Traces,
    /// What was used and is not on record yet: it goes there with the next batch.
    spent: Vec<Used>,
    shown: Shown,
    /// Since when it reads its record.
    began: tokio::time::Instant,
    _counted: Counted,
}

/// Nobody knows what is stored, or nothing can be stored now: not for anything that happened here, unless it cannot be recorded at all.
fn begun_anew(lost: WriteError) -> ActorProcessingErr {
    match lost {
        WriteError::Unfit(_) => lost.into(),
        WriteError::Unknown | WriteError::Unavailable(_) | WriteError::Unreadable(_) | WriteError::Deleted => {
            DependencyLost(lost.to_string()).into()
        }
    }
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
        // Registered before the record is read: what is accepted after the reading finds its way here.
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
            heard_meanwhile: Some(Vec::new()),
            let_go_below: Seq::NONE,
            owed: VecDeque::new(),
            batches: 0,
            is_pending: true,
            newest: Seq::NONE,
            is_to_look_again: false,
            since_snapshot: 0,
            last_heard: tokio::time::Instant::now(),
            policies: (u64::MAX, Arc::default()),
            channel_clock,
            alarm: None,
            doze_at: None,
            calls: HashMap::new(),
            asked: HashMap::new(),
            tries: HashMap::new(),
            question_timeouts: QuestionTimeouts::default(),
            replies: HashMap::new(),
            deliveries: HashMap::new(),
            lane: Arc::default(),
            owed_before: None,
            round_asked: Vec::new(),
            manager: None,
            selected: None,
            words: None,
            traces: Traces::default(),
            spent: Vec::new(),
            shown: Shown::default(),
            began: tokio::time::Instant::now(),
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
                state.follow(recorded.seq, recorded.seq)?;
                if state.heard(recorded, committed) {
                    state.taken_on(1);
                }
            }
            ChannelMessage::Recorded { batch, result } => {
                // A lost write: nobody knows what is stored, so the channel begins anew from what is.
                let Committed { first, last } = result.map_err(begun_anew)?;
                state.follow(first, last)?;
                state.recorded(batch);
            }
            ChannelMessage::Posted { result } => state.posted(result.map_err(begun_anew)?)?,
            ChannelMessage::QuestionLost { ticket } => state.question_lost(ticket),
            ChannelMessage::QuestionPanicked { ticket } => state.question_unasked(ticket),
            ChannelMessage::AskAgain { ticket } => state.ask_again(ticket),
            ChannelMessage::Answered { ticket, asked, outcome, vote } => state.answered(ticket, &asked, *outcome, vote),
            ChannelMessage::Voted { state: ballot, reply } => state.voted(*ballot, reply),
            ChannelMessage::SubmitStatement { from, message_id, text, reply } => state.worded(&from, message_id, text, reply),
            ChannelMessage::Judged { ticket, asked, outcome } => state.judged(ticket, &asked, *outcome),
            ChannelMessage::RoundDue(round) => state.round_due(round),
            ChannelMessage::ManagerGone(manager) => state.manager_is_gone(manager),
            ChannelMessage::ReplyEnded { ticket, text, asked, outcome } => state.reply_ended(ticket, text, &asked, *outcome),
            ChannelMessage::Delivered { ticket, delivered } => state.delivered(ticket, *delivered),
            ChannelMessage::DeliveryGone(delivery) => state.delivery_is_gone(delivery)?,
            ChannelMessage::ReplyGone(reply) => state.reply_is_gone(reply),
            ChannelMessage::Unclaimed { asked, outcome } => state.record_unclaimed_usage(&asked, &outcome),
            ChannelMessage::Summarised { upto, text, outcome } => state.summarised(upto, text, outcome.as_deref()),
            ChannelMessage::Expired(below) => state.let_go(below),
            ChannelMessage::Woken => state.woken()?,
            ChannelMessage::MembershipChanged => state.membership_changed(),
            ChannelMessage::WriterReplaced => state.look_again(),
            ChannelMessage::Fenced(last) => state.follow(last.next(), last)?,
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
        // Replies, deliveries and the turn-taking manager are linked here. One that died is begun again while it is still needed.
        match event {
            SupervisionEvent::ActorTerminated(child, ..) | SupervisionEvent::ActorFailed(child, _) => {
                let child = child.get_id();
                let gone = if state.replies.contains_key(&child) {
                    ChannelMessage::ReplyGone(child)
                } else if state.deliveries.contains_key(&child) {
                    ChannelMessage::DeliveryGone(child)
                } else {
                    ChannelMessage::ManagerGone(child)
                };
                // Supervision overtakes the mailbox, where the child's last words may still wait: they come first.
                let _ = state.myself.cast(gone);
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
