//! Deletes expired events: the oldest events of each journal, unless a conversation still needs them.
//!
//! The first batch raises the journal's low-water mark and writes a snapshot that covers everything below the mark, without
//! expired text. The snapshot is folded from the journal, so no channel has to be woken. A running channel drops the expired
//! events as well. Then the events below the mark are swept page by page. After each page, the sweep pauses for as long as the
//! page took. If a pass is interrupted, the journal is complete above its mark, and the next pass continues.

mod clock;
mod names;

use std::time::Duration;

use tokio::time::Instant;

use self::clock::Trust;
pub use self::names::without_person;
use self::names::{remove_people_from_usage, remove_stale_index_entries, remove_told};
use crate::actors::channel::folded::folded;
use crate::actors::erasure::deletion::{RewriteError, expire_sources};
use crate::actors::messages::channel::{ChannelMessage, Inspection};
use crate::actors::messages::writer::{DeleteExpired, Request};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::{ask, fence, look, write_meta, writer_ref};
use crate::actors::writer::{Pace, Sweep};
use crate::domain::event::Recorded;
use crate::domain::id::{GuildId, Seq, Ward};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Head, Pages, Range, ReadError, Reader, Restored};
use crate::journal::record::{ChannelRecord, RecordError, SnapshotRecord, decode, decode_event, encode, encode_snapshot};
use crate::journal::{erased, key};
use crate::ports::backend::stamp::rfc3339;
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::{Value, Write};
use crate::telemetry::instruments::NONE;
use crate::telemetry::plain::Plain;

/// The delay of the first pass after a start, because other work is more urgent then.
const FIRST_PASS_AFTER: Duration = Duration::from_secs(60);
/// The time between two passes. So events are stored for at most a day longer than configured.
const BETWEEN_PASSES: Duration = Duration::from_secs(24 * 60 * 60);
/// How often the clock is checked. A pass follows when one is due and the clock can be trusted.
const BETWEEN_LOOKS: Duration = Duration::from_secs(60 * 60);
/// A pass is large if it deletes events that expired longer ago than this.
const LARGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The range in which the search looks for a readable event, in events.
const NEIGHBOURS: usize = 16;

/// Returns the moment before which a guild's events are deleted. `None`: nothing is deleted.
pub type Cutoff<'a> = &'a (dyn Fn(&GuildId) -> Option<Moment> + Sync);

/// The result of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassReport {
    /// The number of channels in which events were deleted.
    pub channels: u64,
    pub events: u64,
    /// The number of channels in which the pass failed. The next pass retries them.
    pub failed: u64,
}

/// Runs a pass once a day, as long as the runtime lives and the clock can be trusted. Does nothing if no retention is configured
/// (`storage.retention_days`, or one for a guild).
pub fn run_daily(context: ActorContext) {
    if context.settings.storage.keeps_everything() {
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(FIRST_PASS_AFTER).await;
        let mut due = Instant::now();
        loop {
            if !is_clock_trusted(&context).await || Instant::now() < due {
                tokio::time::sleep(BETWEEN_LOOKS).await;
                continue;
            }
            due = Instant::now() + BETWEEN_PASSES;
            let passing = context.clone();
            // The pass runs in its own task, so that the next one runs even if this one panics.
            match tokio::spawn(async move { pass(&passing).await }).await {
                Ok(PassReport { channels: 0, failed: 0, .. }) => tracing::debug!("no events have expired"),
                Ok(PassReport { channels, events, failed: 0 }) => {
                    tracing::info!(channels, events, "expired events were deleted")
                }
                Ok(PassReport { channels, events, failed }) => {
                    tracing::warn!(
                        channels,
                        events,
                        failed,
                        "expired events were deleted, but not everywhere; the next pass retries the others"
                    );
                }
                Err(error) => tracing::error!(%error, "deleting expired events failed; the next pass tries again"),
            }
        }
    });
}

/// Checks the clock, and stores its current time for the next check.
async fn is_clock_trusted(context: &ActorContext) -> bool {
    let before = match context.store.get(key::clock()).await {
        Ok(stored) => stored.and_then(|value| decode(&key::clock(), &value).ok()),
        Err(error) => {
            tracing::warn!(%error, "when the clock was last seen cannot be read; nothing expires until it can");
            return false;
        }
    };
    let now = context.clock.now();
    let (record, trust) = clock::look(before, now);
    if let Err(error) = write_meta(context, Ward(0), vec![Write::Put(key::clock(), encode(&record))]).await {
        tracing::warn!(%error, "where the clock is could not be noted; nothing expires until it can");
        return false;
    }
    match trust {
        Trust::Held => return true,
        Trust::Waits => {}
        Trust::New => tracing::info!("nothing expires until the clock has been seen to hold for a day"),
        Trust::Leapt { from } => {
            let (now, last_seen) = (rfc3339(now), rfc3339(from));
            tracing::warn!(
                now,
                last_seen,
                "the clock is far from where it was last seen, so nothing expires until it has held for a day: correct it if it is wrong; if the \
                 server was off meanwhile, nothing is wrong"
            );
        }
    }
    false
}

/// Deletes the expired events of every guild according to the settings. If the pass is large, this is recorded first, so that the
/// last backup from before it is kept for a while.
pub async fn pass(context: &ActorContext) -> PassReport {
    context.sent_prompts.expire(context.clock.now());
    if is_large(context, &|guild| cutoff(context, guild)).await {
        let noted = vec![Write::Put(erased::large_expiry_key(), encode(&context.clock.now()))];
        if let Err(error) = write_meta(context, Ward(0), noted).await {
            tracing::warn!(%error, "it could not be noted that much expires, so nothing is deleted; the next pass tries again");
            return PassReport { failed: 1, ..PassReport::default() };
        }
        tracing::warn!(
            "more than a week expires at once: the newest automatic backup from before is kept for a week, unless it holds words that somebody \
             wanted to be deleted"
        );
    }
    pass_older(context, &|guild| cutoff(context, guild)).await
}

/// Deletes the events of each guild that are older than its cutoff.
pub async fn pass_older(context: &ActorContext, cutoff: Cutoff<'_>) -> PassReport {
    let mut report = PassReport::default();
    for ward in (0..=u8::MAX).map(Ward) {
        if let Err(error) = pass_ward(context, cutoff, ward, &mut report).await {
            report.failed += 1;
            tracing::warn!(ward = ward.0, %error, "the channels of a ward cannot be searched for expired events");
        }
    }
    let instruments = context.recorder.instruments();
    instruments.retention_events.add(report.events, NONE);
    instruments.retention_failures.add(report.failed, NONE);
    instruments.retention_passed.set(context.clock.now().as_micros() / 1_000_000, NONE);
    report
}

async fn pass_ward(context: &ActorContext, cutoff: Cutoff<'_>, ward: Ward, report: &mut PassReport) -> Result<(), RewriteError> {
    let mut guilds = context.told.guilds(ward);
    let mut names = channel_names(context, ward);
    while let Some(page) = names.next().await? {
        for name in &page {
            let channel_key = match channel_named(name) {
                Ok(channel_key) => channel_key,
                Err(error) => {
                    report.failed += 1;
                    tracing::warn!(%error, "the name of a channel cannot be read: its expired events are not deleted");
                    continue;
                }
            };
            let Some(before) = cutoff(&channel_key.guild) else { continue };
            guilds.insert(channel_key.guild.clone());
            pass_channel(context, channel_key, before, report).await;
        }
    }
    for guild in guilds {
        let Some(before) = cutoff(&guild) else { continue };
        if let Err(error) = remove_people_from_usage(context, &guild, before).await {
            report.failed += 1;
            tracing::warn!(guild = %Plain(guild.as_str()), %error, "the people in expired usage records are not removed yet");
        }
        if let Err(error) = remove_told(context, &guild, before).await {
            report.failed += 1;
            tracing::warn!(guild = %Plain(guild.as_str()), %error, "when people were told that companions are AI does not expire yet");
        }
        if let Err(error) = remove_stale_index_entries(context, &guild).await {
            report.failed += 1;
            tracing::warn!(guild = %Plain(guild.as_str()), %error, "people without messages are not removed from the index yet");
        }
    }
    Ok(())
}

/// The names of a ward's channels in the store.
fn channel_names<'a>(context: &'a ActorContext, ward: Ward) -> Pages<'a> {
    let names = Key::new(ward, Kind::ChannelOf);
    Reader::new(&*context.store).pages(names.clone(), names.end())
}

fn channel_named((key, value): &(Key, Value)) -> Result<ChannelKey, RecordError> {
    decode(key, value).map(|ChannelRecord { guild, channel }| ChannelKey { guild, channel })
}

/// Whether the oldest event of any channel expired more than [`LARGE`] ago. Unreadable channels are skipped, because the pass
/// does not delete their events either.
async fn is_large(context: &ActorContext, cutoff: Cutoff<'_>) -> bool {
    for ward in (0..=u8::MAX).map(Ward) {
        let mut names = channel_names(context, ward);
        while let Ok(Some(page)) = names.next().await {
            for channel_key in page.iter().filter_map(|name| channel_named(name).ok()) {
                if let Some(before) = cutoff(&channel_key.guild)
                    && let Ok(Some(oldest)) = oldest(context, &channel_key).await
                    && before.since(oldest) > LARGE
                {
                    return true;
                }
            }
        }
    }
    false
}

/// When the oldest event of a channel happened.
async fn oldest(context: &ActorContext, channel_key: &ChannelKey) -> Result<Option<Moment>, ReadError> {
    let reader = Reader::new(&*context.store);
    let head = reader.head(channel_key).await?;
    let before_it = Seq(head.lowest.0.saturating_sub(1));
    let range = Range { after: before_it, before: Some(head.last.next()), limit: NEIGHBOURS, newest_first: false };
    Ok(reader.legible(channel_key, range).await?.events.first().map(|recorded| recorded.at))
}

async fn pass_channel(context: &ActorContext, channel_key: ChannelKey, before: Moment, report: &mut PassReport) {
    let (task_key, task_context) = (channel_key.clone(), context.clone());
    // Each channel has its own task, so that a record that panics does not affect the others.
    let deleted = tokio::spawn(async move { delete_before(&task_context, &task_key, before).await }).await;
    let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
    match deleted {
        Ok(Ok(0)) => {}
        Ok(Ok(events)) => {
            report.channels += 1;
            report.events += events;
        }
        Ok(Err(error)) => {
            report.failed += 1;
            tracing::warn!(%guild, %channel, %error, "the expired events of this channel are not deleted yet");
        }
        Err(error) => {
            report.failed += 1;
            tracing::error!(%guild, %channel, %error, "the expired events of this channel are not deleted yet");
        }
    }
}

/// The moment before which a guild's events expire, according to the settings.
pub fn cutoff(context: &ActorContext, guild: &GuildId) -> Option<Moment> {
    let retention = context.settings.storage.retention_of(guild)?;
    Some(Moment::from_micros(context.clock.now().as_micros().saturating_sub(retention.as_micros() as u64)))
}

/// Deletes a channel's events before a moment, unless the conversation still needs them. Also finishes an interrupted deletion of
/// the whole channel. Returns the number of deleted events.
pub async fn delete_before(context: &ActorContext, channel_key: &ChannelKey, before: Moment) -> Result<u64, RewriteError> {
    let reader = Reader::new(&*context.store);
    let Some(below) = raise_mark(context, &reader, channel_key, before).await? else { return Ok(0) };
    let Some(no) = reader.channel_no(channel_key).await? else { return Ok(0) };
    expire_sources(context, channel_key, below).await?;
    let first = Key::event(channel_key.ward(), no, Seq::NONE);
    let is_clear =
        context.store.scan(first, Key::event(channel_key.ward(), no, below), false, 1).await.map_err(ReadError::from)?.is_empty();
    if is_clear {
        return Ok(0);
    }
    let writer = writer_ref(context)?;
    let sweep = Sweep { store: context.store.clone(), writer, channel_key: channel_key.clone(), no, below, pace: Pace::Patient };
    Ok(sweep.remove_all().await?)
}

/// Raises a journal's low-water mark to the first event that must stay, and returns the mark. `None`: nothing can be deleted.
async fn raise_mark(
    context: &ActorContext,
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    before: Moment,
) -> Result<Option<Seq>, RewriteError> {
    // The lock keeps redactions from rewriting the snapshot at the same time.
    let _lock = context.rewrite_locks.lock(channel_key).await;
    let head = reader.head(channel_key).await?;
    let Some(no) = head.no else { return Ok(None) };
    if head.swept_below > Seq::NONE {
        return Ok(Some(head.swept_below));
    }
    let mut kept = first_kept(reader, channel_key, &head, before).await?;
    if kept <= head.lowest.max(Seq(1)) {
        kept = oldest_kept(context, channel_key.ward(), no, kept, before).await?;
    }
    // Without this message, the channel's next snapshot would store the expired events again.
    if let Some(channel) = context.directory.find(&ChannelActorKey(channel_key.channel.clone())) {
        let _ = channel.cast(ChannelMessage::Expired(kept));
    }
    let has_older_events = kept > head.lowest.max(Seq(1));
    if has_older_events || snapshot_holds_older(context, &key::snapshot(channel_key.ward(), no), kept).await? {
        renew_snapshot(context, reader, channel_key, &head, kept).await
    } else {
        // Sweeps the events that an interrupted pass left.
        Ok(Some(kept.min(head.lowest)))
    }
}

/// The first unexpired event below a mark. Such events exist if the operator accepted a loss of data.
async fn oldest_kept(context: &ActorContext, ward: Ward, no: ChannelNo, mark: Seq, before: Moment) -> Result<Seq, ReadError> {
    let mut pages = Reader::new(&*context.store).pages(Key::event(ward, no, Seq::NONE), Key::event(ward, no, mark));
    while let Some(page) = pages.next().await? {
        let mut events = page.iter().filter_map(|(key, value)| decode_event(key, value).ok());
        if let Some(kept) = events.find(|recorded| recorded.at >= before) {
            return Ok(kept.seq);
        }
    }
    Ok(mark)
}

async fn snapshot_holds_older(context: &ActorContext, key: &Key, kept: Seq) -> Result<bool, ReadError> {
    let Some(stored) = context.store.get(key.clone()).await? else { return Ok(false) };
    let SnapshotRecord { mut conversation, .. } = decode(key, &stored)?;
    let below = kept.min(conversation.needed_from());
    Ok(conversation.drop_below(below))
}

/// Folds a channel's journal, whether the channel runs or not. Writes a snapshot without expired text, together with the new
/// mark. Later reads need no event below the mark.
async fn renew_snapshot(
    context: &ActorContext,
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    head: &Head,
    kept: Seq,
) -> Result<Option<Seq>, RewriteError> {
    // A running channel that answers has dropped the expired text. Once the writer answers, everything that the channel wrote
    // before is stored. So no later snapshot contains the text.
    let is_running = || context.directory.find(&ChannelActorKey(channel_key.channel.clone())).is_some();
    let was_running = is_running();
    let inspection = look(context, &channel_key.channel).await;
    fence(context, channel_key).await?;
    let mut restored = reader.restore(channel_key).await?;
    let unhandled = (was_running || is_running()).then(|| leave_unhandled(&mut restored, inspection.as_ref())).flatten();
    // A running channel may have written a newer snapshot after its head was read.
    let last = restored.snapshot.as_ref().map_or(restored.head, |snapshot| snapshot.made.max(restored.head));
    let answered = restored.owed.iter().filter_map(|(_, record)| record.messages.iter().min()).min().copied();
    let mut conversation = folded(context, channel_key, restored);
    let still_used = [answered, unhandled].into_iter().flatten().min().unwrap_or(last.next());
    let needed = still_used.min(last.next()).min(conversation.needed_from());
    let gone = kept.min(needed);
    let below = gone.max(head.lowest);
    if below == Seq::NONE {
        return Ok(None);
    }
    if conversation.drop_below(gone) || below > head.lowest {
        let (snapshot, channel_key) = (Some(encode_snapshot(last, &conversation)), channel_key.clone());
        let expire = |reply| Request::DeleteExpired(DeleteExpired { channel_key, below, snapshot, reply });
        ask(&writer_ref(context)?, expire).await?;
    }
    Ok(Some(gone))
}

/// Removes the events that a running channel may not have handled yet, and returns the number of the first. The channel may make
/// other events before it handles these. Then these must be folded after the others.
fn leave_unhandled(restored: &mut Restored, inspection: Option<&Inspection>) -> Option<Seq> {
    let made = restored.events.iter().filter(|recorded| !recorded.event.is_inbound()).map(|recorded| recorded.handled);
    let in_snapshot = restored.snapshot.iter().map(|snapshot| snapshot.handled);
    let inspected = inspection.map(|inspection| inspection.conversation.handled());
    let handled = made.chain(in_snapshot).chain(inspected).max().unwrap_or(Seq::NONE);
    let is_unhandled = |recorded: &Recorded| recorded.event.is_inbound() && recorded.seq > handled;
    let first = restored.events.iter().filter(|recorded| is_unhandled(recorded)).map(|recorded| recorded.seq).min();
    restored.events.retain(|recorded| !is_unhandled(recorded));
    first
}

/// The number of the first event at or after this moment, by binary search. One past the end if there is none.
async fn first_kept(reader: &Reader<'_>, channel_key: &ChannelKey, head: &Head, before: Moment) -> Result<Seq, ReadError> {
    let (mut low, mut high) = (head.lowest.max(Seq(1)), head.last.next());
    // The first event is probed first, because usually nothing has expired.
    let mut middle = low;
    while low < high {
        // An unreadable event counts as old as the next readable one.
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
    fn events_that_a_running_channel_may_not_have_handled_are_left_out() {
        let event = |seq, handled, event| Recorded { seq: Seq(seq), at: Moment::ZERO, handled: Seq(handled), turn: None, event };
        let made = || Event::Summarised { upto: Seq(1), text: "Talk.".into(), messages: 1 };
        let events = vec![
            event(1, 1, Event::cleared()),
            event(3, 1, made()),
            event(2, 2, Event::cleared()),
            event(4, 4, Event::cleared()),
        ];
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
