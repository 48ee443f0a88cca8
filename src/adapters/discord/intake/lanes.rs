//! Queues work in lanes, one per channel. Work waits only for earlier work of the same channel.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::super::dispatch::Receipt;
use super::super::snowflake::Snowflake;
use super::SharedIntake;
use crate::ports::inbound_events::ReactionChange;
use crate::telemetry::instruments::NONE;
use crate::telemetry::instruments::kinds::Counted;

/// The limit of events in flight per connection. At the limit, the connection waits.
pub(super) const MAX_IN_FLIGHT: usize = 1_024;
/// The limit of messages that wait in a channel that is catching up. Later messages are left to a further backfill of the channel.
pub(super) const MAX_WAITING_PER_CHANNEL: usize = 64;
/// The limit of messages that wait in all catching-up channels of a connection.
const MAX_WAITING_TOTAL: usize = 4_096;

/// A piece of work that an event requires.
#[derive(Debug)]
pub(super) enum Work {
    /// A new or edited message.
    Message(ReceivedMessage),
    Deleted {
        guild: Option<Snowflake>,
        channel: Snowflake,
        messages: Vec<Arc<str>>,
    },
    /// The reactions on a message changed.
    Reacted {
        guild: Option<Snowflake>,
        channel: Snowflake,
        change: ReactionChange,
    },
    /// A channel was deleted.
    ChannelGone {
        guild: Snowflake,
        channel: Snowflake,
    },
    /// The bot left a guild.
    GuildGone {
        guild: Snowflake,
    },
    /// A channel may have missed messages.
    CatchUp(Behind),
}

/// A message event, unparsed.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub guild: Option<Snowflake>,
    pub channel: Snowflake,
    pub message: Snowflake,
    pub data: Box<RawValue>,
    pub is_edit: bool,
    /// Whether the message is the first of a thread or forum post.
    pub is_first: bool,
}

/// A channel that may have missed messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    pub guild: Option<Snowflake>,
    pub channel: Snowflake,
    /// The newest message. `None`: it must be requested.
    pub newest: Option<Snowflake>,
}

/// The lanes of one connection. Dropping it discards the queued work, and reports the receipts as lost.
pub(super) struct Lanes {
    shared: Arc<SharedIntake>,
    open: Arc<Open>,
    tasks: JoinSet<()>,
    in_flight: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

#[derive(Default)]
struct Open(Mutex<BTreeMap<Snowflake, Lane>>);

/// The queue of one channel. It exists as long as its task runs.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Job>,
    /// The number of catch-ups that are queued or running.
    catching_up: usize,
}

struct Job {
    work: Work,
    shares: Vec<ReceiptShare>,
    permit: Option<OwnedSemaphorePermit>,
    _counted: Counted,
}

/// The share of one piece of work in its event's receipt. The receipt is acknowledged once all shares are. Dropping a share loses the event.
#[derive(Debug)]
pub(super) struct ReceiptShare(Option<Arc<SharedReceipt>>);

#[derive(Debug)]
struct SharedReceipt {
    left: AtomicUsize,
    receipt: Mutex<Option<Receipt>>,
}

impl Work {
    /// The key of the lane: a channel, or a guild that the bot left.
    const fn lane(&self) -> Snowflake {
        match self {
            Self::Message(received) => received.channel,
            Self::CatchUp(behind) => behind.channel,
            Self::Deleted { channel, .. } | Self::Reacted { channel, .. } | Self::ChannelGone { channel, .. } => *channel,
            Self::GuildGone { guild } => *guild,
        }
    }

    /// The backfill that can replace this work. Only new messages can be read later.
    const fn as_catch_up(&self) -> Option<Behind> {
        match self {
            Self::Message(received) if !received.is_edit => {
                Some(Behind { guild: received.guild, channel: received.channel, newest: Some(received.message) })
            }
            _ => None,
        }
    }
}

impl Lanes {
    pub fn new(shared: &Arc<SharedIntake>) -> Self {
        Self {
            shared: Arc::clone(shared),
            open: Arc::default(),
            tasks: JoinSet::new(),
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            waiting: Arc::new(Semaphore::new(MAX_WAITING_TOTAL)),
        }
    }

    /// Appends work to its lane. Waits while too much work is in flight.
    pub async fn put(&mut self, work: Work, share: ReceiptShare) {
        while self.tasks.try_join_next().is_some() {}
        let counted = self.shared.instruments.discord_under_way.one(NONE);
        let mut job = Job { work, shares: vec![share], permit: None, _counted: counted };
        // Catch-ups need no permit, because there are at most as many as channels.
        if !matches!(job.work, Work::CatchUp(_)) {
            let Some(returned) = self.queue_behind_catch_up(job) else { return };
            job = returned;
            job.permit = Arc::clone(&self.in_flight).acquire_owned().await.ok();
        }
        let key = job.work.lane();
        if self.open.push(key, job) {
            let (shared, open) = (Arc::clone(&self.shared), Arc::clone(&self.open));
            self.tasks.spawn(async move { run(&shared, &open, key).await });
        }
    }

    /// Queues work in a lane that is catching up, which may take minutes. There, the work does not count towards the connection's limit. If too
    /// much work is queued already, a message is left to a further backfill. Returns the job if it must be queued normally.
    fn queue_behind_catch_up(&self, mut job: Job) -> Option<Job> {
        let mut open = self.open.0.lock();
        let Some(lane) = open.get_mut(&job.work.lane()).filter(|lane| lane.catching_up > 0) else { return Some(job) };
        if lane.waiting.len() < MAX_WAITING_PER_CHANNEL
            && let Ok(permit) = Arc::clone(&self.waiting).try_acquire_owned()
        {
            job.permit = Some(permit);
            lane.waiting.push_back(job);
            return None;
        }
        let Some(behind) = job.work.as_catch_up().filter(|_| self.shared.backfills) else { return Some(job) };
        match lane.waiting.back_mut() {
            Some(Job { work: Work::CatchUp(last), shares, .. }) => {
                last.newest = last.newest.max(behind.newest);
                shares.append(&mut job.shares);
            }
            _ => {
                job.work = Work::CatchUp(behind);
                lane.catching_up += 1;
                lane.waiting.push_back(job);
            }
        }
        None
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.open.0.lock().clear();
    }
}

/// Processes a lane until it is empty.
async fn run(shared: &Arc<SharedIntake>, open: &Open, key: Snowflake) {
    while let Some(Job { work, shares, permit, _counted }) = open.next(key) {
        let is_catching_up = matches!(work, Work::CatchUp(_));
        if shared.catch_panic(key, shared.carry_out(work)).await.unwrap_or(true) {
            shares.into_iter().for_each(ReceiptShare::kept);
        }
        drop(permit);
        if is_catching_up && let Some(lane) = open.0.lock().get_mut(&key) {
            lane.catching_up -= 1;
        }
    }
}

impl Open {
    /// Appends a job to a lane. Returns true if the lane is new and needs a task.
    fn push(&self, key: Snowflake, job: Job) -> bool {
        let mut open = self.0.lock();
        let is_new = !open.contains_key(&key);
        let lane = open.entry(key).or_default();
        lane.catching_up += usize::from(matches!(job.work, Work::CatchUp(_)));
        lane.waiting.push_back(job);
        is_new
    }

    /// Removes and returns the next job of a lane. If there is none, closes the lane.
    fn next(&self, key: Snowflake) -> Option<Job> {
        let mut open = self.0.lock();
        let next = open.get_mut(&key).and_then(|lane| lane.waiting.pop_front());
        if next.is_none() {
            open.remove(&key);
        }
        next
    }
}

impl ReceiptShare {
    /// Splits a receipt into `count` shares.
    pub fn split(receipt: Receipt, count: usize) -> Vec<Self> {
        let whole = Arc::new(SharedReceipt { left: AtomicUsize::new(count), receipt: Mutex::new(Some(receipt)) });
        (0..count).map(|_| Self(Some(Arc::clone(&whole)))).collect()
    }

    /// Reports that the work is on record.
    pub fn kept(mut self) {
        let Some(whole) = self.0.take() else { return };
        if whole.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(receipt) = whole.take()
        {
            receipt.kept();
        }
    }
}

impl Drop for ReceiptShare {
    fn drop(&mut self) {
        if let Some(whole) = self.0.take() {
            drop(whole.take());
        }
    }
}

impl SharedReceipt {
    fn take(&self) -> Option<Receipt> {
        self.receipt.lock().take()
    }
}
