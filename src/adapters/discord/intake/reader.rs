//! Reads missed messages for all shards. `backfill.rs` plans the order of the requests.

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

/// The limit of requests in flight.
const MAX_IN_FLIGHT: usize = 8;
/// The limit of channels whose messages wait to be handed over. At the limit, no pages are requested, which bounds the
/// memory.
const MAX_UNDELIVERED: usize = 32;
/// The first wait before a request is retried. It doubles each time, up to `MAX_RETRY_WAIT`.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY_WAIT: Duration = Duration::from_secs(60);

/// A message with its id, unparsed.
pub(super) type RawMessage = (Snowflake, Box<RawValue>);

/// The messages of a channel, and the permit that they hold until they are handed over.
pub(super) type Read = (Filled<RawMessage>, Option<OwnedSemaphorePermit>);

/// The origin of times in the plan. Monotonic, because the system clock may jump.
type TimeOrigin = (Moment, Instant);

/// The newest message of a channel, if there is one.
type Newest = Result<Option<Snowflake>, Failed>;

/// The handle that queues jobs for the reader's task. The task ends when this is dropped.
pub(super) struct Reader {
    jobs: mpsc::UnboundedSender<Job>,
    discord: Arc<Discord>,
    _task: JoinSet<()>,
}

/// A job for the reader's task.
enum Job {
    Read(Behind, oneshot::Sender<Read>),
    Newest(Snowflake, oneshot::Sender<Newest>),
}

/// A response to a request.
enum Answer {
    Page(Snowflake, u64, Result<Vec<Box<RawValue>>, Failed>),
    Newest(oneshot::Sender<Newest>, Newest),
}

/// The result of an attempt to send the next lookup.
enum LookupStep {
    Sent,
    None,
    WaitUntil(Moment),
}

struct ReaderTask {
    discord: Arc<Discord>,
    plan: Backfill<RawMessage>,
    /// The waiting callers, by channel.
    waiting: BTreeMap<Snowflake, Waiting>,
    lookups: VecDeque<(Snowflake, oneshot::Sender<Newest>)>,
    in_flight: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// Permits for channels that wait to be handed over.
    undelivered: Arc<Semaphore>,
    /// Whether the last attempt to send a request found no free permit.
    is_full: bool,
    began: TimeOrigin,
    last_number: u64,
}

struct Waiting {
    /// Distinguishes responses for this read from those for an abandoned one.
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
            at_once: MAX_IN_FLIGHT,
        };
        let (jobs, queued) = mpsc::unbounded_channel();
        let reading = ReaderTask {
            discord: Arc::clone(&discord),
            plan: Backfill::new(limits),
            waiting: BTreeMap::new(),
            lookups: VecDeque::new(),
            in_flight: FuturesUnordered::new(),
            undelivered: Arc::new(Semaphore::new(MAX_UNDELIVERED)),
            is_full: false,
            began: (clock.now(), Instant::now()),
            last_number: 0,
        };
        let mut task = JoinSet::new();
        task.spawn(reading.run(queued));
        Self { jobs, discord, _task: task }
    }

    /// Reads a channel. Returns `None` if the task has ended.
    pub async fn read(&self, behind: Behind) -> Option<Read> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job::Read(behind, reply)).ok()?;
        answer.await.ok()
    }

    /// An id that is newer than all messages so far.
    pub fn newest_by_now(&self) -> Snowflake {
        Snowflake::at(self.discord.clocks().now())
    }

    /// Requests the newest message of a channel. Returns `None` if the task has ended.
    pub async fn newest(&self, channel: Snowflake) -> Option<Newest> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job::Newest(channel, reply)).ok()?;
        answer.await.ok()
    }
}

impl ReaderTask {
    async fn run(mut self, mut queued: mpsc::UnboundedReceiver<Job>) {
        loop {
            let until = self.send_due();
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
                Some(answer) = self.in_flight.next(), if !self.in_flight.is_empty() => self.answered(answer),
                freed = Arc::clone(&self.undelivered).acquire_owned(), if self.is_full => drop(freed),
                () = pause => {}
            }
        }
    }

    /// The time in the plan.
    fn now(&self) -> Moment {
        self.began.0 + self.began.1.elapsed()
    }

    fn start(&mut self, job: Job) {
        let now = self.now();
        match job {
            Job::Newest(channel, reply) => self.lookups.push_back((channel, reply)),
            Job::Read(behind, reply) => {
                // The earlier caller for this channel is gone, because its connection ended.
                self.plan.forget(|other| other.channel == behind.channel);
                self.last_number += 1;
                self.waiting.insert(behind.channel, Waiting { number: self.last_number, tries: 0, reply });
                self.plan.add(behind, now, self.discord.clocks().now());
            }
        }
    }

    /// Sends the requests that are due. Returns how long to wait for the next one, unless a response arrives earlier.
    fn send_due(&mut self) -> Option<Duration> {
        loop {
            let now = self.now();
            self.is_full = self.undelivered.available_permits() == 0;
            let next =
                if self.is_full { self.plan.filled().map_or(Next::AwaitAnswer, Next::Filled) } else { self.plan.next(now) };
            let next = match next {
                Next::Ask(request) => {
                    self.page(request);
                    // Alternate between pages and lookups.
                    self.look_up_next(now);
                    continue;
                }
                Next::Filled(filled) => {
                    if let Some(waiting) = self.waiting.remove(&filled.channel) {
                        let is_empty = filled.messages.is_empty();
                        let permit = Arc::clone(&self.undelivered).try_acquire_owned().ok().filter(|_| !is_empty);
                        // If the caller is gone, a later caller requests the channel again.
                        let _ = waiting.reply.send((filled, permit));
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

    /// Sends the next lookup of a newest message, if the plan permits it.
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
        self.in_flight.push(Box::pin(async move { Answer::Newest(reply, discord.fetch_channel(channel).await) }));
        LookupStep::Sent
    }

    fn page(&mut self, request: Request) {
        let channel = request.channel;
        let Some(waiting) = self.waiting.get(&channel).filter(|waiting| !waiting.reply.is_closed()) else {
            self.waiting.remove(&channel);
            return self.plan.forget(|behind| behind.channel == channel);
        };
        let (number, discord) = (waiting.number, Arc::clone(&self.discord));
        self.in_flight.push(Box::pin(async move { Answer::Page(channel, number, discord.page(request).await) }));
    }

    fn answered(&mut self, answer: Answer) {
        let now = self.now();
        let (channel, number, page) = match answer {
            Answer::Page(channel, number, page) => (channel, number, page),
            Answer::Newest(reply, newest) => {
                // If the caller is gone, a later caller requests it again.
                let _ = reply.send(newest);
                return;
            }
        };
        let Some(waiting) = self.waiting.get_mut(&channel).filter(|waiting| waiting.number == number) else { return };
        match page {
            Ok(page) => {
                waiting.tries = 0;
                self.plan.answered(channel, page.into_iter().filter_map(with_id).collect(), now);
            }
            // A 401 concerns the token, not the channel.
            Err(Failed::Refused(refusal)) if refusal.status != 401 => self.plan.failed(channel, Failure::Refused),
            Err(failed) => {
                let after = if let Failed::NotNow { after, .. } = &failed { *after } else { None };
                let after = after.unwrap_or(FIRST_RETRY * 2_u32.saturating_pow(waiting.tries)).min(MAX_RETRY_WAIT);
                waiting.tries += 1;
                tracing::debug!(%channel, error = %failed, "missed messages cannot be read yet");
                self.plan.failed(channel, Failure::Later(now + after));
            }
        }
    }
}

/// A message with its id. `None` if the id is invalid.
fn with_id(data: Box<RawValue>) -> Option<(Snowflake, RawMessage)> {
    let wire::WithId { id } = serde_json::from_str(data.get()).ok()?;
    Some((id, (id, data)))
}
