//! Finds the channels with unfinished work, and sleeping channels in which a companion may start a conversation, even if some of
//! their records cannot be read.

use std::collections::{BTreeMap, BTreeSet};

use super::{ReadError, Reader};
use crate::channel_key::ChannelKey;
use crate::domain::id::{ChannelId, GuildId, Ward};
use crate::domain::moment::Moment;
use crate::key;
use crate::ports::store::StoreError;
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::record::{ChannelRecord, PendingRecord, decode};

/// The channels of a ward with unfinished work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The channels whose names are known.
    pub channels: Vec<ChannelRecord>,
    /// Other channels in which a companion may start a conversation, with the time.
    pub due: Vec<(ChannelRecord, Moment)>,
    /// The channels whose names can no longer be read.
    pub nameless: Vec<ChannelNo>,
}

impl Reader<'_> {
    /// Finds the channels of a ward with unfinished work: unsettled messages, armed timers, owed replies, or a cancelled reply
    /// whose posting has an unknown outcome. Also finds those in which a companion may start a conversation. A channel whose
    /// outbox cannot be read is included: starting it reports the error.
    ///
    /// # Errors
    /// Returns the errors of the store. Damaged records are no error here.
    pub async fn pending(&self, ward: Ward) -> Result<Pending, StoreError> {
        let mut pending = Pending::default();
        let mut known = BTreeSet::new();
        for (key, value) in readable(self.all(Key::new(ward, Kind::Pending)).await)?.unwrap_or_default() {
            let Some(no) = key::channel_in(&key) else { continue };
            // The existence of a damaged record means that there is unfinished work.
            let due = decode(&key, &value).ok().and_then(|PendingRecord { due, .. }| due);
            match (readable(self.channel_of(ward, no).await)?.flatten(), due) {
                (Some(channel), Some(due)) => {
                    pending.due.push((channel, due));
                    continue;
                }
                (Some(channel), None) => pending.channels.push(channel),
                (None, _) => pending.nameless.push(no),
            }
            known.insert(no);
        }
        for no in self.channels_with(ward, Kind::Outbox).await?.into_keys().filter(|no| !known.contains(no)) {
            // The records of a deleted channel are about to be swept.
            let Some(Some(channel)) = readable(self.channel_of(ward, no).await)? else { continue };
            let owed = readable(self.outbox(&ChannelKey::new(&channel.guild, &channel.channel)).await)?;
            if owed.is_none_or(|owed| !owed.is_empty()) {
                pending.channels.push(channel);
            }
        }
        Ok(pending)
    }

    /// The channels of a guild that owe statements, with the number of statements. Unreadable records are skipped.
    ///
    /// # Errors
    /// Returns the errors of the store. Damaged records are no error here.
    pub async fn owing(&self, guild: &GuildId) -> Result<Vec<(ChannelId, u32)>, StoreError> {
        let ward = Ward::of(guild);
        let mut owing = Vec::new();
        for (no, statements) in self.channels_with(ward, Kind::Outbox).await? {
            let channel = readable(self.channel_of(ward, no).await)?.flatten();
            owing.extend(channel.filter(|channel| channel.guild == *guild).map(|channel| (channel.channel, statements)));
        }
        Ok(owing)
    }

    /// The channels of a ward that have records of this kind, with the number of records.
    async fn channels_with(&self, ward: Ward, kind: Kind) -> Result<BTreeMap<ChannelNo, u32>, StoreError> {
        let stored = readable(self.all(Key::new(ward, kind)).await)?.unwrap_or_default();
        let mut records = BTreeMap::new();
        for no in stored.iter().filter_map(|(key, _)| key::channel_in(key)) {
            *records.entry(no).or_default() += 1;
        }
        Ok(records)
    }
}

/// The result of a read. `None`: stored data cannot be decoded.
fn readable<T>(read: Result<T, ReadError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(ReadError::Store(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{ChannelId, GuildId, Seq, Ticket};
    use crate::record::{OutboxRecord, encode};
    use crate::samples::store::TestStore;

    const WARD: Ward = Ward(77);
    const BROKEN: &[u8] = b"\x01not what it was";

    #[tokio::test]
    async fn a_channel_is_pending_even_if_its_pending_record_is_damaged() {
        let store = TestStore::new();
        let channel_key = named(&store, 1, "console:lobby");
        named(&store, 2, "console:den");
        let ward = channel_key.ward();
        store.put(key::pending(ward, ChannelNo(1)), BROKEN.to_vec());
        store.put(key::pending(ward, ChannelNo(2)), encode(&PendingRecord { heard: Seq(1), due: None }));

        let pending = Reader::new(&store).pending(ward).await.unwrap();

        assert_eq!(names(&pending), ["console:lobby", "console:den"]);
        assert!(pending.nameless.is_empty());
    }

    #[tokio::test]
    async fn channels_without_a_readable_name_are_reported_and_the_others_are_found() {
        let store = TestStore::new();
        let ward = named(&store, 4, "console:lobby").ward();
        let lost = named(&store, 3, "console:den");
        for no in 1..=4 {
            store.put(key::pending(ward, ChannelNo(no)), encode(&PendingRecord { heard: Seq(1), due: None }));
        }
        store.put(key::channel_of(ward, ChannelNo(2)), BROKEN.to_vec());
        store.remove(&key::channel_name(&lost));

        let pending = Reader::new(&store).pending(ward).await.unwrap();

        assert_eq!((names(&pending), &pending.nameless[..]), (vec!["console:lobby"], &[1, 2, 3].map(ChannelNo)[..]));
    }

    #[tokio::test]
    async fn a_quiet_channel_with_an_unreadable_outbox_is_pending() {
        let store = TestStore::new();
        let channel_key = named(&store, 1, "console:lobby");
        named(&store, 2, "console:den");
        let ward = channel_key.ward();
        let owed = OutboxRecord::new("aria".into(), crate::domain::trigger::Trigger::Lull, Vec::new(), Seq(1));
        store.put(key::outbox(ward, ChannelNo(1), Ticket(1)), BROKEN.to_vec());
        store.put(key::outbox(ward, ChannelNo(2), Ticket(1)), encode(&owed));

        let pending = Reader::new(&store).pending(ward).await.unwrap();

        assert_eq!(names(&pending), ["console:lobby", "console:den"]);
    }

    #[tokio::test]
    async fn a_channel_that_only_waits_for_a_silence_has_no_unfinished_work() {
        let store = TestStore::new();
        let ward = named(&store, 1, "console:lobby").ward();
        named(&store, 2, "console:den");
        let due = Some(Moment::from_micros(7));
        store.put(key::pending(ward, ChannelNo(1)), encode(&PendingRecord { heard: Seq(1), due }));
        store.put(key::pending(ward, ChannelNo(2)), encode(&PendingRecord { heard: Seq(1), due: None }));

        let pending = Reader::new(&store).pending(ward).await.unwrap();

        let due: Vec<_> = pending.due.iter().map(|(record, due)| (record.channel.as_str(), due.as_micros())).collect();
        assert_eq!((names(&pending), due), (vec!["console:den"], vec![("console:lobby", 7)]));
    }

    #[tokio::test]
    async fn a_store_that_fails_is_an_error() {
        let store = TestStore::new();
        store.cannot_read([WARD]);

        let error = Reader::new(&store).pending(WARD).await.unwrap_err();

        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    }

    fn named(store: &TestStore, no: u32, channel: &str) -> ChannelKey {
        let record = ChannelRecord { guild: GuildId::from("home"), channel: ChannelId::from(channel) };
        let channel_key = ChannelKey::new(&record.guild, &record.channel);
        store.put(key::channel_of(channel_key.ward(), ChannelNo(no)), encode(&record));
        store.put(key::channel_name(&channel_key), encode(&no));
        channel_key
    }

    fn names(pending: &Pending) -> Vec<&str> {
        pending.channels.iter().map(|record| record.channel.as_str()).collect()
    }
}
