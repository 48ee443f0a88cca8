//! Requests to the writer and to channels, for callers that are not actors. The functions wait for the answer.

use std::time::Duration;

use ractor::{ActorRef, RpcReplyPort};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::actors::messages::channel::{ChannelMessage, Inspection};
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::messages::writer::{Fence, RedactEvents, Request, WriteError, WriteMeta, WriterMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, WriterKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::{self, IndexRemoval};
use crate::domain::event::Recorded;
use crate::domain::id::{ChannelId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::ports::store::Write;

/// How long a channel can take to answer. After that the caller reads the journal instead.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a running channel can take to handle everything that was dispatched to it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause before the next attempt to reach a channel that is being restored or died.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Writes keys that belong to no journal.
///
/// # Errors
/// Returns an error if the keys were not stored, or if it is unknown whether they were.
pub async fn write_meta(context: &ActorContext, ward: Ward, writes: Vec<Write>) -> Result<(), WriteError> {
    ask(&writer_ref(context)?, |reply| Request::WriteMeta(WriteMeta { ward, writes, reply })).await
}

/// Replaces events by their redacted form, and writes other keys of the channel together with them.
///
/// # Errors
/// Returns an error if the changes were not stored, or if it is unknown whether they were.
pub async fn redact_events(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: Vec<Recorded>,
    writes: Vec<Write>,
) -> Result<(), WriteError> {
    let channel_key = channel_key.clone();
    ask(&writer_ref(context)?, |reply| Request::RedactEvents(RedactEvents { channel_key, events, writes, reply })).await
}

/// Removes people from the index of persons for a stretch that contains no messages of theirs.
///
/// # Errors
/// Returns an error if some of the people may still be in the index. A retry continues where it failed.
pub async fn remove_from_index(
    context: &ActorContext,
    channel_key: &ChannelKey,
    removal: IndexRemoval<'_>,
) -> Result<(), WriteError> {
    writer::remove_from_index(&*context.store, &writer_ref(context)?, channel_key, removal).await
}

/// The writer's address.
///
/// # Errors
/// Returns an error while the writer is being restarted.
pub fn writer_ref(context: &ActorContext) -> Result<ActorRef<WriterMessage>, WriteError> {
    context.directory.find(&WriterKey()).ok_or_else(being_restarted)
}

/// Waits until all earlier requests for the journal are finished and their events are dispatched. Returns the number of the last
/// event.
///
/// # Errors
/// Returns an error while the writer is being restarted, or if the store has failed.
pub async fn fence(context: &ActorContext, channel_key: &ChannelKey) -> Result<Seq, WriteError> {
    ask(&writer_ref(context)?, |reply| Request::Fence(Fence { channel_key: channel_key.clone(), reply })).await
}

/// The state of a channel, if it is running and answers in time. When it answers, the channel has handled every event that was
/// dispatched to it before.
pub async fn look(context: &ActorContext, channel: &ChannelId) -> Option<Inspection> {
    let actor = context.directory.find(&ChannelActorKey(channel.clone()))?;
    let (sender, answer) = oneshot::channel();
    actor.cast(ChannelMessage::Inspect(RpcReplyPort::from(sender))).ok()?;
    tokio::time::timeout(LOOK_TIMEOUT, answer).await.ok()?.ok().map(|look| *look)
}

/// Waits until a running channel has handled every event that was dispatched to it before, and until the resulting events are
/// stored or lost. A sleeping channel reads them from its journal when it wakes.
///
/// # Errors
/// Returns an error if the channel takes too long, or if the store has failed.
pub async fn drained(context: &ActorContext, channel_key: &ChannelKey) -> Result<(), WriteError> {
    let started = Instant::now();
    while context.directory.find(&ChannelActorKey(channel_key.channel.clone())).is_some()
        && look(context, &channel_key.channel).await.is_none()
    {
        if started.elapsed() > DRAIN_TIMEOUT {
            return Err(WriteError::Unavailable("the channel is busy; try again".into()));
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    fence(context, channel_key).await.map(drop)
}

/// Sends a request to the writer, and waits for the answer.
///
/// # Errors
/// Returns the writer's error, or an error while the writer is being restarted.
pub async fn ask<T, E>(writer: &ActorRef<WriterMessage>, request: impl FnOnce(Reply<T, E>) -> Request) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Dropped> + From<WriteError> + Send + 'static,
{
    let (reply, answer) = Reply::awaited();
    writer.cast(WriterMessage::Request(request(reply))).map_err(|_| being_restarted())?;
    answer.await.unwrap_or_else(|_| Err(Dropped.into()))
}

/// Sends a message to the writer.
///
/// # Errors
/// Returns an error while the writer is being restarted. Nothing was stored then.
pub fn send_to_writer(context: &ActorContext, request: Request) -> Result<(), WriteError> {
    writer_ref(context)?.cast(WriterMessage::Request(request)).map_err(|_| being_restarted())
}

fn being_restarted() -> WriteError {
    WriteError::Unavailable("the writer is being restarted".into())
}
