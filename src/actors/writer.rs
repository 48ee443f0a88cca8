//! The one writer to the store. It numbers events and commits them in groups.
//!
//! Requests that arrive while a group is being committed form the next group. If enough requests wait, that group is sent before
//! the first one is answered. Committed events are published, inbound events are dispatched to their channel, and then the
//! request is answered. Requests for one channel take effect in the order in which they were sent.

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

pub use index_removal::{IndexRemoval, remove_from_index, remove_index_entries};
pub use sweep::{Pace, Sweep};

use self::queue::{StoreTask, WriteQueue};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::writer::{Held, Own, WriterMessage};
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::id::{ChannelId, GuildId, Ward};
use crate::journal::reader::{ReadError, Reader};
use crate::ports::store::{Batch, Refusal, Store, StoreError};

#[derive(Debug, Default)]
pub struct Writer;

/// Dispatches committed inbound events to their channel.
pub type Deliver = Arc<dyn Fn(&GuildId, &ChannelId, ChannelMessage) + Send + Sync>;

#[derive(Clone)]
pub struct Arguments {
    pub context: ActorContext,
    /// Dispatches committed inbound events to their channel, in the order of numbers. Must not block.
    pub deliver: Deliver,
    pub bounds: Bounds,
}

/// The limits of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most batches in one group.
    pub group_batches: usize,
    /// The approximate limit of bytes in one group. A single batch can be larger.
    pub group_bytes: usize,
    /// How many requests must wait so that a second group is sent before the first is answered.
    pub ahead: usize,
    /// The most waiting requests. Over this limit inbound events are refused. Events and statements of channels are never refused for this.
    pub waiting: usize,
    /// The `retry_after` of refused requests.
    pub retry_after: Duration,
    /// The most cached journals. Journals with requests in progress stay cached over this limit.
    pub journals: usize,
}

impl Default for Bounds {
    /// A group takes a few milliseconds of disk time. 65,536 requests wait for about three seconds on a slow disk. 100,000 cached journals
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

/// All of this state can be read again from the store.
pub struct State {
    queue: WriteQueue,
    _registration: Registered,
}

impl Actor for Writer {
    type Msg = WriterMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<WriterMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let registration = arguments.context.register(&WriterKey(), &myself);
        Ok(State { queue: WriteQueue::new(arguments), _registration: registration })
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
            WriterMessage::Request(request) => queue.enqueue(request),
            WriterMessage::Own(Own::Taken(ward, held)) => queue.ward_taken(ward, held),
            WriterMessage::Own(Own::Opened(channel_key, head)) => queue.journal_opened(channel_key, head),
            WriterMessage::Own(Own::Committed(number, outcome)) => queue.conclude(number, outcome),
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

/// Hands a group to the store before the next group can be handed over. A task waits for the answer.
async fn hand_over(number: u64, group: Vec<Batch>, store: Arc<dyn Store>, writer: ActorRef<WriterMessage>) {
    let mut committing = Box::pin(async move {
        let outcome = guarded(commit(&*store, group)).await.unwrap_or_else(Err);
        // A writer that has stopped needs no answer.
        let _ = writer.cast(WriterMessage::Own(Own::Committed(number, outcome)));
    });
    // A store takes groups in the order in which they are first polled. This polls once and does not wait.
    let is_done = std::future::poll_fn(|context| Poll::Ready(committing.as_mut().poll(context).is_ready())).await;
    if !is_done {
        tokio::spawn(committing);
    }
}

/// Runs a store task in the background. Its result arrives as a message, even if the store panics.
fn run(task: StoreTask, store: Arc<dyn Store>, writer: ActorRef<WriterMessage>) {
    tokio::spawn(async move {
        let note = match task {
            StoreTask::Take(ward) => {
                Own::Taken(ward, guarded(acquire_ward(&*store, ward)).await.unwrap_or_else(|panic| Err(panic.into())))
            }
            StoreTask::Open(channel_key) => {
                let head = guarded(Reader::new(&*store).head(&channel_key)).await.unwrap_or_else(|panic| Err(panic.into()));
                Own::Opened(channel_key, head)
            }
            // Handed over in order by `hand_over`.
            StoreTask::Commit(..) => return,
            StoreTask::Sweep { channel_key, no, below, reply } => {
                Sweep { store, writer, channel_key, no, below, pace: Pace::AtOnce }.run(reply).await;
                return;
            }
        };
        // A writer that has stopped needs no answer.
        let _ = writer.cast(WriterMessage::Own(note));
    });
}

/// Acquires a ward. This ends every request that an earlier writer had in flight, so that later reads see a final state.
async fn acquire_ward(store: &dyn Store, ward: Ward) -> Result<Held, ReadError> {
    let term = store.acquire_ward(ward).await?;
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
