//! Requests to the writer and the channels for callers that are not actors. They wait for the answer.

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

/// How long a channel can take to answer. After that the caller reads the record instead.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a running channel can take to handle everything that was dispatched to it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause before a channel is asked again that reads its record or died.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Writes keys that belong to no journal.
///
/// # Errors
/// It was not stored, or may not have been.
pub async fn write_meta(context: &ActorContext, ward: Ward, writes: Vec<Write>) -> Result<(), WriteError> {
    ask(&writer_ref(context)?, |reply| Request::WriteMeta(WriteMeta { ward, writes, reply })).await
}

/// Replaces events by their redacted form, and writes other keys of the channel with them.
///
/// # Errors
/// They were not stored, or may not have been.
pub async fn redact_events(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: Vec<Recorded>,
    writes: Vec<Write>,
) -> Result<(), WriteError> {
    let channel_key = channel_key.clone();
    ask(&writer_ref(context)?, |reply| Request::RedactEvents(RedactEvents { channel_key, events, writes, reply })).await
}

/// Removes people from the index of persons when nothing that they said is left in a stretch.
///
/// # Errors
/// Some of the people may still be in the index. Calling this again continues.
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
/// The writer is being restarted.
pub fn writer_ref(context: &ActorContext) -> Result<ActorRef<WriterMessage>, WriteError> {
    context.directory.find(&WriterKey()).ok_or_else(being_restarted)
}

/// Waits until all earlier requests for the journal are finished and their events are dispatched. Returns the number of the last event.
///
/// # Errors
/// The writer is being restarted, or the store has failed.
pub async fn fence(context: &ActorContext, channel_key: &ChannelKey) -> Result<Seq, WriteError> {
    ask(&writer_ref(context)?, |reply| Request::Fence(Fence { channel_key: channel_key.clone(), reply })).await
}

/// The state of a channel, if it is running and answers in time. It has then handled everything that was dispatched to it before.
pub async fn look(context: &ActorContext, channel: &ChannelId) -> Option<Inspection> {
    let actor = context.directory.find(&ChannelActorKey(channel.clone()))?;
    let (sender, answer) = oneshot::channel();
    actor.cast(ChannelMessage::Inspect(RpcReplyPort::from(sender))).ok()?;
    tokio::time::timeout(LOOK_TIMEOUT, answer).await.ok()?.ok().map(|look| *look)
}

/// Waits until a running channel has handled everything that was dispatched to it before, and the resulting events are stored or lost. A
/// channel that sleeps reads them from its record when it wakes.
///
/// # Errors
/// The channel takes too long, or the store has failed.
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
/// What the writer answers, or that it is being restarted.
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
/// The writer is being restarted. Nothing was stored.
pub fn send_to_writer(context: &ActorContext, request: Request) -> Result<(), WriteError> {
    writer_ref(context)?.cast(WriterMessage::Request(request)).map_err(|_| being_restarted())
}

fn being_restarted() -> WriteError {
    WriteError::Unavailable("the writer is being restarted".into())
}
