//! Taking out of the record everything that a person said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use super::ActorBackend;
use super::desk::{damaged, rewrite_error, unavailable, unread};
use crate::actors::erasure::deletion::{Told, answers_to, has_illegible_snapshot, let_go, take_words_out, told_of};
use crate::actors::erasure::retention::without_person;
use crate::actors::messages::writer::WriteError;
use crate::actors::writer::requests::{remove_from_index, writer_ref};
use crate::actors::writer::{Leaving, Pace, Sweep, strike};
use crate::domain::event::Event;
use crate::domain::id::{GuildId, PersonId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{Head, PersonMessages};
use crate::journal::record::{UsageRecord, Used, decode, encode};
use crate::journal::speakers::{after_stretch, stretch};
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{Forget, Forgotten};
use crate::ports::backend::stamp::Stamp;
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Value, Write};

/// So many records are read at once.
const PAGE: usize = 512;

/// What to do about answers to somebody who was forgotten without them: a message without words tells of nobody whose it was.
const ANSWERS_ALONE: &str = "what companions answered to somebody can be found only together with what they said: if it was left when they \
    were forgotten, take it back one by one, on the page or by DELETE /api/rooms/{room}/messages/{seq}; `tertulia history export` tells the numbers";

/// What is left of a person in a channel.
enum There {
    Nothing,
    /// All of it: a companion owes an answer to it, which is to go, too.
    Owed,
    /// So many entries may be theirs, or tell of them, and cannot be read.
    Illegible(usize),
}

impl ActorBackend {
    pub(super) async fn forget_person(&self, forget: Forget) -> Result<Forgotten, Refused> {
        let Forget { guild, person, answers } = forget;
        let person = PersonId::from(&*person);
        let ward = Ward::of(&guild);
        let listed = self.reader().listed(&guild, &person).await.map_err(unread)?;
        let is_unknown = listed.is_empty();
        let (mut forgotten, mut nameless, mut answering, mut illegible) = (Forgotten::default(), None, None, None);
        // What cannot be read of one channel keeps nobody from being forgotten in the others.
        let mut unreadable = None;
        for (no, stretches) in listed {
            let Some(channel_key) = self.named(ward, no).await? else {
                nameless.get_or_insert(no);
                continue;
            };
            match self.forget_there(&channel_key, no, &person, stretches, answers, &mut forgotten).await {
                Ok(There::Nothing) => {}
                Ok(There::Owed) => drop(answering.get_or_insert(channel_key)),
                Ok(There::Illegible(entries)) => {
                    let (_, all) = illegible.get_or_insert((channel_key, 0));
                    *all += entries;
                }
                Err(Refused::Damaged(detail)) => drop(unreadable.get_or_insert((channel_key, detail))),
                Err(refused) => return Err(refused),
            }
        }
        let (has_used, unread_usage) = self.forget_usage(&guild, &person).await?;
        if let Some((channel_key, detail)) = unreadable {
            return Err(Refused::Damaged(format!(
                "in {channel_key} what they said cannot be forgotten, or not wholly: {detail}; elsewhere all that can be read is forgotten; do \
                 this again once that is mended"
            )));
        }
        if let Some((channel_key, entries)) = illegible {
            let which = if entries == 1 {
                "1 entry cannot be read and may be theirs, or tell of them".to_owned()
            } else {
                format!("{entries} entries cannot be read and may be theirs, or tell of them")
            };
            return Err(damaged(format!(
                "{which}, the first in {channel_key}: all that can be read is forgotten; restore a backup or delete the room, and do this again"
            )));
        }
        if let Some(key) = unread_usage {
            return Err(damaged(format!(
                "what the guild used, at {key}, cannot be read and may name them: all that can be read is forgotten; restore a backup"
            )));
        }
        if let Some(no) = nameless {
            return Err(damaged(format!(
                "they said something in channel {} of ward {}, of which cannot be told any more what it is called: what they said there is \
                 still on record; restore a backup, or find the name again with `tertulia history compact --accept-loss`, and do this again",
                no.0, ward.0
            )));
        }
        if let Some(channel_key) = answering {
            return Err(unavailable(&format!(
                "in {channel_key} a companion owes an answer to what they said, which would come after: nothing is forgotten there yet; try again, \
                 or leave the answers"
            )));
        }
        if is_unknown && !has_used {
            return Err(match self.nobody(&guild, &person).await {
                Refused::NotFound(detail) if answers => Refused::NotFound(format!("{detail}; {ANSWERS_ALONE}")),
                refused => refused,
            });
        }
        if !self.context.compaction_failed.load(Ordering::Relaxed) {
            forgotten.in_file_until = self.context.settings.storage.compacted_by(self.context.clock.now()).map(Stamp);
        }
        Ok(forgotten)
    }

    /// Forgets a person in one of the channels in which they are listed.
    async fn forget_there(
        &self,
        channel_key: &ChannelKey,
        no: ChannelNo,
        person: &PersonId,
        mut stretches: BTreeMap<Seq, Vec<Key>>,
        answers: bool,
        forgotten: &mut Forgotten,
    ) -> Result<There, Refused> {
        let _turn = self.context.rewrite_locks.of(channel_key).await;
        // A stretch that is full now is read once: nothing more is said in it.
        let head = self.reader().head(channel_key).await.map_err(unread)?;
        self.sweep(channel_key, &head).await.map_err(|lost| rewrite_error(lost.into()))?;
        let PersonMessages { messages: theirs, mut illegible } = self
            .reader()
            .messages_by(channel_key.ward(), no, stretches.keys(), person)
            .await
            .map_err(|error| unread(error.of(channel_key)))?;
        let Some(telling) = self.forget_in(channel_key, theirs, answers, forgotten).await? else { return Ok(There::Owed) };
        // Where something may be theirs they stay listed.
        stretches.retain(|first, _| illegible.range(first..&after_stretch(*first)).next().is_none());
        // Last of all: whoever is interrupted finds the rest by doing the same again.
        self.remove_from_index(channel_key, person, stretches, head.last).await.map_err(|lost| rewrite_error(lost.into()))?;
        illegible.extend(telling);
        Ok(if illegible.is_empty() { There::Nothing } else { There::Illegible(illegible.len()) })
    }

    /// Whoever does this has the turn, and all of these messages have words. Tells the numbers of what may tell of them and cannot be read,
    /// the snapshot among them; none: not done, because answers are to go too and one is still being made.
    async fn forget_in(
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
            let answers = answers_to(&self.reader(), channel_key, &gone).await.map_err(unread)?;
            self.delete(channel_key, &answers).await?;
            gone.extend(answers);
        }
        let Told { bare: events, mut illegible, .. } = told_of(&self.reader(), channel_key, &gone).await.map_err(unread)?;
        if has_illegible_snapshot(&*self.context.store, channel_key).await.map_err(unread)? {
            // No event has this number.
            illegible.insert(Seq::NONE);
        }
        for recorded in &events {
            match &recorded.event {
                Event::Said { .. } => forgotten.messages += 1,
                Event::Decided(_) => forgotten.decisions += 1,
                Event::Summarised { .. } => forgotten.summaries += 1,
                Event::Edited { .. }
                | Event::Deleted { .. }
                | Event::Joined { .. }
                | Event::Left { .. }
                | Event::Paused { .. }
                | Event::Cleared
                | Event::CaughtUp { .. }
                | Event::JitterDrawn { .. }
                | Event::LullFired { .. }
                | Event::BackOffEnded { .. }
                | Event::DeadlinesExtended { .. }
                | Event::AddressRefused { .. }
                | Event::RoundOpened(_)
                | Event::Evaluated(_)
                | Event::Unanswered { .. }
                | Event::StageChanged { .. }
                | Event::RoundClosed(_)
                | Event::RepetitionAsked { .. }
                | Event::RepetitionJudged { .. }
                | Event::ReplyOwed { .. }
                | Event::ReplyFailed { .. } => {}
            }
        }
        take_words_out(&self.context, channel_key, events, Vec::new()).await.map_err(rewrite_error)?;
        Ok(Some(illegible))
    }

    /// Conversations that are under way let these messages go.
    async fn delete(&self, channel_key: &ChannelKey, gone: &BTreeSet<Seq>) -> Result<(), Refused> {
        if gone.is_empty() {
            return Ok(());
        }
        let_go(&self.context, channel_key, gone).await.map_err(rewrite_error)
    }

    /// Whether a companion owes an answer to any of these messages: it would come after they are gone.
    async fn is_answered_now(&self, channel_key: &ChannelKey, gone: &BTreeSet<Seq>) -> Result<bool, Refused> {
        let owed = self.reader().outbox(channel_key).await.map_err(unread)?;
        Ok(owed.iter().any(|(_, reply)| reply.messages.iter().any(|seq| gone.contains(seq))))
    }

    /// What a deletion of the whole channel left, because it was interrupted, nobody can read; but there it is.
    async fn sweep(&self, channel_key: &ChannelKey, head: &Head) -> Result<(), WriteError> {
        let (Some(no), below @ Seq(1..)) = (head.no, head.swept_below) else { return Ok(()) };
        let (store, writer) = (self.context.store.clone(), writer_ref(&self.context)?);
        Sweep { store, writer, channel_key: channel_key.clone(), no, below, pace: Pace::AtOnce }.remove_all().await.map(drop)
    }

    /// Takes a person out of the index for stretches of which nothing was theirs any more when the journal had come to this number.
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
                strike(&writer_ref(&self.context)?, channel_key, newest, keys.to_vec(), last).await?;
            }
        }
        for stretch in open.into_keys() {
            let people = &BTreeSet::from([person.clone()]);
            remove_from_index(&self.context, channel_key, Leaving { stretch, below: Seq::NONE, people, notes: &[] }).await?;
        }
        Ok(())
    }

    /// Whether they were named there, and the first record that cannot be read.
    async fn forget_usage(&self, guild: &GuildId, person: &PersonId) -> Result<(bool, Option<Key>), Refused> {
        let (mut from, to) = (key::used_by(guild), key::used_by(guild).end());
        let (mut has_used, mut illegible) = (false, None);
        loop {
            let page = self.context.store.scan(from, to.clone(), false, PAGE).await.map_err(|error| unread(error.into()))?;
            let Some((last, _)) = page.last() else { return Ok((has_used, illegible)) };
            from = key::successor(last);
            let writes = addresses_of(person, page, &mut illegible);
            if !writes.is_empty() {
                has_used = true;
                self.write_meta(Ward::of(guild), writes).await?;
            }
        }
    }
}

/// Records of what was used by which this person addressed somebody, of nobody.
fn addresses_of(person: &PersonId, page: Vec<(Key, Value)>, illegible: &mut Option<Key>) -> Vec<Write> {
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
