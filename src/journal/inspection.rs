//! Checks whether stored records can be decoded, each with the decoder that its reader uses.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::channel_key::ChannelKey;
use super::membership::Membership;
use super::record::{
    BriefRecord, ChannelRecord, ClockRecord, CompanionRecord, DeadLetterRecord, FileRecord, NoteSwitchRecord, OptOutRecord,
    OutboxRecord, PendingRecord, RecordError, RoomRecord, SnapshotRecord, StartRecord, UsageRecord, decode, decode_bytes,
    decode_event,
};
use super::{erased, key};
use crate::domain::guests::Invitation;
use crate::domain::id::{Seq, Ward};
use crate::domain::moment::Moment;
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::maintenance::{Fault, Inspect};

/// Checks records of every kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inspection;

impl Inspect for Inspection {
    fn fault(&self, key: &Key, value: &[u8]) -> Option<Fault> {
        let Err(error) = read(key, value) else { return None };
        let (what, channel) = named(key);
        Some(Fault { what, channel, detail: error.detail() })
    }

    fn named(&self, key: &Key, value: &[u8]) -> Option<(ChannelNo, String)> {
        match key.kind()? {
            Kind::ChannelOf => {
                let ChannelRecord { guild, channel } = decode(key, value).ok()?;
                Some((key::channel_in(key)?, ChannelKey { guild, channel }.to_string()))
            }
            Kind::ChannelName => Some((ChannelNo(decode(key, value).ok()?), key::channel_key_in(key)?.to_string())),
            _ => None,
        }
    }
}

/// Decodes a record as its reader does. Records of the store itself are checked by the store.
pub(super) fn read(key: &Key, value: &[u8]) -> Result<(), RecordError> {
    match key.kind() {
        Some(Kind::Journal) => decode_event(key, value).map(drop),
        Some(Kind::Snapshot) => as_record::<SnapshotRecord>(key, value),
        Some(Kind::Pending) => as_record::<PendingRecord>(key, value),
        Some(Kind::Outbox) => as_record::<OutboxRecord>(key, value),
        Some(Kind::MessageId) => as_record::<Seq>(key, value),
        // All information is in its key.
        Some(Kind::Person | Kind::Note) => as_record::<IgnoredAny>(key, value),
        Some(Kind::ChannelName) => as_record::<u32>(key, value),
        Some(Kind::ChannelOf) => as_record::<ChannelRecord>(key, value),
        Some(Kind::Setting) => as_record::<Membership>(key, value),
        Some(Kind::Usage) => as_record::<UsageRecord>(key, value),
        Some(Kind::DeadLetter) => as_record::<DeadLetterRecord>(key, value),
        Some(Kind::Room) => as_record::<RoomRecord>(key, value),
        Some(Kind::OptOut) => as_record::<OptOutRecord>(key, value),
        Some(Kind::Brief) => as_record::<BriefRecord>(key, value),
        Some(Kind::Companion) => as_record::<CompanionRecord>(key, value),
        Some(Kind::Invitation) => as_record::<Invitation>(key, value),
        Some(Kind::Told) => as_record::<Moment>(key, value),
        Some(Kind::NoteSwitch) => as_record::<NoteSwitchRecord>(key, value),
        Some(Kind::File) => as_record::<FileRecord>(key, value),
        Some(Kind::Session | Kind::Picture | Kind::Card | Kind::FilePart) => decode_bytes(key, value).map(drop),
        Some(Kind::Meta) => metadata(key, value),
        Some(Kind::Head | Kind::Tombstone | Kind::Summary | Kind::Webhook) | None => Ok(()),
    }
}

/// Decodes a record about a ward, or about the whole store.
fn metadata(key: &Key, value: &[u8]) -> Result<(), RecordError> {
    let [ward, ..] = *key.as_bytes() else { return Ok(()) };
    let prefix = |name: &str| Key::new(Ward(ward), Kind::Meta).text(name);
    let has_prefix = |prefix: &Key| key.as_bytes().starts_with(prefix.as_bytes());
    if *key == key::next_channel(Ward(ward)) {
        as_record::<u32>(key, value)
    } else if has_prefix(&prefix("start")) {
        as_record::<StartRecord>(key, value)
    } else if *key == key::clock() {
        as_record::<ClockRecord>(key, value)
    } else if has_prefix(&prefix("usage kept from")) || erased::is_time(key) {
        as_record::<Moment>(key, value)
    } else if has_prefix(&key::index_removals(Ward(ward))) {
        as_record::<IgnoredAny>(key, value)
    } else if has_prefix(&key::sweeps(Ward(ward))) {
        super::record::decode_number(key, value).map(drop)
    } else {
        Ok(())
    }
}

fn as_record<T: DeserializeOwned>(key: &Key, value: &[u8]) -> Result<(), RecordError> {
    decode::<T>(key, value).map(drop)
}

/// A description of a record, and the channel that it belongs to, if any. It names no person.
pub(super) fn named(key: &Key) -> (String, Option<ChannelNo>) {
    let number = key.last_number().unwrap_or_default();
    let with_channel = |what: &str| (what.to_owned(), key::channel_in(key));
    let without_channel = |what: String| (what, None);
    let channel_key = || key::channel_key_in(key).map_or_else(|| "a channel".to_owned(), |channel_key| channel_key.to_string());
    match key.kind() {
        Some(Kind::Journal) => with_channel(&format!("event {number}")),
        Some(Kind::Snapshot) => with_channel("the snapshot"),
        Some(Kind::Pending) => with_channel("the marker of unfinished work"),
        Some(Kind::Outbox) => with_channel(&format!("the owed reply {number}")),
        Some(Kind::MessageId) => with_channel("an entry of the index of messages"),
        Some(Kind::Note) => with_channel("an entry of the index of notes"),
        Some(Kind::File | Kind::FilePart) => {
            let message = key::message_of_file(key).unwrap_or_default();
            with_channel(&format!("a file of message {message}"))
        }
        Some(Kind::ChannelOf) => with_channel("the name"),
        Some(Kind::DeadLetter) => with_channel(&format!("the dead letter of event {number}")),
        Some(Kind::Head) => with_channel("the number of the last event"),
        Some(Kind::Tombstone) => with_channel("the number of the first event that was not deleted"),
        Some(Kind::Person) => ("an entry of the index of persons".to_owned(), key::channel_before_number(key)),
        Some(Kind::ChannelName) => without_channel(format!("the number of {}", channel_key())),
        Some(Kind::Setting) => without_channel(format!("the members of {}", channel_key())),
        Some(Kind::OptOut) => {
            let guild = key::opt_out_in(key).map_or_else(|| "a guild".to_owned(), |(guild, _)| format!("guild {guild}"));
            without_channel(format!("an opt-out in {guild}"))
        }
        Some(Kind::Room) => {
            let room = key::room_in(key).map_or_else(|| "a room".to_owned(), |room| format!("room {room}"));
            without_channel(format!("the entry of {room} in the directory of rooms"))
        }
        Some(Kind::Usage) => {
            let guild = key::guild_of_usage(key).map_or_else(|| "a guild".to_owned(), |guild| format!("guild {guild}"));
            without_channel(format!("something that {guild} used"))
        }
        Some(Kind::Brief) => without_channel("the brief of a persona".to_owned()),
        Some(Kind::Companion) => without_channel(of_companion("the companion", key)),
        Some(Kind::Picture) => without_channel(of_companion("the picture of", key)),
        Some(Kind::Card) => without_channel(of_companion("the character card of", key)),
        Some(Kind::Invitation) => without_channel("an invitation".to_owned()),
        Some(Kind::Told) => without_channel("when a person was told that companions are AI".to_owned()),
        Some(Kind::NoteSwitch) => without_channel("whether notes are taken".to_owned()),
        Some(Kind::Meta) => match (key::sweep_in(key), key::next_channel_in(key)) {
            (Some(channel), _) => ("the marker of a deletion in progress".to_owned(), Some(channel)),
            (None, Some(ward)) => without_channel(format!("the number that the next channel of ward {} gets", ward.0)),
            (None, None) => without_channel(format!("the record {key}")),
        },
        Some(Kind::Summary | Kind::Session | Kind::Webhook) | None => without_channel(format!("the record {key}")),
    }
}

fn of_companion(what: &str, key: &Key) -> String {
    key::companion_in(key).map_or_else(|| format!("{what} a companion"), |id| format!("{what} {id}"))
}

#[cfg(test)]
mod tests;
