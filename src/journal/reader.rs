//! Reads journals and the records that belong to them, a bounded page at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::de::DeserializeOwned;

mod pending;
mod read_error;
mod restoring;

pub use self::pending::Pending;
pub use self::read_error::ReadError;
pub use self::restoring::{Restored, RestoredSoFar};

use super::channel_key::ChannelKey;
use super::key;
use super::membership;
use super::record::{
    BriefRecord, ChannelRecord, CompanionRecord, DeadLetterRecord, FileRecord, NoteSwitchRecord, OutboxRecord, PendingRecord,
    RecordError, RoomRecord, UsageRecord, decode, decode_bytes, decode_event, decode_number,
};
use super::redaction::is_redacted;
use super::speakers::{after_stretch, speakers, stretch};
use crate::domain::event::{Disclosed, Event, Recorded};
use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Seq, Ticket, Ward};
use crate::domain::message::Message;
use crate::domain::moment::Moment;
use crate::domain::note::Note;
use crate::domain::policy::zone::Zone;
use crate::ports::inbound_events::StoredFile;
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::{Store, Value};

/// How many keys are read at once.
const PAGE: usize = 512;
/// The number of events after a statement within which reactions on it are recorded.
pub const REACTED_WITHIN: usize = 512;

/// How many events are read at once in the search for the newest inbound event.
const NEWEST: usize = 16;

/// The extent and state of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The channel's interned number. `None`: nothing was ever stored for the channel.
    pub no: Option<ChannelNo>,
    /// The number of its last event.
    pub last: Seq,
    /// The time of the last event. If that event cannot be read, the time of the newest readable event before it.
    pub at: Moment,
    /// Present while the channel has unsettled messages, armed timers or owed replies, or while a companion may start a
    /// conversation. It contains the newest inbound event.
    pub pending: Option<PendingRecord>,
    /// The low-water mark: events below this number were deleted or have expired.
    pub lowest: Seq,
    /// All events below this number are deleted and still being swept. `Seq::NONE`: no sweep is in progress.
    pub swept_below: Seq,
}

/// A person's entries in the index: by channel, the first number of each stretch, with the keys of the entries.
pub type Listings = BTreeMap<ChannelNo, BTreeMap<Seq, Vec<Key>>>;

/// The messages of a person in some stretches of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonMessages {
    /// The numbers of the person's messages, and of other events that name the person.
    pub messages: BTreeSet<Seq>,
    /// Companions' statements that the person interrupted, and messages of other people that quote the person.
    pub naming: BTreeSet<Seq>,
    /// The numbers of unreadable events, which may be the person's.
    pub illegible: BTreeSet<Seq>,
}

/// The readable events of a range of a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Legible {
    /// The readable events, in order.
    pub events: Vec<Recorded>,
    /// The numbers of the unreadable events.
    pub illegible: BTreeSet<Seq>,
    /// The last number in the range that was read.
    pub last: Option<Seq>,
}

impl Legible {
    /// The number of events that were read, readable or not.
    pub fn looked_at(&self) -> usize {
        self.events.len() + self.illegible.len()
    }
}

/// A range of events of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Exclusive start. `Seq::NONE`: from the beginning.
    pub after: Seq,
    /// Exclusive end. `None`: to the end.
    pub before: Option<Seq>,
    /// The most events to read.
    pub limit: usize,
    /// Read from the end of the range towards its beginning.
    pub newest_first: bool,
}

/// The keys from `from` (inclusive) to `to` (exclusive) and their values, a page at a time.
pub struct Pages<'a> {
    store: &'a dyn Store,
    from: Key,
    to: Key,
}

impl Pages<'_> {
    /// The next page. `None`: the end is reached.
    pub async fn next(&mut self) -> Result<Option<Vec<(Key, Value)>>, ReadError> {
        let page = self.store.scan(self.from.clone(), self.to.clone(), false, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        self.from = key::successor(last);
        Ok(Some(page))
    }
}

/// The events of one channel.
pub struct Journal<'a> {
    reader: Reader<'a>,
    ward: Ward,
    /// `None`: nothing was ever stored for the channel.
    no: Option<ChannelNo>,
    swept_below: Seq,
}

impl Journal<'_> {
    /// Reads events. Events that cannot be decoded are listed by number.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub async fn legible(&self, range: Range) -> Result<Legible, ReadError> {
        Ok(legible(&self.stored(range).await?))
    }

    /// Reads events without decoding them.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub async fn stored(&self, range: Range) -> Result<Vec<(Key, Value)>, ReadError> {
        let Some(no) = self.no else { return Ok(Vec::new()) };
        let from = Seq(range.after.0.saturating_add(1)).max(self.swept_below);
        let to = range.before.unwrap_or(Seq(u64::MAX));
        let (from, to) = (Key::event(self.ward, no, from), Key::event(self.ward, no, to));
        self.reader.collect(from, to, range.limit, range.newest_first).await
    }

    /// The notes of the channel after an event, oldest first, and the newest `clear` after it.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub async fn notes_and_clear(&self, after: Seq) -> Result<(Vec<(Seq, Arc<Note>)>, Option<Seq>), ReadError> {
        let Some(no) = self.no else { return Ok((Vec::new(), None)) };
        let first = after.next().max(self.swept_below);
        let mut pages = self.reader.pages(key::noted(self.ward, no, first), key::noted(self.ward, no, Seq(u64::MAX)));
        let (mut notes, mut cleared) = (Vec::new(), None);
        while let Some(page) = pages.next().await? {
            for seq in page.iter().filter_map(|(key, _)| key.last_number().map(Seq)) {
                let range =
                    Range { after: Seq(seq.0.saturating_sub(1)), before: Some(seq.next()), limit: 1, newest_first: false };
                for recorded in self.legible(range).await?.events {
                    cleared = cleared.max(matches!(recorded.event, Event::Cleared { anew: false }).then_some(recorded.seq));
                    notes.extend(note_of(recorded));
                }
            }
        }
        Ok((notes, cleared))
    }
}

/// The note of an event, unless it was deleted.
pub fn note_of(recorded: Recorded) -> Option<(Seq, Arc<Note>)> {
    let Event::Noted(note) = recorded.event else { return None };
    (!note.is_redacted()).then(|| (recorded.seq, Arc::from(note)))
}

/// Reads records from a store.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    store: &'a dyn Store,
}

impl<'a> Reader<'a> {
    pub fn new(store: &'a dyn Store) -> Self {
        Self { store }
    }

    /// The interned number of a channel. `None`: nothing was ever stored for it.
    pub async fn channel_no(&self, channel_key: &ChannelKey) -> Result<Option<ChannelNo>, ReadError> {
        Ok(self.record(key::channel_name(channel_key)).await?.map(ChannelNo))
    }

    /// The channel of an interned number. `None`: one of the two records of its name is lost, so its data cannot be found under
    /// the name.
    pub async fn channel_of(&self, ward: Ward, channel: ChannelNo) -> Result<Option<ChannelRecord>, ReadError> {
        let Some(record) = self.record::<ChannelRecord>(key::channel_of(ward, channel)).await? else { return Ok(None) };
        match self.channel_no(&ChannelKey::new(&record.guild, &record.channel)).await {
            Ok(found) if found != Some(channel) => Ok(None),
            // An unreadable record is reported by the functions that need it.
            _ => Ok(Some(record)),
        }
    }

    /// The channel key of an interned number.
    pub async fn channel_key_of(&self, ward: Ward, channel: ChannelNo) -> Result<Option<ChannelKey>, ReadError> {
        let record = self.channel_of(ward, channel).await?;
        Ok(record.map(|ChannelRecord { guild, channel }| ChannelKey { guild, channel }))
    }

    /// The number for a ward's next new channel. It is always unused, even if its record is lost or outdated.
    pub async fn next_channel(&self, ward: Ward) -> Result<u32, ReadError> {
        let mut next: u32 = self.record(key::next_channel(ward)).await?.unwrap_or(0);
        while self.store.get(Key::head(ward, ChannelNo(next))).await?.is_some() {
            next = next.saturating_add(1);
        }
        Ok(next)
    }

    /// Reads the extent and state of a journal.
    pub async fn head(&self, channel_key: &ChannelKey) -> Result<Head, ReadError> {
        self.read_head(channel_key).await.map_err(|error| error.of(channel_key))
    }

    async fn read_head(&self, channel_key: &ChannelKey) -> Result<Head, ReadError> {
        let Some(no) = self.channel_no(channel_key).await? else { return Ok(Head::default()) };
        let ward = channel_key.ward();
        let last = self.number(Key::head(ward, no)).await?;
        let at = self.newest_at(ward, no, last).await?;
        let pending = match self.record(key::pending(ward, no)).await {
            // The record's existence means that there is unfinished work. The rest can be read from the journal.
            Err(ReadError::Record(_)) => Some(PendingRecord { heard: Seq::NONE, due: None }),
            read => read?,
        };
        let pending = match pending {
            Some(PendingRecord { heard, due }) => {
                Some(PendingRecord { heard: self.newest_heard(ward, no, heard, last).await?, due })
            }
            None => None,
        };
        Ok(Head {
            no: Some(no),
            last,
            at,
            pending,
            lowest: self.lowest(ward, no).await?,
            swept_below: self.number(key::sweep(ward, no)).await?,
        })
    }

    /// The time of the last event. If that event cannot be read, the time of the newest readable event before it.
    async fn newest_at(&self, ward: Ward, no: ChannelNo, last: Seq) -> Result<Moment, ReadError> {
        let key = Key::event(ward, no, last);
        let Some(value) = self.store.get(key.clone()).await? else { return Ok(Moment::ZERO) };
        let time = |key: &Key, value: &Value| decode_event(key, value).ok().map(|recorded| recorded.at);
        match time(&key, &value) {
            Some(at) => Ok(at),
            None => Ok(self.newest(Key::event(ward, no, Seq::NONE), key, time).await?.unwrap_or(Moment::ZERO)),
        }
    }

    /// The newest inbound event, at or after a known one. An unreadable event counts as inbound, because it may be one.
    async fn newest_heard(&self, ward: Ward, no: ChannelNo, known: Seq, last: Seq) -> Result<Seq, ReadError> {
        let inbound = |key: &Key, value: &Value| {
            let is_inbound = decode_event(key, value).map_or(true, |recorded| recorded.event.is_inbound());
            key.last_number().filter(|_| is_inbound).map(Seq)
        };
        let (from, to) = (Key::event(ward, no, known.next()), Key::event(ward, no, last.next()));
        Ok(self.newest(from, to, inbound).await?.unwrap_or(known))
    }

    /// Returns the first result of `find` in a range, from the newest entry to the oldest.
    async fn newest<T>(&self, from: Key, mut to: Key, find: impl Fn(&Key, &Value) -> Option<T>) -> Result<Option<T>, ReadError> {
        loop {
            let page = self.store.scan(from.clone(), to, true, NEWEST).await?;
            if let Some(found) = page.iter().find_map(|(key, value)| find(key, value)) {
                return Ok(Some(found));
            }
            match page.last() {
                Some((oldest, _)) if page.len() == NEWEST => to = oldest.clone(),
                _ => return Ok(None),
            }
        }
    }

    /// Reads events of a journal.
    ///
    /// # Errors
    /// [`ReadError::Illegible`] if one of them cannot be decoded.
    pub async fn events(&self, channel_key: &ChannelKey, range: Range) -> Result<Vec<Recorded>, ReadError> {
        self.stored(channel_key, range).await?.iter().map(|(key, value)| entry(channel_key, key, value)).collect()
    }

    /// Reads events of a journal. Events that cannot be decoded are listed by number.
    pub async fn legible(&self, channel_key: &ChannelKey, range: Range) -> Result<Legible, ReadError> {
        Ok(legible(&self.stored(channel_key, range).await?))
    }

    async fn stored(&self, channel_key: &ChannelKey, range: Range) -> Result<Vec<(Key, Value)>, ReadError> {
        self.read_stored(channel_key, range).await.map_err(|error| error.of(channel_key))
    }

    async fn read_stored(&self, channel_key: &ChannelKey, range: Range) -> Result<Vec<(Key, Value)>, ReadError> {
        self.find_journal(channel_key).await?.stored(range).await
    }

    /// The journal of a channel, for several reads. Events that are deleted in the meantime may still be found.
    pub async fn journal(&self, channel_key: &ChannelKey) -> Result<Journal<'a>, ReadError> {
        self.find_journal(channel_key).await.map_err(|error| error.of(channel_key))
    }

    async fn find_journal(&self, channel_key: &ChannelKey) -> Result<Journal<'a>, ReadError> {
        let (ward, no) = (channel_key.ward(), self.channel_no(channel_key).await?);
        let swept_below = match no {
            Some(no) => self.number(key::sweep(ward, no)).await?,
            None => Seq::NONE,
        };
        Ok(Journal { reader: *self, ward, no, swept_below })
    }

    /// Reads one event of a journal.
    pub async fn event(&self, channel_key: &ChannelKey, seq: Seq) -> Result<Option<Recorded>, ReadError> {
        let (after, before) = (Seq(seq.0.saturating_sub(1)), Some(Seq(seq.0.saturating_add(1))));
        let range = Range { after, before, limit: 1, newest_first: false };
        Ok(self.events(channel_key, range).await?.into_iter().find(|event| event.seq == seq))
    }

    /// The message with this number. `None` if there is none, or it was deleted.
    pub async fn said(&self, channel_key: &ChannelKey, seq: Seq) -> Result<Option<Message>, ReadError> {
        Ok(self.event(channel_key, seq).await?.and_then(|recorded| match recorded.event {
            Event::Said { message, .. } if !is_redacted(&message) => Some(message),
            _ => None,
        }))
    }

    /// The notice that a statement carries. It is recorded right after it.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read.
    pub async fn notice(&self, channel_key: &ChannelKey, statement: Seq) -> Result<Option<Disclosed>, ReadError> {
        Ok(self.event(channel_key, statement.next()).await?.and_then(|recorded| match recorded.event {
            Event::Disclosed(disclosed) => Some(*disclosed),
            _ => None,
        }))
    }

    /// The number of the message with this platform id.
    pub async fn message(&self, channel_key: &ChannelKey, id: &str) -> Result<Option<Seq>, ReadError> {
        self.read_message(channel_key, id).await.map_err(|error| error.of(channel_key))
    }

    async fn read_message(&self, channel_key: &ChannelKey, id: &str) -> Result<Option<Seq>, ReadError> {
        let Some(no) = self.channel_no(channel_key).await? else { return Ok(None) };
        let below = self.number(key::sweep(channel_key.ward(), no)).await?;
        let seq: Option<Seq> = self.record(key::message_id(channel_key.ward(), no, id)).await?;
        Ok(seq.filter(|seq| *seq >= below))
    }

    /// The numbers of the messages that quote the platform's message `id`, which is not in the journal.
    pub async fn quotations(&self, channel_key: &ChannelKey, id: &str) -> Result<BTreeSet<Seq>, ReadError> {
        let Some(no) = self.channel_no(channel_key).await? else { return Ok(BTreeSet::new()) };
        let own = key::message_id(channel_key.ward(), no, id);
        let entries = self.all(own.clone()).await?;
        // An unreadable entry leads to no message, so it is skipped.
        Ok(entries.iter().filter(|(key, _)| *key != own).filter_map(|(key, value)| decode(key, value).ok()).collect())
    }

    /// The platform's ids of a message, in the order of its parts.
    pub async fn ids_of(&self, channel_key: &ChannelKey, seq: Seq) -> Result<Vec<Arc<str>>, ReadError> {
        let Some(no) = self.channel_no(channel_key).await? else { return Ok(Vec::new()) };
        let all = Key::new(channel_key.ward(), Kind::MessageId).channel(no);
        let (mut pages, mut ids) = (self.pages(all.clone(), all.end()), Vec::new());
        while let Some(page) = pages.next().await? {
            let of_message = page.iter().filter(|(key, value)| decode::<Seq>(key, value).is_ok_and(|of| of == seq));
            ids.extend(of_message.filter_map(|(key, _)| key::message_id_in(key)));
        }
        // Later ids are greater numbers.
        ids.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        Ok(ids)
    }

    /// The replies owed in a channel.
    pub async fn outbox(&self, channel_key: &ChannelKey) -> Result<Vec<(Ticket, OutboxRecord)>, ReadError> {
        self.read_outbox(channel_key).await.map_err(|error| error.of(channel_key))
    }

    async fn read_outbox(&self, channel_key: &ChannelKey) -> Result<Vec<(Ticket, OutboxRecord)>, ReadError> {
        let Some(no) = self.channel_no(channel_key).await? else { return Ok(Vec::new()) };
        let below = self.number(key::sweep(channel_key.ward(), no)).await?;
        let mut owed = Vec::new();
        for (key, value) in self.all(Key::new(channel_key.ward(), Kind::Outbox).channel(no)).await? {
            let record: OutboxRecord = decode(&key, &value)?;
            if let Some(ticket) = key.last_number().filter(|_| record.upto >= below) {
                owed.push((Ticket(ticket), record));
            }
        }
        Ok(owed)
    }

    /// The directory of rooms.
    pub async fn rooms(&self) -> Result<Vec<RoomRecord>, ReadError> {
        self.records(Key::new(Ward(0), Kind::Room)).await
    }

    /// The stored memberships of a ward, by key, not decoded.
    pub async fn memberships(&self, ward: Ward) -> Result<BTreeMap<Key, Value>, ReadError> {
        Ok(self.all(membership::all(ward)).await?.into_iter().collect())
    }

    /// One room of the directory.
    pub async fn room(&self, room: &ChannelId) -> Result<Option<RoomRecord>, ReadError> {
        self.record(key::room(room)).await
    }

    /// Passes a guild's usage records from `from` (inclusive) to `to` (exclusive; `None`: to the end) to `take`, oldest first,
    /// until `take` breaks. At most one page of them is in memory at a time.
    pub async fn usage(
        &self,
        guild: &GuildId,
        from: Moment,
        to: Option<Moment>,
        mut take: impl FnMut(UsageRecord) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let to = to.map_or_else(|| key::used_by(guild).end(), |to| key::usage_from(guild, to));
        let mut pages = self.pages(key::usage_from(guild, from), to);
        while let Some(page) = pages.next().await? {
            for (key, value) in &page {
                // An unreadable record does not prevent the others from being counted.
                let Ok(record) = decode(key, value)
                    .inspect_err(|error| tracing::warn!(%error, "a usage record cannot be read and is not counted"))
                else {
                    continue;
                };
                if take(record).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Every guild that has usage records, even if its rooms are deleted. Each guild takes one short read.
    pub async fn guilds_with_usage(&self) -> Result<Vec<GuildId>, ReadError> {
        let mut guilds = Vec::new();
        for ward in (0..=u8::MAX).map(Ward) {
            let mut from = key::all_usage(ward);
            let end = from.clone().end();
            while let Some((key, _)) = self.store.scan(from, end.clone(), false, 1).await?.pop() {
                let guild = key::guild_of_usage(&key).ok_or_else(|| nameless(&key, "guild"))?;
                from = key::used_by(&guild).end();
                guilds.push(guild);
            }
        }
        guilds.sort();
        Ok(guilds)
    }

    /// The starts of the server after one moment and before another, oldest first, at most `limit`.
    pub async fn starts(&self, after: Moment, before: Moment, limit: usize) -> Result<Vec<Moment>, ReadError> {
        let from = Moment::from_micros(after.as_micros().saturating_add(1));
        let stored = self.collect(key::start(from), key::start(before), limit, false).await?;
        Ok(stored.iter().filter_map(|(key, _)| key.last_number().map(Moment::from_micros)).collect())
    }

    /// The dead letter of a message, if it is one.
    pub async fn dead_letter(&self, channel_key: &ChannelKey, seq: Seq) -> Result<Option<DeadLetterRecord>, ReadError> {
        let read = async {
            let Some(no) = self.channel_no(channel_key).await? else { return Ok(None) };
            self.record(key::dead_letter(channel_key.ward(), no, seq)).await
        };
        read.await.map_err(|error: ReadError| error.of(channel_key))
    }

    /// A person's entries in the index of persons of a guild.
    pub async fn listed(&self, guild: &GuildId, person: &PersonId) -> Result<Listings, ReadError> {
        let mut listed = Listings::new();
        for (key, _) in self.all(key::person_entries(guild, person)).await? {
            if let (Some(no), Some(seq)) = (key::channel_before_number(&key), key.last_number().map(Seq)) {
                listed.entry(no).or_default().entry(stretch(seq)).or_default().push(key);
            }
        }
        Ok(listed)
    }

    /// The unredacted messages of a person in these stretches of a channel, and the unreadable events there. Each stretch is read
    /// once.
    pub async fn messages_by(
        &self,
        ward: Ward,
        no: ChannelNo,
        stretches: impl IntoIterator<Item = &Seq>,
        person: &PersonId,
    ) -> Result<PersonMessages, ReadError> {
        let mut result = PersonMessages::default();
        for first in stretches {
            let page = legible(&self.stretch(ward, no, *first, after_stretch(*first)).await?);
            let theirs = page.events.into_iter().filter(|recorded| speakers(&recorded.event).any(|id| **id == *person.as_str()));
            for recorded in theirs {
                if matches!(&recorded.event, Event::Said { message, .. } if *message.from.id != *person.as_str()) {
                    result.naming.insert(recorded.seq);
                } else {
                    result.messages.insert(recorded.seq);
                }
            }
            result.illegible.extend(page.illegible);
        }
        Ok(result)
    }

    /// The unredacted reactions on a statement, and whether these are all: those among the [`REACTED_WITHIN`] events after it.
    pub async fn reactions_on(&self, channel_key: &ChannelKey, statement: Seq) -> Result<(Vec<Recorded>, bool), ReadError> {
        let range = Range { after: statement, before: None, limit: REACTED_WITHIN, newest_first: false };
        let page = self.legible(channel_key, range).await?;
        let is_all = page.looked_at() < REACTED_WITHIN;
        let mut events = page.events;
        let is_on = |event: &Event| matches!(event, Event::Reacted { message, by, .. } if *message == statement && !by.as_str().is_empty());
        events.retain(|recorded| is_on(&recorded.event));
        Ok((events, is_all))
    }

    /// The people named in the events from `from` (inclusive) to `to` (exclusive), and the unreadable events there, which may
    /// name others.
    pub async fn speakers(
        &self,
        ward: Ward,
        no: ChannelNo,
        from: Seq,
        to: Seq,
    ) -> Result<(BTreeSet<PersonId>, BTreeSet<Seq>), ReadError> {
        let Legible { events, illegible, .. } = legible(&self.stretch(ward, no, from, to).await?);
        let speakers = events.iter().flat_map(|recorded| speakers(&recorded.event)).map(|id| PersonId::from(&**id));
        Ok((speakers.collect(), illegible))
    }

    /// Whether no event is stored in the stretch that contains an event.
    pub async fn is_empty(&self, ward: Ward, no: ChannelNo, seq: Seq) -> Result<bool, ReadError> {
        let (first, end) = (Key::event(ward, no, stretch(seq)), Key::event(ward, no, after_stretch(seq)));
        Ok(self.store.scan(first, end, false, 1).await?.is_empty())
    }

    /// The low-water mark of a journal.
    pub async fn lowest(&self, ward: Ward, no: ChannelNo) -> Result<Seq, ReadError> {
        self.number(key::tombstone(ward, no)).await
    }

    async fn stretch(&self, ward: Ward, no: ChannelNo, from: Seq, to: Seq) -> Result<Vec<(Key, Value)>, ReadError> {
        // Events that a deletion has not swept yet count as deleted.
        let from = from.max(self.number(key::sweep(ward, no)).await?);
        self.collect(Key::event(ward, no, from), Key::event(ward, no, to), usize::MAX, false).await
    }

    /// The opt-outs of a ward's guilds. They are read from the keys alone, so that a damaged value does not end an opt-out.
    pub async fn opt_outs(&self, ward: Ward) -> Result<Vec<(GuildId, PersonId)>, ReadError> {
        let stored = self.all(Key::new(ward, Kind::OptOut)).await?;
        let people = stored.iter().map(|(key, _)| key::opt_out_in(key).ok_or_else(|| nameless(key, "guild and person")));
        Ok(people.collect::<Result<_, _>>()?)
    }

    /// The notes of a channel after a number, in order, without deleted ones.
    pub async fn notes(&self, channel_key: &ChannelKey, after: Seq) -> Result<Vec<(Seq, Arc<Note>)>, ReadError> {
        Ok(self.journal(channel_key).await?.notes_and_clear(after).await?.0)
    }

    /// The time zone that a person chose in a guild. `None`: none that this machine knows.
    pub async fn time_zone(&self, guild: &GuildId, person: &PersonId) -> Result<Option<Arc<str>>, ReadError> {
        let key = key::time_zone(guild, person);
        let name = self.store.get(key.clone()).await?.map(|value| decode_bytes(&key, &value)).transpose()?;
        Ok(name.and_then(|name| String::from_utf8(name).ok()).filter(|name| Zone::parse(name).is_some()).map(Arc::from))
    }

    /// Whether notes are taken in a ward's guilds, and of their people.
    pub async fn note_switches(&self, ward: Ward) -> Result<Vec<(GuildId, PersonId, NoteSwitchRecord)>, ReadError> {
        let stored = self.all(Key::new(ward, Kind::NoteSwitch)).await?;
        let switch = |(key, value): &(Key, Value)| {
            let (guild, person) = key::disclosure_in(key).ok_or_else(|| nameless(key, "guild and person"))?;
            Ok((guild, person, decode(key, value)?))
        };
        stored.iter().map(switch).collect::<Result<_, RecordError>>().map_err(ReadError::from)
    }

    /// When the people of a ward's guilds last received the disclosure that companions are AI. Records that cannot be decoded are
    /// left out, so those people receive it again.
    pub async fn disclosures(&self, ward: Ward) -> Result<Vec<(GuildId, PersonId, Moment)>, ReadError> {
        let stored = self.all(Key::new(ward, Kind::Told)).await?;
        let told = stored.into_iter().filter_map(|(key, value)| {
            let (guild, person) = key::disclosure_in(&key)?;
            Some((guild, person, decode(&key, &value).ok()?))
        });
        Ok(told.collect())
    }

    /// The briefs of personas, by key. `None`: a brief cannot be decoded, and is written again.
    pub async fn briefs(&self) -> Result<BTreeMap<Key, Option<BriefRecord>>, ReadError> {
        let stored = self.all(key::briefs()).await?;
        Ok(stored.into_iter().map(|(key, value)| (key.clone(), decode(&key, &value).ok())).collect())
    }

    /// The companions that are stored in the store, by id. An error says why a companion cannot be decoded.
    pub async fn companions(&self) -> Result<BTreeMap<CompanionId, Result<CompanionRecord, String>>, ReadError> {
        let stored = self.all(key::companions()).await?;
        let named = stored.into_iter().filter_map(|(key, value)| Some((key::companion_in(&key)?, key, value)));
        Ok(named.map(|(id, key, value)| (id, decode(&key, &value).map_err(|error| error.detail()))).collect())
    }

    /// The opaque bytes of a key: a picture, or a card.
    pub async fn bytes(&self, key: Key) -> Result<Option<Vec<u8>>, ReadError> {
        let value = self.store.get(key.clone()).await?;
        Ok(value.map(|value| decode_bytes(&key, &value)).transpose()?)
    }

    /// The records of the files of messages, from one message to before another: the message, the number of the file, and the record.
    pub async fn files(
        &self,
        channel_key: &ChannelKey,
        from: Seq,
        before: Seq,
    ) -> Result<Vec<(Seq, u64, FileRecord)>, ReadError> {
        let Some(no) = self.channel_no(channel_key).await? else { return Ok(Vec::new()) };
        let ward = channel_key.ward();
        let (from, to) = (key::files_from(ward, no, from), key::files_from(ward, no, before));
        let stored = self.collect(from, to, usize::MAX, false).await?;
        let files = stored.iter().map(|(key, value)| {
            let names = key::message_of_file(key).zip(key.last_number()).unwrap_or_default();
            Ok((names.0, names.1, decode(key, value)?))
        });
        files.collect()
    }

    /// The files of a message, with their bytes, in the order of their numbers.
    pub async fn files_of(&self, channel_key: &ChannelKey, message: Seq) -> Result<Vec<StoredFile>, ReadError> {
        let mut files = Vec::new();
        for (_, number, _) in self.files(channel_key, message, message.next()).await? {
            files.extend(self.file(channel_key, message, number).await?);
        }
        Ok(files)
    }

    /// A file of a message, with its bytes. `None` if it does not exist.
    pub async fn file(&self, channel_key: &ChannelKey, message: Seq, file: u64) -> Result<Option<StoredFile>, ReadError> {
        let Some(no) = self.channel_no(channel_key).await? else { return Ok(None) };
        let Some(record) = self.record::<FileRecord>(key::file(channel_key.ward(), no, message, file)).await? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        for (key, value) in self.all(key::file_parts(channel_key.ward(), no, message, file)).await? {
            bytes.extend(decode_bytes(&key, &value)?);
        }
        let is_whole = bytes.len() as u64 == record.bytes;
        Ok(is_whole.then(|| StoredFile { media_type: record.media_type, bytes: bytes.into() }))
    }

    /// The dead letters of a channel.
    pub async fn dead_letters(&self, ward: Ward, channel: ChannelNo) -> Result<Vec<DeadLetterRecord>, ReadError> {
        self.records(key::dead_letters(ward, channel)).await
    }

    /// The keys of a range and their values, a page at a time.
    pub fn pages(&self, from: Key, to: Key) -> Pages<'a> {
        Pages { store: self.store, from, to }
    }

    /// All keys with this prefix, with their values.
    pub async fn all(&self, prefix: Key) -> Result<Vec<(Key, Value)>, ReadError> {
        self.collect(prefix.clone(), prefix.end(), usize::MAX, false).await
    }

    async fn records<T: DeserializeOwned>(&self, prefix: Key) -> Result<Vec<T>, ReadError> {
        let stored = self.all(prefix).await?;
        Ok(stored.iter().map(|(key, value)| decode(key, value)).collect::<Result<_, _>>()?)
    }

    async fn record<T: DeserializeOwned>(&self, key: Key) -> Result<Option<T>, ReadError> {
        let value = self.store.get(key.clone()).await?;
        Ok(value.map(|value| decode(&key, &value)).transpose()?)
    }

    async fn number(&self, key: Key) -> Result<Seq, ReadError> {
        let value = self.store.get(key.clone()).await?;
        Ok(value.map(|value| decode_number(&key, &value)).transpose()?.unwrap_or(Seq::NONE))
    }

    async fn collect(
        &self,
        mut from: Key,
        mut to: Key,
        limit: usize,
        newest_first: bool,
    ) -> Result<Vec<(Key, Value)>, ReadError> {
        let mut found = Vec::new();
        while from < to && found.len() < limit {
            let page_limit = PAGE.min(limit - found.len());
            let page = self.store.scan(from.clone(), to.clone(), newest_first, page_limit).await?;
            let is_last = page.len() < page_limit;
            match page.last() {
                Some((last, _)) if newest_first => to = last.clone(),
                Some((last, _)) => from = key::successor(last),
                None => {}
            }
            found.extend(page);
            if is_last {
                break;
            }
        }
        Ok(found)
    }
}

fn nameless(key: &Key, what: &str) -> RecordError {
    RecordError::Malformed { key: key.clone(), detail: format!("its key contains no {what}") }
}

/// Decodes an event of a journal.
fn entry(channel_key: &ChannelKey, key: &Key, value: &[u8]) -> Result<Recorded, ReadError> {
    decode_event(key, value).map_err(|error| ReadError::from(error).of(channel_key))
}

fn legible(stored: &[(Key, Value)]) -> Legible {
    let mut read = Legible::default();
    for (key, value) in stored {
        read.last = key.last_number().map(Seq).or(read.last);
        match decode_event(key, value) {
            Ok(recorded) => read.events.push(recorded),
            Err(_) => read.illegible.extend(key.last_number().map(Seq)),
        }
    }
    read
}

#[cfg(test)]
mod tests;
