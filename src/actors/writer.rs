//! The scribe: the one writer to the store, which numbers events and commits them in groups.
//!
//! Requests that arrive while a group is on its way to the store form the next one; when they are many, it follows before the first is
//! answered. What is committed is published, handed to its channel
//! if it came from outside, and answered, in this order. Requests for one channel take effect in the order in which they were sent.

mod desk;
mod measures;
mod plan;
pub mod reaching;
mod request;
mod shelf;
mod sweep;
mod unlisting;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};

pub use sweep::{Pace, Sweep};
pub use unlisting::{Leaving, strike, unlist};

use self::desk::{Desk, Errand};
use self::request::Request;
use crate::actors::messages::writer::{Held, Own, ScribeMessage};
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
pub struct Scribe;

/// Takes an event from outside, and when it was committed, to its channel.
pub type Deliver = Arc<dyn Fn(&GuildId, &ChannelId, Recorded, Moment) + Send + Sync>;

/// What the scribe works with.
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
    /// It can no longer be written, or nobody knows what it holds; this scribe writes nothing any more. What remains is to open the
    /// store again.
    StoreFailed(String),
}

/// How much the scribe takes on.
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

/// What the scribe keeps. All of it can be read again from the store.
pub struct State {
    desk: Desk,
    _counted: Counted,
}

impl Actor for Scribe {
    type Msg = ScribeMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, _: ActorRef<ScribeMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let counted = arguments.instruments.actors.one([Sort::Scribe.as_str()]);
        Ok(State { desk: Desk::new(arguments), _counted: counted })
    }

    async fn handle(
        &self,
        myself: ActorRef<ScribeMessage>,
        message: ScribeMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::Scribe);
        let desk = &mut state.desk;
        match message {
            ScribeMessage::Accept(accept) => desk.accept(accept),
            ScribeMessage::Post(post) => desk.post(post),
            ScribeMessage::Record(record) => desk.take_in(Request::Record(record)),
            ScribeMessage::Administer(administer) => desk.take_in(Request::Administer(administer)),
            ScribeMessage::DeleteChannel(delete) => desk.take_in(Request::Delete(delete)),
            ScribeMessage::Scrub(scrub) => desk.take_in(Request::Scrub(scrub)),
            ScribeMessage::Expire(expire) => desk.take_in(Request::Expire(expire)),
            ScribeMessage::Unlist(unlist) => desk.take_in(Request::Unlist(unlist)),
            ScribeMessage::Fence(fence) => desk.take_in(Request::Fence(fence)),
            ScribeMessage::Own(note) => match note {
                Own::Taken(ward, held) => desk.hold(ward, held),
                Own::Opened(channel_key, head) => desk.open(channel_key, head),
                Own::Committed(number, outcome) => desk.conclude(number, outcome),
                Own::Swept { channel_key, below, reply } => desk.take_in(Request::Swept { channel_key, below, reply }),
            },
        }
        if let Some((number, group)) = desk.form_group() {
            desk.errands.push(Errand::Commit(number, group));
        }
        for errand in std::mem::take(&mut desk.errands) {
            match errand {
                Errand::Commit(number, group) => hand_over(number, group, desk.store().clone(), myself.clone()).await,
                errand => run(errand, desk.store().clone(), myself.clone()),
            }
        }
        Ok(())
    }
}

/// Hands a group to the store before another one can be, and lets a task wait for the answer.
async fn hand_over(number: u64, group: Vec<Batch>, store: Arc<dyn Store>, scribe: ActorRef<ScribeMessage>) {
    let mut committing = Box::pin(async move {
        let outcome = guarded(commit(&*store, group)).await.unwrap_or_else(Err);
        // A scribe that is gone needs no answer.
        let _ = scribe.cast(ScribeMessage::Own(Own::Committed(number, outcome)));
    });
    // A store takes groups in the order in which they are polled first. Nothing is waited for here.
    let is_done = std::future::poll_fn(|context| Poll::Ready(committing.as_mut().poll(context).is_ready())).await;
    if !is_done {
        tokio::spawn(committing);
    }
}

/// Lets a task wait for the store; its answer comes back as a message, also when the store panics.
fn run(errand: Errand, store: Arc<dyn Store>, scribe: ActorRef<ScribeMessage>) {
    tokio::spawn(async move {
        let note = match errand {
            Errand::Take(ward) => Own::Taken(ward, guarded(take(&*store, ward)).await.unwrap_or_else(|panic| Err(panic.into()))),
            Errand::Open(channel_key) => {
                let head = guarded(Reader::new(&*store).head(&channel_key)).await.unwrap_or_else(|panic| Err(panic.into()));
                Own::Opened(channel_key, head)
            }
            // Handed over in order, above.
            Errand::Commit(..) => return,
            Errand::Sweep { channel_key, no, below, reply } => {
                Sweep { store, scribe, channel_key, no, below, pace: Pace::AtOnce }.run(reply).await;
                return;
            }
        };
        // A scribe that is gone needs no answer.
        let _ = scribe.cast(ScribeMessage::Own(note));
    });
}

/// Whatever an earlier scribe left on its way is settled by taking the ward, so what is read after it is certain.
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
