//! Reads what was said while nobody listened: asks as `backfill.rs` plans, for all shards together.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::super::backfill::{Backfill, Behind, Failure, Filled, Limits, Next, Request};
use super::super::platform::Discord;
use super::super::rest::Failed;
use super::super::snowflake::Snowflake;
use super::super::wire;
use crate::domain::moment::Moment;
use crate::ports::clock::Clock;
use crate::settings::discord::Discord as Settings;

/// Questions under way at once.
const AT_ONCE: usize = 8;
/// Channels that are read and handed over: with more, nothing is asked for, since memory would fill with what the core does not take.
const MOST_HANDED_OVER: usize = 32;
/// How long it takes until a question is asked again, the first time; then twice as long each time.
const ASKED_AGAIN: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(60);

/// A message as it came.
pub(super) type RawMessage = (Snowflake, Box<RawValue>);

/// What was read of a channel, and the room that it takes: to be dropped once it is handed over.
pub(super) type Read = (Filled<RawMessage>, Option<OwnedSemaphorePermit>);

/// What the times of requests count from: no clock that may jump.
type Began = (Moment, Instant);

/// The newest message of a channel, if it has one.
type Newest = Result<Option<Snowflake>, Failed>;

/// Whoever reads. It ends when it is dropped.
pub(super) struct Reader {
    jobs: mpsc::UnboundedSender<Job>,
    discord: Arc<Discord>,
    _task: JoinSet<()>,
}

/// Something that is to be read.
enum Job {
    Read(Behind, oneshot::Sender<Read>),
    Newest(Snowflake, oneshot::Sender<Newest>),
}

/// What came back.
enum Answer {
    Page(Snowflake, u64, Result<Vec<Box<RawValue>>, Failed>),
    Newest(oneshot::Sender<Newest>, Newest),
}

/// Whether a channel was looked at.
enum LookupStep {
    Sent,
    None,
    WaitUntil(Moment),
}

struct ReaderTask {
    discord: Arc<Discord>,
    plan: Backfill<RawMessage>,
    /// By channel: who waits for it.
    waiting: BTreeMap<Snowflake, Waiting>,
    lookups: VecDeque<(Snowflake, oneshot::Sender<Newest>)>,
    under_way: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// For channels that are handed over.
    room: Arc<Semaphore>,
    /// There was none left when something was to be asked.
    is_full: bool,
    began: Began,
    last_number: u64,
}

struct Waiting {
    /// Tells an answer to this reading from one to a reading that was given up.
    number: u64,
    tries: u32,
    reply: oneshot::Sender<Read>,
}

impl Reader {
    pub fn new(discord: Arc<Discord>, clock: Arc<dyn Clock>, settings: &Settings) -> Self {
        let limits = Limits {
            messages: settings.backfill_messages,
            age: settings.backfill_age(),
            calls_per_second: usize::try_from(settings.backfill_calls_per_second).unwrap_or(1),
            at_once: AT_ONCE,
        };
        let (jobs, queued) = mpsc::unbounded_channel();
        let reading = ReaderTask {
            discord: Arc::clone(&discord),
            plan: Backfill::new(limits),
            waiting: BTreeMap::new(),
            lookups: VecDeque::new(),
            under_way: FuturesUnordered::new(),
            room: Arc::new(Semaphore::new(MOST_HANDED_OVER)),
            is_full: false,
            began: (clock.now(), Instant::now()),
            last_number: 0,
        };
        let mut task = JoinSet::new();
        task.spawn(reading.run(queued));
        Self { jobs, discord, _task: task }
    }

    /// Reads a channel. None: whoever reads is gone.
    pub async fn read(&self, behind: Behind) -> Option<Read> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job::Read(behind, reply)).ok()?;
        answer.await.ok()
    }

    /// An id that is newer than any message so far.
    pub fn newest_by_now(&self) -> Snowflake {
        Snowflake::at(self.discord.clocks().now())
    }

    /// Asks for the newest message of a channel. None: whoever reads is gone.
    pub async fn newest(&self, channel: Snowflake) -> Option<Newest> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job::Newest(channel, reply)).ok()?;
        answer.await.ok()
    }
}

impl ReaderTask {
    async fn run(mut self, mut queued: mpsc::UnboundedReceiver<Job>) {
        loop {
            let until = self.ask();
            let pause = async {
                match until {
                    Some(until) => sleep(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                job = queued.recv() => match job {
                    Some(job) => self.start(job),
                    None => return,
                },
                Some(answer) = self.under_way.next(), if !self.under_way.is_empty() => self.answered(answer),
                freed = Arc::clone(&self.room).acquire_owned(), if self.is_full => drop(freed),
                () = pause => {}
            }
        }
    }

    /// When requests leave is counted by this.
    fn now(&self) -> Moment {
        self.began.0 + self.began.1.elapsed()
    }

    fn start(&mut self, job: Job) {
        let now = self.now();
        match job {
            Job::Newest(channel, reply) => self.lookups.push_back((channel, reply)),
            Job::Read(behind, reply) => {
                // Whoever asked before does not wait any more: its connection ended.
                self.plan.forget(|other| other.channel == behind.channel);
                self.last_number += 1;
                self.waiting.insert(behind.channel, Waiting { number: self.last_number, tries: 0, reply });
                self.plan.add(behind, now, self.discord.clocks().now());
            }
        }
    }

    /// Asks what may be asked now, and says how long nothing more may, unless an answer comes.
    fn ask(&mut self) -> Option<Duration> {
        loop {
            let now = self.now();
            self.is_full = self.room.available_permits() == 0;
            let next =
                if self.is_full { self.plan.filled().map_or(Next::AwaitAnswer, Next::Filled) } else { self.plan.next(now) };
            let next = match next {
                Next::Ask(request) => {
                    self.page(request);
                    // Pages and lookups take turns.
                    self.look_up_next(now);
                    continue;
                }
                Next::Filled(filled) => {
                    if let Some(waiting) = self.waiting.remove(&filled.channel) {
                        let is_empty = filled.messages.is_empty();
                        let room = Arc::clone(&self.room).try_acquire_owned().ok().filter(|_| !is_empty);
                        // Whoever is not there any more asks again.
                        let _ = waiting.reply.send((filled, room));
                    }
                    continue;
                }
                Next::WaitUntil(at) => Some(at),
                Next::AwaitAnswer | Next::Over => None,
            };
            match self.look_up_next(now) {
                LookupStep::Sent => {}
                LookupStep::None => return next.map(|at| at.since(now)),
                LookupStep::WaitUntil(at) => return Some(next.map_or(at, |next| next.min(at)).since(now)),
            }
        }
    }

    /// Asks for the newest message of the next channel, if it may.
    fn look_up_next(&mut self, now: Moment) -> LookupStep {
        while self.lookups.front().is_some_and(|(_, reply)| reply.is_closed()) {
            self.lookups.pop_front();
        }
        let Some((channel, reply)) = self.lookups.pop_front() else { return LookupStep::None };
        if let Err(at) = self.plan.call(now) {
            self.lookups.push_front((channel, reply));
            return LookupStep::WaitUntil(at);
        }
        let discord = Arc::clone(&self.discord);
        self.under_way.push(Box::pin(async move { Answer::Newest(reply, discord.fetch_channel(channel).await) }));
        LookupStep::Sent
    }

    fn page(&mut self, request: Request) {
        let channel = request.channel;
        let Some(waiting) = self.waiting.get(&channel).filter(|waiting| !waiting.reply.is_closed()) else {
            self.waiting.remove(&channel);
            return self.plan.forget(|behind| behind.channel == channel);
        };
        let (number, discord) = (waiting.number, Arc::clone(&self.discord));
        self.under_way.push(Box::pin(async move { Answer::Page(channel, number, discord.page(request).await) }));
    }

    fn answered(&mut self, answer: Answer) {
        let now = self.now();
        let (channel, number, page) = match answer {
            Answer::Page(channel, number, page) => (channel, number, page),
            Answer::Newest(reply, newest) => {
                // Whoever is not there any more asks again.
                let _ = reply.send(newest);
                return;
            }
        };
        let Some(waiting) = self.waiting.get_mut(&channel).filter(|waiting| waiting.number == number) else { return };
        match page {
            Ok(page) => {
                waiting.tries = 0;
                self.plan.answered(channel, page.into_iter().filter_map(identified).collect(), now);
            }
            // A token that is not taken any more says nothing of the channel.
            Err(Failed::Refused(refusal)) if refusal.status != 401 => self.plan.failed(channel, Failure::Refused),
            Err(failed) => {
                let after = if let Failed::NotNow { after, .. } = &failed { *after } else { None };
                let after = after.unwrap_or(ASKED_AGAIN * 2_u32.saturating_pow(waiting.tries)).min(LATEST);
                waiting.tries += 1;
                tracing::debug!(%channel, error = %failed, "what was missed cannot be read yet");
                self.plan.failed(channel, Failure::Later(now + after));
            }
        }
    }
}

/// A message with its id; none if that cannot be read.
fn identified(data: Box<RawValue>) -> Option<(Snowflake, RawMessage)> {
    #[derive(serde::Deserialize)]
    struct Identified {
        id: wire::Id,
    }
    let Identified { id } = serde_json::from_str(data.get()).ok()?;
    Some((id.0, (id.0, data)))
}
