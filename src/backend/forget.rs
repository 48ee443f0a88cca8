//! Deletes all messages of a person in a guild from the record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ActorBackend;
use crate::actors::erasure::deletion::{
    Traces, all_traces_of, answers_to, append_deletion, has_illegible_snapshot, redact_traces, traces_of, usage_without_person,
};
use crate::actors::erasure::named::forget_named;
use crate::actors::erasure::retention::without_person;
use crate::actors::membership::changes;
use crate::actors::messages::writer::WriteError;
use crate::actors::writer::requests::{remove_from_index, writer_ref};
use crate::actors::writer::{IndexRemoval, Pace, Sweep, remove_index_entries};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{ChannelId, GuildId, PersonId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{Head, PersonMessages, ReadError};
use crate::journal::record::{UsageRecord, Used, decode, encode};
use crate::journal::speakers::{after_stretch, stretch};
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::Forgotten;
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Value, Write};

/// The number of records per read.
const PAGE: usize = 512;

/// Advice for a person whose messages were forgotten without the companions' answers to them. These answers cannot be found any more, because a
/// redacted message does not contain its author.
pub(super) const ANSWERS_ALONE: &str = "companions' answers to a person can be found only together with the person's messages: if they were left when the \
    person was forgotten, delete them one by one, on the page or by DELETE /api/rooms/{room}/messages/{seq}; `tertulia history export` lists the \
    numbers";

/// The data of a person that remains in a channel.
pub(super) enum Remainder {
    Nothing,
    /// All words remain: a companion owes a reply to the person, and replies are to be deleted, too.
    Owed,
    /// This many entries cannot be read. They may be by the person, or mention the person.
    Illegible(usize),
}

impl ActorBackend {
    /// Deletes a person's messages in one of the channels that the index of persons lists.
    pub(super) async fn forget_in_channel(
        &self,
        channel_key: &ChannelKey,
        no: ChannelNo,
        person: &PersonId,
        mut stretches: BTreeMap<Seq, Vec<Key>>,
        answers: bool,
        forgotten: &mut Forgotten,
    ) -> Result<Remainder, Refused> {
        let _lock = self.context.rewrite_locks.lock(channel_key).await;
        // A stretch that is full now need not be read again, because no event is added to it.
        let head = self.reader().head(channel_key).await?;
        self.sweep(channel_key, &head).await?;
        let PersonMessages { messages: theirs, naming, mut illegible } = self
            .reader()
            .messages_by(channel_key.ward(), no, stretches.keys(), person)
            .await
            .map_err(|error| error.of(channel_key))?;
        let Some(illegible_traces) = self.delete_with_traces(channel_key, theirs, answers, forgotten).await? else {
            return Ok(Remainder::Owed);
        };
        forget_named(&self.context, channel_key, naming).await?;
        // Stretches with entries that may be the person's stay in the index.
        stretches.retain(|first, _| illegible.range(first..&after_stretch(*first)).next().is_none());
        // The index is changed last: if this is interrupted, a repetition finds the rest.
        self.remove_from_index(channel_key, person, stretches, head.last).await?;
        illegible.extend(illegible_traces);
        Ok(if illegible.is_empty() { Remainder::Nothing } else { Remainder::Illegible(illegible.len()) })
    }

    /// Counts the data that [`Self::forget_in_channel`] would delete now.
    pub(super) async fn count_in_channel(
        &self,
        channel_key: &ChannelKey,
        no: ChannelNo,
        person: &PersonId,
        stretches: &BTreeMap<Seq, Vec<Key>>,
        answers: bool,
        forgotten: &mut Forgotten,
    ) -> Result<(), ReadError> {
        let reader = self.reader();
        let mut gone = reader.messages_by(channel_key.ward(), no, stretches.keys(), person).await?.messages;
        if answers {
            gone.extend(answers_to(&reader, channel_key, &gone).await?);
        }
        let traces = traces_of(&reader, channel_key, &gone).await?;
        forgotten.messages += traces.handed_over.len() as u64;
        count(&traces.redacted, forgotten);
        Ok(())
    }

    /// Deletes these messages and all traces of them. The caller holds the rewrite lock, and none of these messages is redacted yet. Returns the
    /// numbers of unreadable events that may be traces; [`Seq::NONE`] stands for the snapshot. Returns `None`, and redacts nothing, if answers are to
    /// be deleted, too, and one is still being written.
    async fn delete_with_traces(
        &self,
        channel_key: &ChannelKey,
        mut gone: BTreeSet<Seq>,
        answers: bool,
        forgotten: &mut Forgotten,
    ) -> Result<Option<BTreeSet<Seq>>, Refused> {
        if answers && self.is_answered_now(channel_key, &gone).await? {
            return Ok(None);
        }
        self.delete(channel_key, &gone).await?;
        if answers {
            if self.is_answered_now(channel_key, &gone).await? {
                return Ok(None);
            }
            let answers = answers_to(&self.reader(), channel_key, &gone).await?;
            self.delete(channel_key, &answers).await?;
            gone.extend(answers);
        }
        let traces = all_traces_of(&self.context, channel_key, &mut gone).await?;
        let usage = usage_without_person(&self.context, channel_key, &gone, &traces.used_at).await?;
        let Traces { redacted: events, mut illegible, .. } = traces;
        if has_illegible_snapshot(&*self.context.store, channel_key).await? {
            // No event has this number, so it can stand for the snapshot.
            illegible.insert(Seq::NONE);
        }
        count(&events, forgotten);
        redact_traces(&self.context, channel_key, events, usage).await?;
        Ok(Some(illegible))
    }

    /// Deletes these messages from the running conversation.
    async fn delete(&self, channel_key: &ChannelKey, gone: &BTreeSet<Seq>) -> Result<(), Refused> {
        if gone.is_empty() {
            return Ok(());
        }
        append_deletion(&self.context, channel_key, gone, Vec::new()).await.map_err(Refused::from)
    }

    /// Whether a companion owes a reply to any of these messages. It would be posted after the deletion.
    async fn is_answered_now(&self, channel_key: &ChannelKey, gone: &BTreeSet<Seq>) -> Result<bool, Refused> {
        let owed = self.reader().outbox(channel_key).await?;
        Ok(owed.iter().any(|(_, reply)| reply.messages.iter().any(|seq| gone.contains(seq))))
    }

    /// Removes the data that an interrupted deletion of the whole channel left. It is no longer readable, but still stored.
    async fn sweep(&self, channel_key: &ChannelKey, head: &Head) -> Result<(), WriteError> {
        let (Some(no), below @ Seq(1..)) = (head.no, head.swept_below) else { return Ok(()) };
        let (store, writer) = (self.context.store.clone(), writer_ref(&self.context)?);
        Sweep { store, writer, channel_key: channel_key.clone(), no, below, pace: Pace::AtOnce }.remove_all().await.map(drop)
    }

    /// Removes a person from the index for stretches without entries of the person, as of the journal's last event `last`.
    async fn remove_from_index(
        &self,
        channel_key: &ChannelKey,
        person: &PersonId,
        stretches: BTreeMap<Seq, Vec<Key>>,
        last: Seq,
    ) -> Result<(), WriteError> {
        let mut full = stretches;
        let open = full.split_off(&stretch(last.next()));
        if let Some(newest) = full.last_key_value().map(|(newest, _)| *newest) {
            let keys: Vec<Key> = full.into_values().flatten().collect();
            for keys in keys.chunks(PAGE) {
                remove_index_entries(&writer_ref(&self.context)?, channel_key, newest, keys.to_vec(), last).await?;
            }
        }
        for stretch in open.into_keys() {
            let people = &BTreeSet::from([person.clone()]);
            remove_from_index(&self.context, channel_key, IndexRemoval { stretch, below: Seq::NONE, people, notes: &[] }).await?;
        }
        Ok(())
    }

    /// What a person says of themselves in the rooms of a guild, by room.
    pub(super) fn descriptions_of(&self, guild: &GuildId, person: &PersonId) -> Vec<(ChannelId, Arc<str>)> {
        let rooms = self.context.memberships.all().into_iter().filter(|(_, membership)| membership.guild == *guild);
        rooms.filter_map(|(channel, mut membership)| Some((channel, membership.described.remove(person)?))).collect()
    }

    /// Removes what a person says of themselves in the rooms of a guild. Returns whether there was anything.
    pub(super) async fn forget_descriptions(&self, guild: &GuildId, person: &PersonId) -> Result<bool, Refused> {
        let described = self.descriptions_of(guild, person);
        for (channel, _) in &described {
            let lock = self.context.memberships.lock().await;
            let Some(mut membership) = self.context.memberships.get(channel) else { continue };
            membership.described.remove(person);
            changes::update_membership(&self.context, &lock, channel, membership).await?;
            self.context.sent_prompts.forget(&ChannelKey::new(guild, channel));
        }
        if !described.is_empty() {
            self.mark_erased(guild, person).await?;
        }
        Ok(!described.is_empty())
    }

    /// Notes that words of a person were erased from a record that is not only written to erase. So the database file is compacted, and backups are
    /// replaced.
    pub(super) async fn mark_erased(&self, guild: &GuildId, person: &PersonId) -> Result<(), Refused> {
        // A record of this kind is only removed to erase.
        let told = self.context.told.get(guild, person);
        let key = key::disclosure(guild, person);
        let write = told.map_or_else(|| Write::Remove(key.clone()), |at| Write::Put(key.clone(), encode(&at)));
        self.write_meta(Ward::of(guild), vec![write]).await
    }

    /// Removes the person from usage records. Returns whether any record named the person, and the first record that cannot be read.
    pub(super) async fn forget_usage(&self, guild: &GuildId, person: &PersonId) -> Result<(bool, Option<Key>), Refused> {
        let reader = self.reader();
        let mut pages = reader.pages(key::used_by(guild), key::used_by(guild).end());
        let (mut has_used, mut illegible) = (false, None);
        while let Some(page) = pages.next().await? {
            let writes = writes_without_person(person, page, &mut illegible);
            if !writes.is_empty() {
                has_used = true;
                self.write_meta(Ward::of(guild), writes).await?;
            }
        }
        Ok((has_used, illegible))
    }
}

fn count(redacted: &[Recorded], forgotten: &mut Forgotten) {
    for recorded in redacted {
        match &recorded.event {
            Event::Said { .. } => forgotten.messages += 1,
            Event::Decided(_) => forgotten.decisions += 1,
            Event::Summarised { .. } => forgotten.summaries += 1,
            Event::Noted(_) => forgotten.notes += 1,
            _ => {}
        }
    }
}

/// The writes that remove this person from a page of usage records.
fn writes_without_person(person: &PersonId, page: Vec<(Key, Value)>, illegible: &mut Option<Key>) -> Vec<Write> {
    let mut writes = Vec::new();
    for (key, value) in page {
        let Ok(record) = decode::<UsageRecord>(&key, &value) else {
            illegible.get_or_insert(key);
            continue;
        };
        if matches!(&record.used, Used::Address { person: by, .. } if by == person)
            && let Some(record) = without_person(&record)
        {
            writes.push(Write::Put(key, encode(&record)));
        }
    }
    writes
}
