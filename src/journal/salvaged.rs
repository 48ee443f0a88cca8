//! Rebuilds records that a damaged store lost from those that are left: names and numbers of channels, the ends of their journals, and the
//! indexes of persons and message ids.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::channel_key::ChannelKey;
use super::inspection;
use super::key;
use super::record::{
    ChannelRecord, OutboxRecord, PendingRecord, RecordError, UsageRecord, Used, decode, decode_event, decode_number, encode,
    encode_number,
};
use super::speakers::{after_stretch, speaker};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq, Ward};
use crate::ports::store::Value;
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::maintenance::Reconstruct;

/// What the readable records say about channels and journals.
#[derive(Debug, Default)]
pub struct Salvaged {
    channels: BTreeMap<(Ward, ChannelNo), ChannelRecord>,
    /// The greatest event number that any record names, by channel.
    last: BTreeMap<(Ward, ChannelNo), Seq>,
    /// One more than the greatest channel number that any record belongs to, by ward.
    next: BTreeMap<Ward, u32>,
    /// The end of the newest stretch in the index of persons, by channel: the journal may have reached it.
    indexed: BTreeMap<(Ward, ChannelNo), Seq>,
    /// The stored heads, by channel; none: the head cannot be read.
    heads: BTreeMap<(Ward, ChannelNo), Option<Seq>>,
    /// The stored number of each ward's next new channel.
    stored_next: BTreeMap<Ward, u32>,
}

/// The position of a snapshot, decoded without its other fields.
#[derive(Deserialize)]
struct SnapshotPosition {
    handled: Seq,
    made: Seq,
}

impl Salvaged {
    fn note_channel(&mut self, ward: Ward, channel: ChannelNo) {
        let next = self.next.entry(ward).or_default();
        *next = (*next).max(channel.0.saturating_add(1));
    }

    /// Notes that an event of this number existed.
    fn note_event(&mut self, ward: Ward, channel: ChannelNo, seq: Seq) {
        // No journal is that long: no event could follow.
        if seq > Seq::NONE && seq.0 < u64::MAX {
            let last = self.last.entry((ward, channel)).or_default();
            *last = (*last).max(seq);
        }
    }
}

/// The channel that a record belongs to.
fn owner(key: &Key) -> Option<ChannelNo> {
    match key.kind()? {
        Kind::Journal
        | Kind::Head
        | Kind::Snapshot
        | Kind::Pending
        | Kind::Outbox
        | Kind::MessageId
        | Kind::ChannelOf
        | Kind::Summary
        | Kind::DeadLetter
        | Kind::Tombstone => key::channel_in(key),
        Kind::Person | Kind::Usage => key::channel_before_number(key),
        Kind::Meta => key::sweep_in(key).or_else(|| key::index_removal_in(key)),
        Kind::ChannelName | Kind::Setting | Kind::Room | Kind::Session | Kind::Webhook | Kind::OptOut | Kind::Brief => None,
    }
}

/// The greatest event number of its channel that a record names, if it names any.
fn greatest_seq(key: &Key, value: &[u8]) -> Option<Seq> {
    let before = |value| decode_number(key, value).ok().map(|seq| Seq(seq.0.saturating_sub(1)));
    match key.kind()? {
        Kind::Journal | Kind::DeadLetter => key.last_number().map(Seq),
        Kind::Head => decode_number(key, value).ok(),
        Kind::Tombstone => before(value),
        Kind::Meta if key::index_removal_in(key).is_some() => key.last_number().map(Seq),
        Kind::Meta => before(value),
        Kind::Snapshot => decode(key, value).ok().map(|SnapshotPosition { handled, made }| handled.max(made)),
        Kind::Pending => decode(key, value).ok().map(|PendingRecord { heard, .. }| heard),
        Kind::Outbox => decode(key, value).ok().map(|record: OutboxRecord| record.upto),
        Kind::MessageId => decode(key, value).ok(),
        Kind::Usage => {
            let UsageRecord { used: Used::Address { message, .. }, .. } = decode(key, value).ok()? else { return None };
            Some(message)
        }
        _ => None,
    }
}

impl Reconstruct for Salvaged {
    fn observe(&mut self, key: &Key, value: &[u8]) {
        let (&[ward, ..], Some(kind)) = (key.as_bytes(), key.kind()) else { return };
        let ward = Ward(ward);
        let channel_of_record = owner(key);
        if let Some(channel) = channel_of_record {
            self.note_channel(ward, channel);
            if let Some(seq) = greatest_seq(key, value) {
                self.note_event(ward, channel, seq);
            }
        }
        match (kind, channel_of_record) {
            (Kind::Person, Some(channel)) => {
                if let Some(seq) = key.last_number() {
                    let end = self.indexed.entry((ward, channel)).or_default();
                    *end = (*end).max(Seq(after_stretch(Seq(seq)).0 - 1));
                }
            }
            (Kind::Head, Some(channel)) => drop(self.heads.insert((ward, channel), decode_number(key, value).ok())),
            (Kind::ChannelOf, Some(channel)) => {
                if let Ok(record) = decode(key, value) {
                    self.channels.insert((ward, channel), record);
                }
            }
            (Kind::ChannelName, _) => {
                if let (Some(channel_key), Ok(number)) = (key::channel_key_in(key), decode(key, value).map(ChannelNo)) {
                    self.note_channel(ward, number);
                    let ChannelKey { guild, channel } = channel_key;
                    self.channels.entry((ward, number)).or_insert(ChannelRecord { guild, channel });
                }
            }
            (Kind::Meta, _) if *key == key::next_channel(ward) => match decode(key, value) {
                Ok(next) => drop(self.stored_next.insert(ward, next)),
                // A newer version wrote it, so it must not be changed.
                Err(RecordError::UnknownVersion { .. } | RecordError::UnknownVariant { .. }) => {
                    self.stored_next.insert(ward, u32::MAX);
                }
                Err(RecordError::Malformed { .. }) => {}
            },
            _ => {}
        }
    }

    fn missing_records(&self) -> Vec<(Key, Value)> {
        let names = self.channels.iter().flat_map(|((ward, number), record)| {
            let channel_key = ChannelKey::new(&record.guild, &record.channel);
            [(key::channel_of(*ward, *number), encode(record)), (key::channel_name(&channel_key), encode(&number.0))]
        });
        names.collect()
    }

    fn outdated_counters(&self) -> Vec<(Key, Value)> {
        // A channel's number must never be given to another channel.
        let next = self.next.iter().filter(|(ward, next)| self.stored_next.get(ward).is_none_or(|stored| stored < next));
        let next = next.map(|(ward, next)| (key::next_channel(*ward), encode(next)));
        // The same holds for event numbers: a snapshot that contains the number would take the new event for handled. Where the head is lost, the
        // journal may have reached the end of the last stretch that the index of persons names.
        let mut reached = self.last.clone();
        for (channel, end) in self.indexed.iter().filter(|(channel, _)| !self.heads.contains_key(channel)) {
            let last = reached.entry(*channel).or_default();
            *last = (*last).max(*end);
        }
        let heads = reached.into_iter().filter(|(channel, last)| self.heads.get(channel).is_none_or(|head| *head < Some(*last)));
        let heads = heads.map(|((ward, channel), last)| (Key::head(ward, channel), encode_number(last)));
        next.chain(heads).collect()
    }

    fn derived_records(&self, key: &Key, value: &[u8]) -> Vec<(Key, Value)> {
        let [ward, ..] = *key.as_bytes() else { return Vec::new() };
        let ward = Ward(ward);
        let Some(channel) = key::channel_in(key).filter(|_| key.is(Kind::Journal)) else { return Vec::new() };
        let Ok(Recorded { seq, event, .. }) = decode_event(key, value) else { return Vec::new() };
        let id = if let Event::Said { message, .. } = &event { message.id.as_ref() } else { None };
        let id = id.map(|id| (key::message_id(ward, channel, id), encode(&seq)));
        let person = speaker(&event).zip(self.channels.get(&(ward, channel))).map(|(person, record)| {
            let key = key::person(&record.guild, &PersonId::from(&**person), channel, seq);
            (key, encode(&()))
        });
        person.into_iter().chain(id).collect()
    }

    /// Of two messages with one id the newer wins. An unreadable record is replaced, unless it has a newer format.
    fn should_replace(&self, key: &Key, value: &[u8], stored: &[u8]) -> bool {
        let seq = |value| decode::<Seq>(key, value).ok();
        match inspection::read(key, stored) {
            Ok(()) => key.is(Kind::MessageId) && seq(value) > seq(stored),
            Err(RecordError::Malformed { .. }) => true,
            Err(RecordError::UnknownVersion { .. } | RecordError::UnknownVariant { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests;
