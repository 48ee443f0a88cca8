//! Reads what was said while nobody listened: asks as `backfill.rs` plans, for all shards together.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
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
/// How long it takes until a question is asked again, the first time; then twice as long each time.
const ASKED_AGAIN: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(60);

/// A message as it came.
pub(super) type Told = (Snowflake, Box<RawValue>);

/// Whoever reads. It ends when it is dropped.
pub(super) struct Reader {
    orders: mpsc::UnboundedSender<Order>,
    _task: JoinSet<()>,
}

/// Something that is to be read.
enum Order {
    Read(Behind, oneshot::Sender<Filled<Told>>),
    Look(Snowflake, oneshot::Sender<Result<Option<Snowflake>, Failed>>),
}

/// What came back.
enum Came {
    Page(Snowflake, u64, Result<Vec<Box<RawValue>>, Failed>),
    Looked(oneshot::Sender<Result<Option<Snowflake>, Failed>>, Result<Option<Snowflake>, Failed>),
}

struct Reading {
    discord: Arc<Discord>,
    plan: Backfill<Told>,
    /// By channel: who waits for it.
    waiting: BTreeMap<Snowflake, Waiting>,
    looks: VecDeque<(Snowflake, oneshot::Sender<Result<Option<Snowflake>, Failed>>)>,
    under_way: FuturesUnordered<BoxFuture<'static, Came>>,
    /// What the plan's moments count from: no clock that may jump.
    began: (Moment, Instant),
    numbered: u64,
}

struct Waiting {
    /// Tells an answer to this reading from one to a reading that was given up.
    number: u64,
    tries: u32,
    tell: oneshot::Sender<Filled<Told>>,
}

impl Reader {
    pub fn new(discord: Arc<Discord>, clock: Arc<dyn Clock>, settings: &Settings) -> Self {
        let limits = Limits {
            messages: settings.backfill_messages,
            age: settings.backfill_age(),
            calls_per_second: usize::try_from(settings.backfill_calls_per_second).unwrap_or(1),
            at_once: AT_ONCE,
        };
        let (orders, ordered) = mpsc::unbounded_channel();
        let reading = Reading {
            discord,
            plan: Backfill::new(limits),
            waiting: BTreeMap::new(),
            looks: VecDeque::new(),
            under_way: FuturesUnordered::new(),
            began: (clock.now(), Instant::now()),
            numbered: 0,
        };
        let mut task = JoinSet::new();
        task.spawn(reading.read_on(ordered));
        Self { orders, _task: task }
    }

    /// Reads a channel. None: whoever reads is gone.
    pub async fn read(&self, behind: Behind) -> Option<Filled<Told>> {
        let (tell, told) = oneshot::channel();
        self.orders.send(Order::Read(behind, tell)).ok()?;
        told.await.ok()
    }

    /// Asks for the newest message of a channel. None: whoever reads is gone.
    pub async fn look(&self, channel: Snowflake) -> Option<Result<Option<Snowflake>, Failed>> {
        let (tell, told) = oneshot::channel();
        self.orders.send(Order::Look(channel, tell)).ok()?;
        told.await.ok()
    }
}

impl Reading {
    async fn read_on(mut self, mut ordered: mpsc::UnboundedReceiver<Order>) {
        loop {
            let until = self.ask();
            let pause = async {
                match until {
                    Some(until) => sleep(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                order = ordered.recv() => match order {
                    Some(order) => self.ordered(order),
                    None => return,
                },
                Some(came) = self.under_way.next(), if !self.under_way.is_empty() => self.came(came),
                () = pause => {}
            }
        }
    }

    fn now(&self) -> Moment {
        self.began.0 + self.began.1.elapsed()
    }

    fn ordered(&mut self, order: Order) {
        let now = self.now();
        match order {
            Order::Look(channel, tell) => self.looks.push_back((channel, tell)),
            Order::Read(behind, tell) => {
                // Whoever asked before does not wait any more: its connection ended.
                self.plan.forget(|other| other.channel == behind.channel);
                self.numbered += 1;
                self.waiting.insert(behind.channel, Waiting { number: self.numbered, tries: 0, tell });
                self.plan.add(behind, now);
            }
        }
    }

    /// Asks what may be asked now, and says how long nothing more may, unless an answer comes.
    fn ask(&mut self) -> Option<Duration> {
        loop {
            let now = self.now();
            self.looks.retain(|(_, tell)| !tell.is_closed());
            if !self.looks.is_empty() {
                match self.plan.call(now) {
                    Ok(()) => {
                        self.look();
                        continue;
                    }
                    Err(at) => return Some(at.since(now)),
                }
            }
            match self.plan.next(now) {
                Next::Ask(request) => self.page(request),
                Next::Filled(filled) => {
                    if let Some(waiting) = self.waiting.remove(&filled.channel) {
                        // Whoever is not there any more asks again.
                        let _ = waiting.tell.send(filled);
                    }
                }
                Next::WaitUntil(at) => return Some(at.since(now)),
                Next::AwaitAnswer | Next::Over => return None,
            }
        }
    }

    fn look(&mut self) {
        let Some((channel, tell)) = self.looks.pop_front() else { return };
        let discord = Arc::clone(&self.discord);
        self.under_way.push(Box::pin(async move { Came::Looked(tell, discord.look_at(channel).await) }));
    }

    fn page(&mut self, request: Request) {
        let channel = request.channel;
        let Some(waiting) = self.waiting.get(&channel).filter(|waiting| !waiting.tell.is_closed()) else {
            self.waiting.remove(&channel);
            return self.plan.forget(|behind| behind.channel == channel);
        };
        let (number, discord) = (waiting.number, Arc::clone(&self.discord));
        self.under_way.push(Box::pin(async move { Came::Page(channel, number, discord.page(request).await) }));
    }

    fn came(&mut self, came: Came) {
        let now = self.now();
        let (channel, number, page) = match came {
            Came::Page(channel, number, page) => (channel, number, page),
            Came::Looked(tell, newest) => {
                // Whoever is not there any more asks again.
                let _ = tell.send(newest);
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
fn identified(data: Box<RawValue>) -> Option<(Snowflake, Told)> {
    #[derive(serde::Deserialize)]
    struct Identified {
        id: wire::Id,
    }
    let Identified { id } = serde_json::from_str(data.get()).ok()?;
    Some((id.0, (id.0, data)))
}
