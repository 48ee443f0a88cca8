//! What the records that are left of a damaged store tell of those that are lost: names and numbers of channels, how far their journals
//! went, who said what, and under which id.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::inspection;
use super::key;
use super::place::Place;
use super::record::{
    ChannelRecord, OutboxRecord, PendingRecord, RecordError, UsageRecord, Used, decode, decode_event, decode_number, encode,
    encode_number,
};
use super::speakers::{after_stretch, speaker};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq, Ward};
use crate::ports::store::Value;
use crate::ports::store::keeper::Complete;
use crate::ports::store::key::{ChannelNo, Key, Kind};

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
fn owner(kind: u8, key: &Key) -> Option<ChannelNo> {
    let begins = [
        Kind::Journal,
        Kind::Head,
        Kind::Snapshot,
        Kind::Pending,
        Kind::Outbox,
        Kind::MessageId,
        Kind::ChannelOf,
        Kind::Summary,
        Kind::SetAside,
        Kind::Tombstone,
    ];
    let ends = [Kind::Person, Kind::Usage];
    if begins.iter().any(|known| *known as u8 == kind) {
        key::channel_in(key)
    } else if ends.iter().any(|known| *known as u8 == kind) {
        key::channel_before_number(key)
    } else if kind == Kind::Meta as u8 {
        key::swept_in(key).or_else(|| key::unlisted_in(key))
    } else {
        None
    }
}

/// The greatest number of an event of its channel that a record names, if it names any.
fn named(kind: u8, key: &Key, value: &[u8]) -> Option<Seq> {
    let is = |known: Kind| kind == known as u8;
    let before = |seq: Seq| Seq(seq.0.saturating_sub(1));
    if is(Kind::Journal) || is(Kind::SetAside) || key::unlisted_in(key).is_some() {
        key.last_number().map(Seq)
    } else if is(Kind::Head) {
        decode_number(key, value).ok()
    } else if is(Kind::Tombstone) || is(Kind::Meta) {
        decode_number(key, value).ok().map(before)
    } else if is(Kind::Snapshot) {
        decode(key, value).ok().map(|Stand { handled, made }| handled.max(made))
    } else if is(Kind::Pending) {
        decode(key, value).ok().map(|PendingRecord { heard }| heard)
    } else if is(Kind::Outbox) {
        decode(key, value).ok().map(|record: OutboxRecord| record.upto)
    } else if is(Kind::MessageId) {
        decode(key, value).ok()
    } else if is(Kind::Usage) {
        match decode(key, value).ok()? {
            UsageRecord { used: Used::Address { message, .. }, .. } => Some(message),
            _ => None,
        }
    } else {
        None
    }
}

impl Complete for Salvaged {
    fn note(&mut self, key: &Key, value: &[u8]) {
        let [ward, kind, ..] = *key.as_bytes() else { return };
        let ward = Ward(ward);
        let own = owner(kind, key);
        if let Some(channel) = own {
            self.count(ward, channel);
            if let Some(seq) = named(kind, key, value) {
                self.reach(ward, channel, seq);
            }
        }
        if kind == Kind::Person as u8
            && let (Some(channel), Some(seq)) = (own, key.last_number())
        {
            let end = self.listed.entry((ward, channel)).or_default();
            *end = (*end).max(Seq(after_stretch(Seq(seq)).0 - 1));
        } else if kind == Kind::Head as u8
            && let Some(channel) = own
        {
            self.heads.insert((ward, channel), decode_number(key, value).ok());
        } else if *key == key::next_channel(ward) {
            match decode(key, value) {
                Ok(next) => drop(self.kept_next.insert(ward, next)),
                // Whoever wrote it knows what it is.
                Err(RecordError::UnknownVersion { .. } | RecordError::UnknownWord { .. }) => {
                    self.kept_next.insert(ward, u32::MAX);
                }
                Err(RecordError::Malformed { .. }) => {}
            }
        } else if kind == Kind::ChannelOf as u8
            && let (Some(channel), Ok(record)) = (own, decode(key, value))
        {
            self.channels.insert((ward, channel), record);
        } else if kind == Kind::ChannelName as u8
            && let (Some(place), Ok(number)) = (key::named_in(key), decode(key, value).map(ChannelNo))
        {
            self.count(ward, number);
            let Place { guild, channel } = place;
            self.channels.entry((ward, number)).or_insert(ChannelRecord { guild, channel });
        }
    }

    fn lacking(&self) -> Vec<(Key, Value)> {
        let names = self.channels.iter().flat_map(|((ward, number), record)| {
            let place = Place::new(&record.guild, &record.channel);
            [(key::channel_of(*ward, *number), encode(record)), (key::channel_name(&place), encode(&number.0))]
        });
        names.collect()
    }

    fn behind(&self) -> Vec<(Key, Value)> {
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

    fn follows(&self, key: &Key, value: &[u8]) -> Vec<(Key, Value)> {
        let [ward, kind, ..] = *key.as_bytes() else { return Vec::new() };
        let ward = Ward(ward);
        let Some(channel) = key::channel_in(key).filter(|_| kind == Kind::Journal as u8) else { return Vec::new() };
        let Ok(Recorded { seq, event, .. }) = decode_event(key, value) else { return Vec::new() };
        let id = match &event {
            Event::Said { message, .. } => message.id.as_ref().map(|id| (key::message_id(ward, channel, id), encode(&seq))),
            _ => None,
        };
        let said = speaker(&event).zip(self.channels.get(&(ward, channel))).map(|(person, record)| {
            let key = key::person(&record.guild, &PersonId::from(&**person), channel, seq);
            (key, encode(&()))
        });
        said.into_iter().chain(id).collect()
    }

    /// Of two messages of one id the newer is meant; and nothing is meant by what cannot be read, unless it is of a newer format.
    fn replaces(&self, key: &Key, value: &[u8], there: &[u8]) -> bool {
        let seq = |value| decode::<Seq>(key, value).ok();
        match inspection::read(key, there) {
            Ok(()) => key.is(Kind::MessageId) && seq(value) > seq(there),
            Err(RecordError::Malformed { .. }) => true,
            Err(RecordError::UnknownVersion { .. } | RecordError::UnknownWord { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests;
