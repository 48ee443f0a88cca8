//! Lanes: what is to be put on record waits for what came before it in its channel, and for nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::super::dispatch::Receipt;
use super::super::snowflake::Snowflake;
use super::SharedIntake;
use crate::telemetry::instruments::NONE;
use crate::telemetry::instruments::kinds::Counted;

/// Events of one connection that may be under way; with more, the connection has to wait.
pub(super) const MOST_UNDER_WAY: usize = 1_024;
/// Messages that may wait in a channel that catches up; what is said after them is read with what comes next to be caught up with.
pub(super) const MOST_BEHIND: usize = 64;
/// The same for all channels of a connection together.
const MOST_BEHIND_IN_ALL: usize = 4_096;

/// Something that follows from an event.
#[derive(Debug)]
pub(super) enum Work {
    /// Somebody said something, or wrote it anew.
    Message(ReceivedMessage),
    /// Messages were taken back.
    Deleted { guild: Option<Snowflake>, channel: Snowflake, messages: Vec<Arc<str>> },
    /// A channel is gone for good.
    ChannelGone { guild: Snowflake, channel: Snowflake },
    /// The bot is in a guild no more.
    GuildGone { guild: Snowflake },
    /// More may have been said in a channel than was heard.
    CatchUp(Behind),
}

/// A message as it was told.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub guild: Option<Snowflake>,
    pub channel: Snowflake,
    pub message: Snowflake,
    pub data: Box<RawValue>,
    pub is_edit: bool,
}

/// A channel that may have heard less than was said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    pub guild: Option<Snowflake>,
    pub channel: Snowflake,
    /// Its newest message; none: it has to be asked for.
    pub newest: Option<Snowflake>,
}

/// The lanes of one connection. Dropped, whatever waits in them was never taken.
pub(super) struct Lanes {
    shared: Arc<SharedIntake>,
    open: Arc<Open>,
    tasks: JoinSet<()>,
    room: Arc<Semaphore>,
    behind: Arc<Semaphore>,
}

#[derive(Default)]
struct Open(Mutex<BTreeMap<Snowflake, Lane>>);

/// There as long as its task runs.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Job>,
    /// How often it has to catch up, that under way included.
    catching_up: usize,
}

struct Job {
    work: Work,
    shares: Vec<Share>,
    room: Option<OwnedSemaphorePermit>,
    _counted: Counted,
}

/// One of the things that follow from an event. All have to be kept; one that is dropped loses the event.
#[derive(Debug)]
pub(super) struct Share(Option<Arc<Whole>>);

#[derive(Debug)]
struct Whole {
    left: AtomicUsize,
    receipt: Mutex<Option<Receipt>>,
}

impl Work {
    /// Whose lane it belongs into.
    const fn lane(&self) -> Snowflake {
        match self {
            Self::Message(received) => received.channel,
            Self::CatchUp(behind) => behind.channel,
            Self::Deleted { channel, .. } | Self::ChannelGone { channel, .. } => *channel,
            Self::GuildGone { guild } => *guild,
        }
    }

    /// The message that can as well be read later.
    const fn readable_later(&self) -> Option<Behind> {
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
            room: Arc::new(Semaphore::new(MOST_UNDER_WAY)),
            behind: Arc::new(Semaphore::new(MOST_BEHIND_IN_ALL)),
        }
    }

    /// Puts something at the end of its lane. Waits while too much is under way.
    pub async fn put(&mut self, work: Work, share: Share) {
        while self.tasks.try_join_next().is_some() {}
        let counted = self.shared.instruments.discord_under_way.one(NONE);
        let mut job = Job { work, shares: vec![share], room: None, _counted: counted };
        // Of those there are no more than channels.
        if !matches!(job.work, Work::CatchUp(_)) {
            let Some(given_back) = self.put_behind(job) else { return };
            job = given_back;
            job.room = Arc::clone(&self.room).acquire_owned().await.ok();
        }
        let key = job.work.lane();
        if self.open.push(key, job) {
            let (shared, open) = (Arc::clone(&self.shared), Arc::clone(&self.open));
            self.tasks.spawn(async move { run(&shared, &open, key).await });
        }
    }

    /// Has something wait in a lane that catches up, which may take minutes: there it takes no room from other channels. Where too much
    /// waits already, a message is left to be read. Gives back what goes the usual way.
    fn put_behind(&self, mut job: Job) -> Option<Job> {
        let mut open = self.open.lock();
        let Some(lane) = open.get_mut(&job.work.lane()).filter(|lane| lane.catching_up > 0) else { return Some(job) };
        if lane.waiting.len() < MOST_BEHIND
            && let Ok(room) = Arc::clone(&self.behind).try_acquire_owned()
        {
            job.room = Some(room);
            lane.waiting.push_back(job);
            return None;
        }
        let Some(behind) = job.work.readable_later().filter(|_| self.shared.reads) else { return Some(job) };
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
        self.open.lock().clear();
    }
}

/// Does what waits in a lane until nothing does.
async fn run(shared: &Arc<SharedIntake>, open: &Open, key: Snowflake) {
    while let Some(Job { work, shares, room, _counted }) = open.next(key) {
        let is_catching_up = matches!(work, Work::CatchUp(_));
        if shared.catch_panic(key, shared.carry_out(work)).await.unwrap_or(true) {
            shares.into_iter().for_each(Share::kept);
        }
        drop(room);
        if is_catching_up && let Some(lane) = open.lock().get_mut(&key) {
            lane.catching_up -= 1;
        }
    }
}

impl Open {
    /// Puts something at the end of a lane. True: the lane is new, and needs somebody who runs it.
    fn push(&self, key: Snowflake, job: Job) -> bool {
        let mut open = self.lock();
        let is_new = !open.contains_key(&key);
        let lane = open.entry(key).or_default();
        lane.catching_up += usize::from(matches!(job.work, Work::CatchUp(_)));
        lane.waiting.push_back(job);
        is_new
    }

    /// What comes next in a lane; none, and the lane is closed.
    fn next(&self, key: Snowflake) -> Option<Job> {
        let mut open = self.lock();
        let next = open.get_mut(&key).and_then(|lane| lane.waiting.pop_front());
        if next.is_none() {
            open.remove(&key);
        }
        next
    }

    // Nothing in here is half done when somebody panics.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Snowflake, Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// So many shares of an event.
    pub fn split(receipt: Receipt, count: usize) -> Vec<Self> {
        let whole = Arc::new(Whole { left: AtomicUsize::new(count), receipt: Mutex::new(Some(receipt)) });
        (0..count).map(|_| Self(Some(Arc::clone(&whole)))).collect()
    }

    /// What follows is on record.
    pub fn kept(mut self) {
        let Some(whole) = self.0.take() else { return };
        if whole.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(receipt) = whole.take()
        {
            receipt.kept();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(whole) = self.0.take() {
            drop(whole.take());
        }
    }
}

impl Whole {
    fn take(&self) -> Option<Receipt> {
        self.receipt.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
