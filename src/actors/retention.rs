//! What was kept for long enough is deleted: the oldest events of each journal, as long as nothing that goes on needs them.
//!
//! First a journal's low-water mark rises, and with it the snapshot lets go of what stands below: one batch. Only then what lies below is
//! taken away, a page at a time, each followed by as long a pause. Whatever interrupts it, the journal is whole above its mark, and the next
//! pass goes on.

use std::collections::BTreeSet;
use std::time::Duration;

use super::kit::Kit;
use super::places::ScribePlace;
use super::reaching::{administer, tell_scribe};
use super::scribe::{Contested, Expire, Lost, Pace, Reply, ScribeMessage, Sweep};
use crate::domain::event::Recorded;
use crate::domain::id::{GuildId, Seq, Ward};
use crate::domain::moment::Moment;
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::reader::{Head, Range, ReadError, Reader};
use crate::journal::record::{ChannelRecord, SnapshotRecord, UsageRecord, Used, decode, encode, encode_snapshot};
use crate::ports::store::Write;
use crate::ports::store::key::{Key, Kind};
use crate::telemetry::plain::Plain;

/// After a start others come first.
const FIRST_PASS_AFTER: Duration = Duration::from_secs(60);
/// Between two passes: what is kept is kept a day longer at most.
const BETWEEN_PASSES: Duration = Duration::from_secs(24 * 60 * 60);
/// So many records are read at once.
const PAGE: usize = 512;

/// What a pass came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Channels of which something was deleted.
    pub channels: u64,
    /// Events that were deleted.
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
    Unstored(#[from] Lost),
    /// The same of what is nobody's journal.
    #[error(transparent)]
    Contested(#[from] Contested),
}

/// Deletes once a day what was kept for long enough, for as long as the runtime lives. Without `storage.retention_days`, or one for a guild,
/// it does nothing.
pub fn keep(kit: Kit) {
    if kit.settings.storage.keeps_everything() {
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(FIRST_PASS_AFTER).await;
        loop {
            let passing = kit.clone();
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

/// Deletes in every guild what was kept for long enough there.
pub async fn pass(kit: &Kit) -> Passed {
    let mut passed = Passed::default();
    for ward in (0..=u8::MAX).map(Ward) {
        if let Err(error) = pass_ward(kit, ward, &mut passed).await {
            passed.failed += 1;
            tracing::warn!(ward = ward.0, %error, "channels cannot be looked through for what was kept for long enough");
        }
    }
    passed
}

async fn pass_ward(kit: &Kit, ward: Ward, passed: &mut Passed) -> Result<(), NotDeleted> {
    let all = Key::new(ward, Kind::ChannelOf);
    let mut from = all.clone();
    let mut guilds = BTreeSet::new();
    loop {
        let page = kit.store.scan(from.clone(), all.clone().end(), false, PAGE).await.map_err(ReadError::from)?;
        let Some((last, _)) = page.last() else { break };
        from = key::successor(last);
        for (key, value) in &page {
            let record: ChannelRecord = decode(key, value).map_err(ReadError::from)?;
            let Some(before) = kept_from(kit, &record.guild) else { continue };
            let place = Place::new(&record.guild, &record.channel);
            guilds.insert(record.guild);
            match delete_before(kit, &place, before).await {
                Ok(0) => {}
                Ok(events) => {
                    passed.channels += 1;
                    passed.events += events;
                }
                Err(error) => {
                    passed.failed += 1;
                    let (guild, channel) = (Plain(place.guild.as_str()), Plain(place.channel.as_str()));
                    tracing::warn!(%guild, %channel, %error, "what was kept here for long enough is not deleted yet");
                }
            }
        }
    }
    for guild in guilds {
        if let Some(before) = kept_from(kit, &guild) {
            forget_who_addressed(kit, &guild, before).await?;
        }
    }
    Ok(())
}

/// What is older than this is not kept in a guild; none: everything is.
fn kept_from(kit: &Kit, guild: &GuildId) -> Option<Moment> {
    let kept = kit.settings.storage.retention_of(guild)?;
    Some(Moment::from_micros(kit.clock.now().as_micros().saturating_sub(kept.as_micros() as u64)))
}

/// Deletes of a channel what happened before a moment, as far as nothing that goes on needs it. Tells how many events that was.
///
/// # Errors
/// [`NotDeleted`].
pub async fn delete_before(kit: &Kit, place: &Place, before: Moment) -> Result<u64, NotDeleted> {
    let reader = Reader::new(&*kit.store);
    let Some(below) = raise_mark(kit, &reader, place, before).await? else { return Ok(0) };
    let Some(no) = reader.channel_no(place).await? else { return Ok(0) };
    let begins = Key::event(place.ward(), no, Seq::NONE);
    let is_clear =
        kit.store.scan(begins, Key::event(place.ward(), no, below), false, 1).await.map_err(ReadError::from)?.is_empty();
    if is_clear {
        return Ok(0);
    }
    let scribe = kit.directory.find(&ScribePlace()).ok_or_else(|| Lost::Unavailable("the scribe is being restarted".into()))?;
    let sweep = Sweep { store: kit.store.clone(), scribe, place: place.clone(), no, below, pace: Pace::Patient };
    Ok(sweep.remove_all().await?)
}

/// Raises a journal's low-water mark to what has to be kept, and tells where it is then; none: nothing can go.
async fn raise_mark(kit: &Kit, reader: &Reader<'_>, place: &Place, before: Moment) -> Result<Option<Seq>, NotDeleted> {
    // Nobody takes words out meanwhile and writes the snapshot again.
    let _turn = kit.rewriting.of(place).await;
    let head = reader.head(place).await?;
    let Some(no) = head.no.filter(|_| head.swept_below == Seq::NONE) else { return Ok(None) };
    let snapshot_key = key::snapshot(place.ward(), no);
    let stored = kit.store.get(snapshot_key.clone()).await.map_err(ReadError::from)?;
    // Without a snapshot the whole journal is what the conversation is.
    let Some(stored) = stored else { return Ok(Some(head.lowest).filter(|lowest| *lowest > Seq::NONE)) };
    let SnapshotRecord { handled, made, mut conversation } = decode(&snapshot_key, &stored).map_err(ReadError::from)?;
    let owed = reader.outbox(place).await?;
    let answered = owed.iter().filter_map(|(_, record)| record.messages.iter().min()).min();
    let contained = contained_before(reader, place, handled, made).await?;
    let needed = [contained, conversation.needed_from()].into_iter().chain(answered.copied()).min().unwrap_or(contained);
    let below = kept_after(reader, place, &head, before).await?.min(needed).max(head.lowest);
    if below == Seq::NONE {
        return Ok(None);
    }
    let is_changed = conversation.let_go(below);
    if below > head.lowest || is_changed {
        let snapshot = is_changed.then(|| encode_snapshot(made, &conversation));
        let (reply, done) = Reply::awaited();
        tell_scribe(kit, ScribeMessage::Expire(Expire { place: place.clone(), below, snapshot, reply }))?;
        done.await.unwrap_or(Err(Lost::Unknown))?;
    }
    Ok(Some(below))
}

/// Below which number a snapshot contains everything: what was heard up to one number, and what the channel made up to another.
async fn contained_before(reader: &Reader<'_>, place: &Place, handled: Seq, made: Seq) -> Result<Seq, ReadError> {
    let (least, most) = (handled.min(made), handled.max(made));
    let range = Range { after: least, before: Some(most.next()), limit: PAGE, newest_first: false };
    let between = reader.events(place, range).await?;
    let is_missing = |recorded: &&Recorded| recorded.seq > if recorded.event.is_heard() { handled } else { made };
    let end = if between.len() < PAGE { most.next() } else { between[PAGE - 1].seq };
    Ok(between.iter().find(is_missing).map_or(end, |recorded| recorded.seq))
}

/// The number of the first event that happened at this moment or later, found by halving; one past the end, if there is none.
async fn kept_after(reader: &Reader<'_>, place: &Place, head: &Head, before: Moment) -> Result<Seq, ReadError> {
    let (mut low, mut high) = (head.lowest.max(Seq(1)), head.last.next());
    // Mostly nothing is too old.
    let mut middle = low;
    while low < high {
        let range = Range { after: Seq(middle.0 - 1), before: Some(high), limit: 1, newest_first: false };
        match reader.events(place, range).await?.pop() {
            Some(recorded) if recorded.at < before => low = recorded.seq.next(),
            _ => high = middle,
        }
        middle = Seq(low.0 + high.0.saturating_sub(low.0) / 2);
    }
    Ok(low)
}

/// Takes out of what a guild used who addressed companions. What was used, and what it cost, stays: it names nobody.
async fn forget_who_addressed(kit: &Kit, guild: &GuildId, before: Moment) -> Result<(), NotDeleted> {
    let (ward, mark) = (Ward::of(guild), key::usage_kept_from(guild));
    let known = kit.store.get(mark.clone()).await.map_err(ReadError::from)?;
    let done = known.map(|value| decode(&mark, &value)).transpose().map_err(ReadError::from)?.unwrap_or(Moment::ZERO);
    if before <= done {
        return Ok(());
    }
    let (mut from, to) = (key::usage_from(guild, done), key::usage_from(guild, before));
    loop {
        let page = kit.store.scan(from.clone(), to.clone(), false, PAGE).await.map_err(ReadError::from)?;
        let Some((last, _)) = page.last() else { break };
        from = key::successor(last);
        let mut writes = Vec::new();
        for (key, value) in &page {
            let record: UsageRecord = decode(key, value).map_err(ReadError::from)?;
            if let Some(record) = without_person(&record) {
                writes.push(Write::Put(key.clone(), encode(&record)));
            }
        }
        if !writes.is_empty() {
            administer(kit, ward, writes).await?;
        }
    }
    Ok(administer(kit, ward, vec![Write::Put(mark, encode(&before))]).await?)
}

/// The same use, of nobody; none: it names no person.
pub fn without_person(record: &UsageRecord) -> Option<UsageRecord> {
    match &record.used {
        Used::Address { person, message } if !person.as_str().is_empty() => {
            Some(UsageRecord { used: Used::Address { person: "".into(), message: *message }, ..record.clone() })
        }
        _ => None,
    }
}
