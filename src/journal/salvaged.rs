//! What the records that are left of a damaged store tell of those that are lost: names and numbers of channels, how far their journals
//! went, who said what, and under which id.

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

/// What was read of a store.
#[derive(Debug, Default)]
pub struct Salvaged {
    channels: BTreeMap<(Ward, ChannelNo), ChannelRecord>,
    /// The greatest number of an event that anything names, by channel.
    last: BTreeMap<(Ward, ChannelNo), Seq>,
    /// One more than the greatest number of a channel that anything belongs to, by ward.
    next: BTreeMap<Ward, u32>,
    /// The end of the newest stretch that the index of persons names, by channel: so far its journal may have gone.
    listed: BTreeMap<(Ward, ChannelNo), Seq>,
    /// How far the journals went, as is kept of them; none: that cannot be read.
    heads: BTreeMap<(Ward, ChannelNo), Option<Seq>>,
    /// The number that a ward's next new channel gets, as is kept of it.
    kept_next: BTreeMap<Ward, u32>,
}

/// Where a snapshot stands, whatever else is in it.
#[derive(Deserialize)]
struct Stand {
    handled: Seq,
    made: Seq,
}

impl Salvaged {
    fn count(&mut self, ward: Ward, channel: ChannelNo) {
        let next = self.next.entry(ward).or_default();
        *next = (*next).max(channel.0.saturating_add(1));
    }

    /// An event of this number was there once.
    fn reach(&mut self, ward: Ward, channel: ChannelNo, seq: Seq) {
        // No journal comes so far: nothing would follow it.
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
        Kind::Meta => key::swept_in(key).or_else(|| key::unlisted_in(key)),
        Kind::ChannelName | Kind::Setting | Kind::Room | Kind::Session | Kind::Webhook | Kind::OptOut => None,
    }
}

/// The greatest number of an event of its channel that a record names, if it names any.
fn named(key: &Key, value: &[u8]) -> Option<Seq> {
    let before = |value| decode_number(key, value).ok().map(|seq| Seq(seq.0.saturating_sub(1)));
    match key.kind()? {
        Kind::Journal | Kind::DeadLetter => key.last_number().map(Seq),
        Kind::Head => decode_number(key, value).ok(),
        Kind::Tombstone => before(value),
        Kind::Meta if key::unlisted_in(key).is_some() => key.last_number().map(Seq),
        Kind::Meta => before(value),
        Kind::Snapshot => decode(key, value).ok().map(|Stand { handled, made }| handled.max(made)),
        Kind::Pending => decode(key, value).ok().map(|PendingRecord { heard }| heard),
        Kind::Outbox => decode(key, value).ok().map(|record: OutboxRecord| record.upto),
        Kind::MessageId => decode(key, value).ok(),
        Kind::Usage => {
            let UsageRecord { used: Used::Address { message, .. }, .. } = decode(key, value).ok()? else { return None };
            Some(message)
        }
        Kind::Person
        | Kind::ChannelName
        | Kind::ChannelOf
        | Kind::Summary
        | Kind::Setting
        | Kind::Room
        | Kind::Session
        | Kind::Webhook
        | Kind::OptOut => None,
    }
}

impl Reconstruct for Salvaged {
    fn note(&mut self, key: &Key, value: &[u8]) {
        let (&[ward, ..], Some(kind)) = (key.as_bytes(), key.kind()) else { return };
        let ward = Ward(ward);
        let own = owner(key);
        if let Some(channel) = own {
            self.count(ward, channel);
            if let Some(seq) = named(key, value) {
                self.reach(ward, channel, seq);
            }
        }
        match (kind, own) {
            (Kind::Person, Some(channel)) => {
                if let Some(seq) = key.last_number() {
                    let end = self.listed.entry((ward, channel)).or_default();
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
                if let (Some(channel_key), Ok(number)) = (key::named_in(key), decode(key, value).map(ChannelNo)) {
                    self.count(ward, number);
                    let ChannelKey { guild, channel } = channel_key;
                    self.channels.entry((ward, number)).or_insert(ChannelRecord { guild, channel });
                }
            }
            (Kind::Meta, _) if *key == key::next_channel(ward) => match decode(key, value) {
                Ok(next) => drop(self.kept_next.insert(ward, next)),
                // Whoever wrote it knows what it is.
                Err(RecordError::UnknownVersion { .. } | RecordError::UnknownVariant { .. }) => {
                    self.kept_next.insert(ward, u32::MAX);
                }
                Err(RecordError::Malformed { .. }) => {}
            },
            (
                Kind::Journal
                | Kind::Head
                | Kind::Snapshot
                | Kind::Pending
                | Kind::Outbox
                | Kind::MessageId
                | Kind::Person
                | Kind::ChannelOf
                | Kind::Summary
                | Kind::Setting
                | Kind::Usage
                | Kind::DeadLetter
                | Kind::Room
                | Kind::Tombstone
                | Kind::Session
                | Kind::Webhook
                | Kind::Meta
                | Kind::OptOut,
                _,
            ) => {}
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
        // A number that stands for a channel already must never be given again.
        let next = self.next.iter().filter(|(ward, next)| self.kept_next.get(ward).is_none_or(|kept| kept < next));
        let next = next.map(|(ward, next)| (key::next_channel(*ward), encode(next)));
        // Nor the number of an event: a snapshot that has seen it would take the new one for handled. Where nothing is kept of how far a
        // journal went, it may have gone to the end of a stretch in which somebody said something.
        let mut reached = self.last.clone();
        for (of, end) in self.listed.iter().filter(|(of, _)| !self.heads.contains_key(of)) {
            let last = reached.entry(*of).or_default();
            *last = (*last).max(*end);
        }
        let heads = reached.into_iter().filter(|(of, last)| self.heads.get(of).is_none_or(|head| *head < Some(*last)));
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
        let said = speaker(&event).zip(self.channels.get(&(ward, channel))).map(|(person, record)| {
            let key = key::person(&record.guild, &PersonId::from(&**person), channel, seq);
            (key, encode(&()))
        });
        said.into_iter().chain(id).collect()
    }

    /// Of two messages of one id the newer is meant; and nothing is meant by what cannot be read, unless it is of a newer format.
    fn should_replace(&self, key: &Key, value: &[u8], there: &[u8]) -> bool {
        let seq = |value| decode::<Seq>(key, value).ok();
        match inspection::read(key, there) {
            Ok(()) => key.is(Kind::MessageId) && seq(value) > seq(there),
            Err(RecordError::Malformed { .. }) => true,
            Err(RecordError::UnknownVersion { .. } | RecordError::UnknownVariant { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests;
