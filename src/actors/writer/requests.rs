//! Reaching the writer and the channels, for whoever is no actor: asks, and waits for the answer.

use std::time::Duration;

use ractor::{ActorRef, RpcReplyPort};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::actors::messages::channel::{ChannelMessage, Inspection};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Fence, MetaWriteError, RedactEvents, WriteError, WriteMeta, WriterMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, WriterKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::{self, Leaving};
use crate::domain::event::Recorded;
use crate::domain::id::{ChannelId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::ports::store::Write;

/// How long an actor is waited for before the record is asked instead.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a channel is waited for that is awake and has to have handled something.
const SETTLING: Duration = Duration::from_secs(30);

/// One that reads its record, or died, is asked again after so long.
const ASKED_AGAIN: Duration = Duration::from_millis(20);

/// Writes what is nobody's journal.
///
/// # Errors
/// It was not stored, or may not have been.
pub async fn write_meta(context: &ActorContext, ward: Ward, writes: Vec<Write>) -> Result<(), MetaWriteError> {
    let (reply, done) = Reply::awaited();
    send_to_writer(context, WriterMessage::WriteMeta(WriteMeta { ward, writes, fresh: Vec::new(), reply }))?;
    done.await.unwrap_or(Err(WriteError::Unknown.into()))
}

/// Writes events again, as they are to read from now on, and other keys of the channel with them.
///
/// # Errors
/// They were not stored, or may not have been.
pub async fn redact_events(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: Vec<Recorded>,
    writes: Vec<Write>,
) -> Result<(), WriteError> {
    let (reply, done) = Reply::awaited();
    send_to_writer(
        context,
        WriterMessage::RedactEvents(RedactEvents { channel_key: channel_key.clone(), events, writes, reply }),
    )?;
    done.await.unwrap_or(Err(WriteError::Unknown))
}

/// Takes people out of the index of persons of whom nothing is left in a stretch.
///
/// # Errors
/// Some of them may still be listed: the same again goes on.
pub async fn remove_from_index(context: &ActorContext, channel_key: &ChannelKey, leaving: Leaving<'_>) -> Result<(), WriteError> {
    writer::remove_from_index(&*context.store, &writer_ref(context)?, channel_key, leaving).await
}

/// Who writes.
///
/// # Errors
/// It is being restarted: nothing was stored.
pub fn writer_ref(context: &ActorContext) -> Result<ActorRef<WriterMessage>, WriteError> {
    context.directory.find(&WriterKey()).ok_or_else(being_restarted)
}

/// The number of the journal's last event, once everything that was asked for before is settled and handed to its channel.
///
/// # Errors
/// The writer is being restarted, or writes nothing any more.
pub async fn fence(context: &ActorContext, channel_key: &ChannelKey) -> Result<Seq, WriteError> {
    let (reply, done) = Reply::awaited();
    send_to_writer(context, WriterMessage::Fence(Fence { channel_key: channel_key.clone(), reply }))?;
    done.await.unwrap_or(Err(WriteError::Unknown))
}

/// How a channel stands, if it is awake and answers in time. It has then handled all that was handed to it before.
pub async fn look(context: &ActorContext, channel: &ChannelId) -> Option<Inspection> {
    let actor = context.directory.find(&ChannelActorKey(channel.clone()))?;
    let (sender, answer) = oneshot::channel();
    actor.cast(ChannelMessage::Inspect(RpcReplyPort::from(sender))).ok()?;
    tokio::time::timeout(PATIENCE, answer).await.ok()?.ok().map(|look| *look)
}

/// Waits until a channel that is awake has handled all that was handed to it before, and what it made of that is stored or lost. One that
/// sleeps finds it on record when it wakes.
///
/// # Errors
/// It has too much before it, or nothing is written any more.
pub async fn drained(context: &ActorContext, channel_key: &ChannelKey) -> Result<(), WriteError> {
    let begun = Instant::now();
    while context.directory.find(&ChannelActorKey(channel_key.channel.clone())).is_some()
        && look(context, &channel_key.channel).await.is_none()
    {
        if begun.elapsed() > SETTLING {
            return Err(WriteError::Unavailable("the channel has too much before it; do the same again".into()));
        }
        tokio::time::sleep(ASKED_AGAIN).await;
    }
    fence(context, channel_key).await.map(drop)
}

/// Hands something to the writer.
///
/// # Errors
/// It is being restarted: nothing was stored.
pub fn send_to_writer(context: &ActorContext, message: WriterMessage) -> Result<(), WriteError> {
    writer_ref(context)?.cast(message).map_err(|_| being_restarted())
}

fn being_restarted() -> WriteError {
    WriteError::Unavailable("the writer is being restarted".into())
}
