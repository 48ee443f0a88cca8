//! Tells whether what is stored reads as what it should be: each record with the reader that whoever needs it has.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::key;
use super::place::Place;
use super::record::{
    ChannelRecord, IgnoredRecord, OutboxRecord, PendingRecord, RecordError, RoomRecord, SetAsideRecord, SnapshotRecord,
    StartRecord, UsageRecord, decode, decode_bytes, decode_event,
};
use super::residence::Residence;
use crate::domain::id::{Seq, Ward};
use crate::domain::moment::Moment;
use crate::ports::store::keeper::{Fault, Inspect};
use crate::ports::store::key::{ChannelNo, Key, Kind};

/// Whoever knows how all that is stored reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inspection;

impl Inspect for Inspection {
    fn fault(&self, key: &Key, value: &[u8]) -> Option<Fault> {
        let Err(error) = read(key, value) else { return None };
        let (what, channel) = named(key);
        Some(Fault { what, channel, detail: error.detail() })
    }

    fn named(&self, key: &Key, value: &[u8]) -> Option<(ChannelNo, String)> {
        let channel = key::channel_in(key).filter(|_| key.is(Kind::ChannelOf))?;
        let ChannelRecord { guild, channel: id } = decode(key, value).ok()?;
        Some((channel, Place { guild, channel: id }.to_string()))
    }
}

/// Reads a record as whoever needs it does. What the store keeps for itself is read by the store.
pub(super) fn read(key: &Key, value: &[u8]) -> Result<(), RecordError> {
    let is = |kind| key.is(kind);
    if is(Kind::Journal) {
        decode_event(key, value).map(drop)
    } else if is(Kind::Snapshot) {
        as_record::<SnapshotRecord>(key, value)
    } else if is(Kind::Pending) {
        as_record::<PendingRecord>(key, value)
    } else if is(Kind::Outbox) {
        as_record::<OutboxRecord>(key, value)
    } else if is(Kind::MessageId) {
        as_record::<Seq>(key, value)
    } else if is(Kind::Person) {
        // All that it tells is in its key.
        as_record::<IgnoredAny>(key, value)
    } else if is(Kind::ChannelName) {
        as_record::<u32>(key, value)
    } else if is(Kind::ChannelOf) {
        as_record::<ChannelRecord>(key, value)
    } else if is(Kind::Setting) {
        as_record::<Residence>(key, value)
    } else if is(Kind::Usage) {
        as_record::<UsageRecord>(key, value)
    } else if is(Kind::SetAside) {
        as_record::<SetAsideRecord>(key, value)
    } else if is(Kind::Room) {
        as_record::<RoomRecord>(key, value)
    } else if is(Kind::Ignored) {
        as_record::<IgnoredRecord>(key, value)
    } else if is(Kind::Session) {
        decode_bytes(key, value).map(drop)
    } else if is(Kind::Meta) {
        fact(key, value)
    } else {
        Ok(())
    }
}

/// A fact about a ward, or about the whole store.
fn fact(key: &Key, value: &[u8]) -> Result<(), RecordError> {
    let [ward, ..] = *key.as_bytes() else { return Ok(()) };
    let of = |name: &str| Key::new(Ward(ward), Kind::Meta).text(name);
    let begins = |with: &Key| key.as_bytes().starts_with(with.as_bytes());
    if *key == key::next_channel(Ward(ward)) {
        as_record::<u32>(key, value)
    } else if begins(&of("start")) {
        as_record::<StartRecord>(key, value)
    } else if begins(&of("usage kept from")) {
        as_record::<Moment>(key, value)
    } else if begins(&key::unlistings(Ward(ward))) {
        as_record::<IgnoredAny>(key, value)
    } else if begins(&key::sweeps(Ward(ward))) {
        super::record::decode_number(key, value).map(drop)
    } else {
        Ok(())
    }
}

fn as_record<T: DeserializeOwned>(key: &Key, value: &[u8]) -> Result<(), RecordError> {
    decode::<T>(key, value).map(drop)
}

/// What a record is, in words, and the channel that it belongs to, if it is one's. Nobody who said something is named.
pub(super) fn named(key: &Key) -> (String, Option<ChannelNo>) {
    let is = |kind| key.is(kind);
    let number = key.last_number().unwrap_or_default();
    let of_channel = |what: String| (what, key::channel_in(key));
    let place = || key::named_in(key).map_or_else(|| "a channel".to_owned(), |place| place.to_string());
    if is(Kind::Journal) {
        of_channel(format!("event {number}"))
    } else if is(Kind::Snapshot) {
        of_channel("the snapshot".to_owned())
    } else if is(Kind::Pending) {
        of_channel("the mark that something is to be done".to_owned())
    } else if is(Kind::Outbox) {
        of_channel(format!("the owed reply {number}"))
    } else if is(Kind::MessageId) {
        of_channel("an entry of the index of messages".to_owned())
    } else if is(Kind::ChannelOf) {
        of_channel("the name".to_owned())
    } else if is(Kind::SetAside) {
        of_channel(format!("why event {number} was set aside"))
    } else if is(Kind::Head) {
        of_channel("the number of the last event".to_owned())
    } else if is(Kind::Tombstone) {
        of_channel("the number of the first event that was not deleted".to_owned())
    } else if let Some(channel) = key::swept_in(key) {
        ("the mark of what is being deleted".to_owned(), Some(channel))
    } else if is(Kind::Ignored) {
        let guild = key::ignored_in(key).map_or_else(|| "a guild".to_owned(), |(guild, _)| format!("guild {guild}"));
        (format!("that somebody of {guild} is not to be heard"), None)
    } else if let Some(ward) = key::numbered_next(key) {
        (format!("the number that the next channel of ward {} gets", ward.0), None)
    } else if is(Kind::Room) {
        let room = key::room_in(key).map_or_else(|| "a room".to_owned(), |room| format!("room {room}"));
        (format!("the entry of {room} in the directory of rooms"), None)
    } else if is(Kind::Person) {
        ("an entry of the index of persons".to_owned(), key::channel_before_number(key))
    } else if is(Kind::ChannelName) {
        (format!("the number of {}", place()), None)
    } else if is(Kind::Setting) {
        (format!("who lives in {}", place()), None)
    } else if is(Kind::Usage) {
        let guild = key::guild_of_usage(key).map_or_else(|| "a guild".to_owned(), |guild| format!("guild {guild}"));
        (format!("something that {guild} used"), None)
    } else {
        (format!("the record {key}"), None)
    }
}

#[cfg(test)]
mod tests;
