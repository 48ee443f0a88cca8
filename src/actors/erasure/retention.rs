//! What was kept for long enough is deleted: the oldest events of each journal, as long as nothing that goes on needs them.
//!
//! First a journal's low-water mark rises, and with it a snapshot is written that contains all and lets go of what stands below: one batch.
//! It is folded from the record, so that no channel has to be woken for it; one that is awake lets go, too. Only then what lies below is
//! taken away, a page at a time, each followed by as long a pause. Whatever interrupts it, the journal is whole above its mark, and the next
//! pass goes on.

mod names;

use std::collections::BTreeSet;
use std::time::Duration;

pub use self::names::without_person;
use self::names::{forget_who_addressed, forget_who_is_listed};
use crate::actors::channel::folded::folded;
use crate::actors::messages::channel::{ChannelMessage, Inspection};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{DeleteExpired, MetaWriteError, WriteError, WriterMessage};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::{fence, look, send_to_writer, writer_ref};
use crate::actors::writer::{Pace, Sweep};
use crate::domain::event::Recorded;
use crate::domain::id::{GuildId, Seq, Ward};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{Head, Range, ReadError, Reader, Restored};
use crate::journal::record::{ChannelRecord, SnapshotRecord, decode, decode_event, encode_snapshot};
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::telemetry::instruments::NONE;
use crate::telemetry::plain::Plain;

/// After a start others come first.
const FIRST_PASS_AFTER: Duration = Duration::from_secs(60);
/// Between two passes: what is kept is kept a day longer at most.
const BETWEEN_PASSES: Duration = Duration::from_secs(24 * 60 * 60);
/// So many records are read at once.
const PAGE: usize = 512;
/// So many events are looked at for one that can be read.
const NEIGHBOURS: usize = 16;

/// From when on what happened in a guild is kept; none: everything is.
pub type KeptFrom<'a> = &'a (dyn Fn(&GuildId) -> Option<Moment> + Sync);

/// What a pass came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Channels of which something was deleted.
    pub channels: u64,
    pub events: u64,
    /// Channels that could not be looked through; the next pass tries again.
    pub failed: u64,
}

/// Why something was not deleted, or not wholly; the next pass goes on where it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDeleted {
    /// The record cannot be read.
    #[error(transparent)]
    Unread(#[from] ReadError),
    /// It was not stored, or may not have been.
    #[error(transparent)]
    Unstored(#[from] WriteError),
    /// The same of what is nobody's journal.
    #[error(transparent)]
    MetaWriteError(#[from] MetaWriteError),
}

/// Deletes once a day what was kept for long enough, for as long as the runtime lives. Without `storage.retention_days`, or one for a guild,
/// it does nothing.
pub fn keep(context: ActorContext) {
    if context.settings.storage.keeps_everything() {
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(FIRST_PASS_AFTER).await;
        loop {
            let passing = context.clone();
            // In a task of its own: if a pass dies, the next one comes all the same.
            match tokio::spawn(async move { pass(&passing).await }).await {
                Ok(Passed { channels: 0, failed: 0, .. }) => tracing::debug!("nothing was kept for too long"),
                Ok(Passed { channels, events, failed: 0 }) => {
                    tracing::info!(channels, events, "what was kept for long enough was deleted")
                }
                Ok(Passed { channels, events, failed }) => {
                    tracing::warn!(
                        channels,
                        events,
                        failed,
                        "what was kept for long enough was deleted, but not everywhere; the next pass tries again"
                    );
                }
                Err(error) => tracing::error!(%error, "deleting what was kept for long enough failed; the next pass tries again"),
            }
            tokio::time::sleep(BETWEEN_PASSES).await;
        }
    });
}

/// Deletes in every guild what was kept for long enough there, as the settings say.
pub async fn pass(context: &ActorContext) -> Passed {
    pass_older(context, &|guild| kept_from(context, guild)).await
}

/// Deletes in each guild what is older than a moment; none: everything is kept there.
pub async fn pass_older(context: &ActorContext, kept_from: KeptFrom<'_>) -> Passed {
    let mut passed = Passed::default();
    for ward in (0..=u8::MAX).map(Ward) {
        if let Err(error) = pass_ward(context, kept_from, ward, &mut passed).await {
            passed.failed += 1;
            tracing::warn!(ward = ward.0, %error, "channels cannot be looked through for what was kept for long enough");
        }
    }
    let instruments = context.recorder.instruments();
    instruments.retention_events.add(passed.events, NONE);
    instruments.retention_failures.add(passed.failed, NONE);
    instruments.retention_passed.set(context.clock.now().as_micros() / 1_000_000, NONE);
    passed
}

async fn pass_ward(context: &ActorContext, kept_from: KeptFrom<'_>, ward: Ward, passed: &mut Passed) -> Result<(), NotDeleted> {
    let all = Key::new(ward, Kind::ChannelOf);
    let mut from = all.clone();
    let mut guilds = BTreeSet::new();
    loop {
        let page = context.store.scan(from.clone(), all.clone().end(), false, PAGE).await.map_err(ReadError::from)?;
        let Some((last, _)) = page.last() else { break };
        from = key::successor(last);
        for (key, value) in &page {
            let record: ChannelRecord = match decode(key, value) {
                Ok(record) => record,
                Err(error) => {
                    passed.failed += 1;
                    tracing::warn!(%error, "whose channel this is cannot be read: what is kept there is not deleted");
                    continue;
                }
            };
            let Some(before) = kept_from(&record.guild) else { continue };
            let channel_key = ChannelKey::new(&record.guild, &record.channel);
            guilds.insert(record.guild);
            pass_channel(context, channel_key, before, passed).await;
        }
    }
    for guild in guilds {
        let Some(before) = kept_from(&guild) else { continue };
        if let Err(error) = forget_who_addressed(context, &guild, before).await {
            passed.failed += 1;
            tracing::warn!(guild = %Plain(guild.as_str()), %error, "who addressed whom here is not forgotten yet");
        }
        if let Err(error) = forget_who_is_listed(context, &guild).await {
            passed.failed += 1;
            tracing::warn!(guild = %Plain(guild.as_str()), %error, "who said something here that is gone is not forgotten yet");
        }
    }
    Ok(())
}

async fn pass_channel(context: &ActorContext, channel_key: ChannelKey, before: Moment, passed: &mut Passed) {
    let (whose, own) = (channel_key.clone(), context.clone());
    // In a task of its own: a channel whose record kills whoever reads it holds up no other.
    let deleted = tokio::spawn(async move { delete_before(&own, &whose, before).await }).await;
    let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
    match deleted {
        Ok(Ok(0)) => {}
        Ok(Ok(events)) => {
            passed.channels += 1;
            passed.events += events;
        }
        Ok(Err(error)) => {
            passed.failed += 1;
            tracing::warn!(%guild, %channel, %error, "what was kept here for long enough is not deleted yet");
        }
        Err(error) => {
            passed.failed += 1;
            tracing::error!(%guild, %channel, %error, "what was kept here for long enough is not deleted yet");
        }
    }
}

/// What is older than this is not kept in a guild by the settings.
pub fn kept_from(context: &ActorContext, guild: &GuildId) -> Option<Moment> {
    let kept = context.settings.storage.retention_of(guild)?;
    Some(Moment::from_micros(context.clock.now().as_micros().saturating_sub(kept.as_micros() as u64)))
}

/// Deletes of a channel what happened before a moment, as far as nothing that goes on needs it; and what a deletion of the whole channel
/// left, because it was interrupted. Tells how many events that was.
///
/// # Errors
/// [`NotDeleted`].
pub async fn delete_before(context: &ActorContext, channel_key: &ChannelKey, before: Moment) -> Result<u64, NotDeleted> {
    let reader = Reader::new(&*context.store);
    let Some(below) = raise_mark(context, &reader, channel_key, before).await? else { return Ok(0) };
    let Some(no) = reader.channel_no(channel_key).await? else { return Ok(0) };
    let begins = Key::event(channel_key.ward(), no, Seq::NONE);
    let is_clear = context
        .store
        .scan(begins, Key::event(channel_key.ward(), no, below), false, 1)
        .await
        .map_err(ReadError::from)?
        .is_empty();
    if is_clear {
        return Ok(0);
    }
    let writer = writer_ref(context)?;
    let sweep = Sweep { store: context.store.clone(), writer, channel_key: channel_key.clone(), no, below, pace: Pace::Patient };
    Ok(sweep.remove_all().await?)
}

/// Raises a journal's low-water mark to what has to be kept, and tells where it is then; none: nothing can go.
async fn raise_mark(
    context: &ActorContext,
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    before: Moment,
) -> Result<Option<Seq>, NotDeleted> {
    // Nobody takes words out meanwhile and writes the snapshot again.
    let _turn = context.rewrite_locks.of(channel_key).await;
    let head = reader.head(channel_key).await?;
    let Some(no) = head.no else { return Ok(None) };
    if head.swept_below > Seq::NONE {
        return Ok(Some(head.swept_below));
    }
    let mut kept = kept_after(reader, channel_key, &head, before).await?;
    if kept <= head.lowest.max(Seq(1)) {
        kept = oldest_kept(context, channel_key.ward(), no, kept, before).await?;
    }
    // Lest what it has in mind comes on record again with its next snapshot.
    if let Some(channel) = context.directory.find(&ChannelActorKey(channel_key.channel.clone())) {
        let _ = channel.cast(ChannelMessage::Expired(kept));
    }
    let is_older_on_record = kept > head.lowest.max(Seq(1));
    if is_older_on_record || snapshot_holds_older(context, &key::snapshot(channel_key.ward(), no), kept).await? {
        renew_snapshot(context, reader, channel_key, &head, kept).await
    } else {
        // What an interrupted pass has left is swept.
        Ok(Some(kept.min(head.lowest)))
    }
}

/// The first event below a mark that is not too old: a loss that was accepted has left it there.
async fn oldest_kept(context: &ActorContext, ward: Ward, no: ChannelNo, mark: Seq, before: Moment) -> Result<Seq, ReadError> {
    let (mut from, end) = (Key::event(ward, no, Seq::NONE), Key::event(ward, no, mark));
    loop {
        let page = context.store.scan(from, end.clone(), false, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(mark) };
        let mut events = page.iter().filter_map(|(key, value)| decode_event(key, value).ok());
        if let Some(kept) = events.find(|recorded| recorded.at >= before) {
            return Ok(kept.seq);
        }
        from = key::successor(last);
    }
}

async fn snapshot_holds_older(context: &ActorContext, key: &Key, kept: Seq) -> Result<bool, ReadError> {
    let Some(stored) = context.store.get(key.clone()).await? else { return Ok(false) };
    let SnapshotRecord { mut conversation, .. } = decode(key, &stored)?;
    let below = kept.min(conversation.needed_from());
    Ok(conversation.let_go(below))
}

/// Folds a channel's record, whether it sleeps, is awake, or is never woken again, and writes its snapshot anew without what is older,
/// together with the mark: whoever reads after that needs nothing from below.
async fn renew_snapshot(
    context: &ActorContext,
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    head: &Head,
    kept: Seq,
) -> Result<Option<Seq>, NotDeleted> {
    // A channel that is awake has let the words go when it answers, and what it wrote before is stored when the writer answers: no
    // snapshot with these words comes after this one.
    let is_awake = || context.directory.find(&ChannelActorKey(channel_key.channel.clone())).is_some();
    let was_awake = is_awake();
    let look = look(context, &channel_key.channel).await;
    fence(context, channel_key).await?;
    let mut restored = reader.restore(channel_key).await?;
    let unhandled = (was_awake || is_awake()).then(|| leave_unhandled(&mut restored, look.as_ref())).flatten();
    // A channel that is awake may have written a newer snapshot after its head was read.
    let last = restored.snapshot.as_ref().map_or(restored.head, |snapshot| snapshot.made.max(restored.head));
    let answered = restored.owed.iter().filter_map(|(_, record)| record.messages.iter().min()).min().copied();
    let mut conversation = folded(context, channel_key, restored);
    let kept_for = [answered, unhandled].into_iter().flatten().min().unwrap_or(last.next());
    let needed = kept_for.min(last.next()).min(conversation.needed_from());
    let gone = kept.min(needed);
    let below = gone.max(head.lowest);
    if below == Seq::NONE {
        return Ok(None);
    }
    if conversation.let_go(gone) || below > head.lowest {
        let snapshot = Some(encode_snapshot(last, &conversation));
        let (reply, done) = Reply::awaited();
        send_to_writer(
            context,
            WriterMessage::DeleteExpired(DeleteExpired { channel_key: channel_key.clone(), below, snapshot, reply }),
        )?;
        done.await.unwrap_or(Err(WriteError::Unknown))?;
    }
    Ok(Some(gone))
}

/// Leaves out what a channel that is awake may not have handled yet, and tells the first of it: what the channel makes next may follow from
/// less, and is folded before that.
fn leave_unhandled(restored: &mut Restored, look: Option<&Inspection>) -> Option<Seq> {
    let made = restored.events.iter().filter(|recorded| !recorded.event.is_heard()).map(|recorded| recorded.handled);
    let known = restored.snapshot.iter().map(|snapshot| snapshot.handled);
    let looked = look.map(|look| look.conversation.handled());
    let handled = made.chain(known).chain(looked).max().unwrap_or(Seq::NONE);
    let is_unhandled = |recorded: &Recorded| recorded.event.is_heard() && recorded.seq > handled;
    let first = restored.events.iter().filter(|recorded| is_unhandled(recorded)).map(|recorded| recorded.seq).min();
    restored.events.retain(|recorded| !is_unhandled(recorded));
    first
}

/// The number of the first event that happened at this moment or later, found by halving; one past the end, if there is none.
async fn kept_after(reader: &Reader<'_>, channel_key: &ChannelKey, head: &Head, before: Moment) -> Result<Seq, ReadError> {
    let (mut low, mut high) = (head.lowest.max(Seq(1)), head.last.next());
    // Mostly nothing is too old.
    let mut middle = low;
    while low < high {
        // What cannot be read is as old as what comes next.
        let range = Range { after: Seq(middle.0 - 1), before: Some(high), limit: NEIGHBOURS, newest_first: false };
        match reader.legible(channel_key, range).await?.events.first() {
            Some(recorded) if recorded.at < before => low = recorded.seq.next(),
            _ => high = middle,
        }
        middle = Seq(low.0 + high.0.saturating_sub(low.0) / 2);
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::Event;

    #[test]
    fn what_a_channel_that_is_awake_may_not_have_handled_is_left_to_it() {
        let event = |seq, handled, event| Recorded { seq: Seq(seq), at: Moment::ZERO, handled: Seq(handled), turn: None, event };
        let made = || Event::Summarised { upto: Seq(1), text: "Talk.".into() };
        let events =
            vec![event(1, 1, Event::Cleared), event(3, 1, made()), event(2, 2, Event::Cleared), event(4, 4, Event::Cleared)];
        let mut restored = Restored { events: events.clone(), head: Seq(4), ..Restored::default() };
        let mut further =
            Restored { events: [&events[..], &[event(5, 2, made())]].concat(), head: Seq(5), ..Restored::default() };

        let first = leave_unhandled(&mut restored, None);
        let later = leave_unhandled(&mut further, None);

        assert_eq!((first, restored.events), (Some(Seq(2)), events[..2].to_vec()));
        assert_eq!(later, Some(Seq(4)));
        assert_eq!(further.events.iter().map(|recorded| recorded.seq.0).collect::<Vec<_>>(), [1, 3, 2, 5]);
    }
}
