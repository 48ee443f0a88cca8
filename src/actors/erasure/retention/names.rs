//! Removes people from the index of persons and from usage records when their messages have expired.

use std::collections::BTreeMap;

use crate::actors::erasure::deletion::RewriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::{GuildId, Seq, Ward};
use crate::domain::moment::Moment;
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{UsageRecord, Used, decode, encode};
use crate::journal::speakers::after_stretch;
use crate::ports::store::Write;
use crate::ports::store::key::ChannelNo;

/// Removes entries of the index of persons whose stretch is empty. Usually they are removed together with the events. This finds
/// entries that remain after an interruption, and entries of unreadable events.
pub(super) async fn remove_stale_index_entries(context: &ActorContext, guild: &GuildId) -> Result<(), RewriteError> {
    let reader = Reader::new(&*context.store);
    let ward = Ward::of(guild);
    let mut pages = reader.pages(key::all_persons(guild), key::all_persons(guild).end());
    let mut marks: BTreeMap<ChannelNo, Seq> = BTreeMap::new();
    while let Some(page) = pages.next().await? {
        let mut writes = Vec::new();
        for (key, _) in page {
            let (Some(no), Some(seq)) = (key::channel_before_number(&key), key.last_number().map(Seq)) else { continue };
            let mark = match marks.get(&no) {
                Some(mark) => *mark,
                None => *marks.entry(no).or_insert(reader.lowest(ward, no).await?),
            };
            // No event is ever added below a mark.
            if after_stretch(seq) <= mark && reader.is_empty(ward, no, seq).await? {
                writes.push(Write::Remove(key));
            }
        }
        if !writes.is_empty() {
            write_meta(context, ward, writes).await?;
        }
    }
    Ok(())
}

/// Removes the people who addressed companions from a guild's usage records. The usage itself and its cost stay, without a name.
pub(super) async fn remove_people_from_usage(
    context: &ActorContext,
    guild: &GuildId,
    before: Moment,
) -> Result<(), RewriteError> {
    let (ward, mark, now) = (Ward::of(guild), key::usage_kept_from(guild), context.clock.now());
    let stored = context.store.get(mark.clone()).await.map_err(ReadError::from)?;
    let done = stored.map(|value| decode(&mark, &value)).transpose().map_err(ReadError::from)?.unwrap_or(Moment::ZERO).min(now);
    if before <= done {
        return Ok(());
    }
    let mut pages = Reader::new(&*context.store).pages(key::usage_from(guild, done), key::usage_from(guild, before));
    while let Some(page) = pages.next().await? {
        let mut writes = Vec::new();
        for (key, value) in &page {
            let record: UsageRecord = decode(key, value).map_err(ReadError::from)?;
            if let Some(record) = without_person(&record) {
                writes.push(Write::Put(key.clone(), encode(&record)));
            }
        }
        if !writes.is_empty() {
            write_meta(context, ward, writes).await?;
        }
    }
    Ok(write_meta(context, ward, vec![Write::Put(mark, encode(&before.min(now)))]).await?)
}

/// Removes the people who last received the AI disclosure before this moment. They receive it again.
pub(super) async fn remove_told(context: &ActorContext, guild: &GuildId, before: Moment) -> Result<(), RewriteError> {
    let people = context.told.filtered(guild, |at| at < before);
    if people.is_empty() {
        return Ok(());
    }
    let writes = people.iter().filter_map(|person| context.told.removal(guild, person)).collect();
    write_meta(context, Ward::of(guild), writes).await?;
    people.iter().for_each(|person| context.told.remove(guild, person));
    Ok(())
}

/// The usage record without its person. `None`: the record names no person.
pub fn without_person(record: &UsageRecord) -> Option<UsageRecord> {
    match &record.used {
        Used::Address { person, message } if !person.as_str().is_empty() => {
            Some(UsageRecord { used: Used::Address { person: "".into(), message: *message }, ..record.clone() })
        }
        _ => None,
    }
}
