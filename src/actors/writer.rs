//! The writer: the one writer to the store, which numbers events and commits them in groups.
//!
//! Requests that arrive while a group is on its way to the store form the next one; when they are many, it follows before the first is
//! answered. What is committed is published, handed to its channel
//! if it came from outside, and answered, in this order. Requests for one channel take effect in the order in which they were sent.

mod index_removal;
mod journal_cache;
mod measures;
mod plan;
mod queue;
mod request;
pub mod requests;
mod sweep;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};

pub use index_removal::{Leaving, remove_from_index, strike};
pub use sweep::{Pace, Sweep};

use self::queue::{StoreTask, WriteQueue};
use self::request::Request;
use crate::actors::messages::writer::{Held, Own, WriterMessage};
use crate::actors::runtime::directory::{Address, Sort};
use crate::actors::runtime::hub::Hub;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::event::Recorded;
use crate::domain::id::{ChannelId, GuildId, Ward};
use crate::domain::moment::Moment;
use crate::journal::reader::{ReadError, Reader};
use crate::ports::chat_platform::Platforms;
use crate::ports::clock::Clock;
use crate::ports::store::{Batch, Refusal, Store, StoreError};
use crate::telemetry::instruments::Instruments;
use crate::telemetry::instruments::kinds::Counted;

/// The actor. What it works with comes with its [`Arguments`].
#[derive(Debug, Default)]
pub struct Writer;

/// Takes an event from outside, and when it was committed, to its channel.
pub type Deliver = Arc<dyn Fn(&GuildId, &ChannelId, Recorded, Moment) + Send + Sync>;

/// What the writer works with.
#[derive(Clone)]
pub struct Arguments {
    /// Where it writes. It takes every ward that it is asked to write to.
    pub store: Arc<dyn Store>,
    /// Tells when something was heard.
    pub clock: Arc<dyn Clock>,
    /// Where what is committed is published.
    pub hub: Hub,
    /// By whose names what is said is measured.
    pub platforms: Platforms,
    /// What it measures with.
    pub instruments: Instruments,
    /// Takes a committed event from outside to its channel, in the order of numbers. Must not wait.
    pub deliver: Deliver,
    /// Hears what happened to the store as a whole. Must not wait.
    pub report: Arc<dyn Fn(Fate) + Send + Sync>,
    /// How much is taken on.
    pub bounds: Bounds,
}

/// What happened to the store as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It can no longer be written, or nobody knows what it holds; this writer writes nothing any more. What remains is to open the
    /// store again.
    StoreFailed(String),
}

/// How much the writer takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Batches in one group, at most.
    pub group_batches: usize,
    /// Bytes in one group, about; one batch alone may be larger.
    pub group_bytes: usize,
    /// Requests that have to wait for a group to follow one that is not answered yet.
    pub ahead: usize,
    /// Requests that wait; with more, no event from outside is accepted. What channels make and post is never refused for this.
    pub waiting: usize,
    /// What is told to who is refused.
    pub retry_after: Duration,
    /// Journals at hand, when none of them is written to.
    pub journals: usize,
}

impl Default for Bounds {
    /// A group is worth a few milliseconds of disk; 65,536 requests wait for about three seconds on a slow disk; 100,000 journals at hand
    /// take some 60 MB, with five people in each.
    fn default() -> Self {
        Self {
            group_batches: 1_024,
            group_bytes: 4 << 20,
            ahead: 64,
            waiting: 65_536,
            retry_after: Duration::from_secs(1),
            journals: 100_000,
        }
    }
}

/// What the writer keeps. All of it can be read again from the store.
pub struct State {
    queue: WriteQueue,
    _counted: Counted,
}

impl Actor for Writer {
    type Msg = WriterMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, _: ActorRef<WriterMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let counted = arguments.instruments.actors.one([Sort::Writer.as_str()]);
        Ok(State { queue: WriteQueue::new(arguments), _counted: counted })
    }

    async fn handle(
        &self,
        myself: ActorRef<WriterMessage>,
        message: WriterMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::Writer);
        let queue = &mut state.queue;
        match message {
            WriterMessage::Accept(accept) => queue.accept(accept),
            WriterMessage::Post(post) => queue.post(post),
            WriterMessage::Record(record) => queue.take_in(Request::Record(record)),
            WriterMessage::WriteMeta(write_meta) => queue.take_in(Request::WriteMeta(write_meta)),
            WriterMessage::DeleteChannel(delete) => queue.take_in(Request::Delete(delete)),
            WriterMessage::RedactEvents(redact_events) => queue.take_in(Request::RedactEvents(redact_events)),
            WriterMessage::DeleteExpired(expire) => queue.take_in(Request::DeleteExpired(expire)),
            WriterMessage::RemoveFromIndex(remove_from_index) => queue.take_in(Request::RemoveFromIndex(remove_from_index)),
            WriterMessage::Fence(fence) => queue.take_in(Request::Fence(fence)),
            WriterMessage::Own(note) => match note {
                Own::Taken(ward, held) => queue.hold(ward, held),
                Own::Opened(channel_key, head) => queue.open(channel_key, head),
                Own::Committed(number, outcome) => queue.conclude(number, outcome),
                Own::Swept { channel_key, below, reply } => queue.take_in(Request::Swept { channel_key, below, reply }),
            },
        }
        if let Some((number, group)) = queue.form_group() {
            queue.tasks.push(StoreTask::Commit(number, group));
        }
        for task in std::mem::take(&mut queue.tasks) {
            match task {
                StoreTask::Commit(number, group) => hand_over(number, group, queue.store().clone(), myself.clone()).await,
                task => run(task, queue.store().clone(), myself.clone()),
            }
        }
        Ok(())
    }
}

/// Hands a group to the store before another one can be, and lets a task wait for the answer.
async fn hand_over(number: u64, group: Vec<Batch>, store: Arc<dyn Store>, writer: ActorRef<WriterMessage>) {
    let mut committing = Box::pin(async move {
        let outcome = guarded(commit(&*store, group)).await.unwrap_or_else(Err);
        // A writer that is gone needs no answer.
        let _ = writer.cast(WriterMessage::Own(Own::Committed(number, outcome)));
    });
    // A store takes groups in the order in which they are polled first. Nothing is waited for here.
    let is_done = std::future::poll_fn(|context| Poll::Ready(committing.as_mut().poll(context).is_ready())).await;
    if !is_done {
        tokio::spawn(committing);
    }
}

/// Lets a task wait for the store; its answer comes back as a message, also when the store panics.
fn run(task: StoreTask, store: Arc<dyn Store>, writer: ActorRef<WriterMessage>) {
    tokio::spawn(async move {
        let note = match task {
            StoreTask::Take(ward) => {
                Own::Taken(ward, guarded(take(&*store, ward)).await.unwrap_or_else(|panic| Err(panic.into())))
            }
            StoreTask::Open(channel_key) => {
                let head = guarded(Reader::new(&*store).head(&channel_key)).await.unwrap_or_else(|panic| Err(panic.into()));
                Own::Opened(channel_key, head)
            }
            // Handed over in order, above.
            StoreTask::Commit(..) => return,
            StoreTask::Sweep { channel_key, no, below, reply } => {
                Sweep { store, writer, channel_key, no, below, pace: Pace::AtOnce }.run(reply).await;
                return;
            }
        };
        // A writer that is gone needs no answer.
        let _ = writer.cast(WriterMessage::Own(note));
    });
}

/// Whatever an earlier writer left on its way is settled by taking the ward, so what is read after it is certain.
async fn take(store: &dyn Store, ward: Ward) -> Result<Held, ReadError> {
    let term = store.take(ward).await?;
    let next_channel = Reader::new(store).next_channel(ward).await?;
    Ok(Held { term, next_channel, usages: 0 })
}

async fn commit(store: &dyn Store, group: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
    let batches = group.len();
    let results = store.commit(group).await?;
    if results.len() == batches {
        Ok(results)
    } else {
        Err(StoreError::Unknown(format!("{batches} batches were committed, {} were answered", results.len())))
    }
}

async fn guarded<T>(work: impl Future<Output = T>) -> Result<T, StoreError> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| StoreError::Unknown("the store panicked".into()))
}

#[cfg(test)]
mod tests;
