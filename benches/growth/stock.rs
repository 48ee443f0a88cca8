//! The history that is stored before a measurement.

use std::collections::{BTreeMap, BTreeSet};

use tertulia::domain::event::{Event, Recorded};
use tertulia::domain::id::{CompanionId, PersonId, Seq, Ward};
use tertulia::domain::message::Address;
use tertulia::domain::moment::Moment;
use tertulia::journal::channel_key::ChannelKey;
use tertulia::journal::key;
use tertulia::journal::membership::{self, Membership};
use tertulia::journal::record::{ChannelRecord, PendingRecord, RoomRecord, encode, encode_event, encode_snapshot};
use tertulia::ports::backend::room::RoomId;
use tertulia::ports::store::key::ChannelNo;
use tertulia::ports::store::{Append, Batch, Store, Term, Value, Write};

use super::room::{Room, message};

/// Batches that are committed together.
const AT_A_TIME: usize = 64;
/// Messages until the first interjection check.
const INTERVAL: u64 = 9;

/// Sleeping channels that all have the same history.
#[derive(Clone, Copy, Debug)]
pub struct Stock {
    pub channels: usize,
    pub guilds: usize,
    pub companions: usize,
    /// Messages of each channel.
    pub messages: usize,
}

impl Stock {
    /// The ids of its companions.
    pub fn cast(&self) -> Vec<String> {
        (0..self.companions).map(|number| format!("name{number}")).collect()
    }

    /// The id of a channel's room.
    pub fn room(&self, number: usize) -> RoomId {
        RoomId::parse(&format!("room-{number}")).expect("a room's name")
    }

    /// A channel's key.
    pub fn channel_key(&self, number: usize) -> ChannelKey {
        ChannelKey::new(&format!("guild-{}", number % self.guilds).as_str().into(), &self.room(number).channel())
    }

    /// The keys of all channels, and their numbers in their wards.
    fn channel_keys(&self) -> impl Iterator<Item = (ChannelKey, ChannelNo)> + '_ {
        let mut next: BTreeMap<Ward, u32> = BTreeMap::new();
        (0..self.channels).map(move |number| {
            let channel_key = self.channel_key(number);
            let next = next.entry(channel_key.ward()).or_default();
            *next += 1;
            (channel_key, ChannelNo(*next - 1))
        })
    }

    /// Stores all histories, so that they end now.
    pub async fn put(&self, store: &dyn Store, now: Moment) -> anyhow::Result<()> {
        let life = self.life(now);
        let mut terms = Terms { store, held: BTreeMap::new() };
        let mut group = Vec::new();
        let mut counts: BTreeMap<Ward, u32> = BTreeMap::new();
        for (channel_key, no) in self.channel_keys() {
            counts.insert(channel_key.ward(), no.0 + 1);
            group.extend(self.lived(&channel_key, no, &life, &mut terms).await?);
            if group.len() >= AT_A_TIME {
                commit(store, std::mem::take(&mut group)).await?;
            }
        }
        for (ward, count) in counts {
            let writes = vec![Write::Put(key::next_channel(ward), encode(&count))];
            group.push(Batch { ward, term: terms.of(ward).await?, append: None, fresh: Vec::new(), writes });
        }
        commit(store, group).await
    }

    /// Stores an unhandled message that addresses a companion, in each of the first `channels` channels.
    pub async fn call(&self, store: &dyn Store, channels: usize, now: Moment) -> anyhow::Result<()> {
        let mut terms = Terms { store, held: BTreeMap::new() };
        let mut called = message("Name0, what do you think of it?");
        called.address = Address { companions: vec!["name0".into()], ..Address::default() };
        let event = Event::Said { message: called, reply_to: None, reply: None, said_at: None };
        let mut group = Vec::new();
        for (channel_key, no) in self.channel_keys().take(channels) {
            let ward = channel_key.ward();
            let last = tertulia::journal::reader::Reader::new(store).head(&channel_key).await?.last;
            let recorded = Recorded { seq: last.next(), at: now, handled: last.next(), turn: None, event: event.clone() };
            let append = Some(Append { channel: no, after: last, records: vec![encode_event(&recorded)] });
            let writes = vec![
                Write::Put(key::person(&channel_key.guild, &PersonId::from("Ana"), no, recorded.seq), encode(&())),
                Write::Put(key::pending(ward, no), encode(&PendingRecord { heard: recorded.seq, due: None })),
            ];
            group.push(Batch { ward, term: terms.of(ward).await?, append, fresh: Vec::new(), writes });
        }
        commit(store, group).await
    }

    /// The history of one channel.
    fn life(&self, now: Moment) -> Life {
        let span = std::time::Duration::from_secs(self.messages as u64);
        let mut room = Room::on_record(
            self.companions,
            INTERVAL,
            Moment::from_micros(now.as_micros().saturating_sub(span.as_micros() as u64)),
        );
        for number in 0..self.messages {
            let called = (number % 10 == 9).then(|| room.companion(number / 10));
            room.handle_message(called.as_ref());
        }
        let record = room.record.as_deref().unwrap_or_default();
        let newest = record.last().map_or(Seq::NONE, |recorded| recorded.seq);
        let said = record.iter().filter(|recorded| matches!(recorded.event, Event::Said { .. })).map(|recorded| recorded.seq);
        Life {
            said: said.collect(),
            records: record.iter().map(encode_event).collect(),
            snapshot: encode_snapshot(newest, &room.conversation),
            companions: self.cast().iter().map(|id| CompanionId::from(id.as_str())).collect(),
            now,
        }
    }

    async fn lived(
        &self,
        channel_key: &ChannelKey,
        no: ChannelNo,
        life: &Life,
        terms: &mut Terms<'_>,
    ) -> anyhow::Result<[Batch; 2]> {
        let (ward, ana) = (channel_key.ward(), PersonId::from("Ana"));
        let record = ChannelRecord { guild: channel_key.guild.clone(), channel: channel_key.channel.clone() };
        let membership =
            Membership { companions: life.companions.clone(), ..Membership::empty(channel_key.guild.clone(), life.now) };
        let room = RoomRecord { room: channel_key.channel.clone(), guild: channel_key.guild.clone(), created_at: life.now };
        let mut writes = vec![
            Write::Put(key::channel_name(channel_key), encode(&no.0)),
            Write::Put(key::channel_of(ward, no), encode(&record)),
            Write::Put(key::snapshot(ward, no), life.snapshot.clone()),
            Write::Put(membership::key(channel_key), encode(&membership)),
        ];
        writes.extend(life.said.iter().map(|seq| Write::Put(key::person(&channel_key.guild, &ana, no, *seq), encode(&()))));
        let append = Some(Append { channel: no, after: Seq::NONE, records: life.records.clone() });
        let whole = Batch { ward, term: terms.of(ward).await?, append, fresh: Vec::new(), writes };
        let writes = vec![Write::Put(key::room(&channel_key.channel), encode(&room))];
        Ok([whole, Batch { ward: Ward(0), term: terms.of(Ward(0)).await?, append: None, fresh: Vec::new(), writes }])
    }
}

/// The history of a channel.
struct Life {
    records: Vec<Value>,
    snapshot: Value,
    said: Vec<Seq>,
    companions: BTreeSet<CompanionId>,
    now: Moment,
}

/// The terms of the wards.
struct Terms<'a> {
    store: &'a dyn Store,
    held: BTreeMap<Ward, Term>,
}

impl Terms<'_> {
    async fn of(&mut self, ward: Ward) -> anyhow::Result<Term> {
        if let Some(term) = self.held.get(&ward) {
            return Ok(*term);
        }
        let term = self.store.acquire_ward(ward).await?;
        self.held.insert(ward, term);
        Ok(term)
    }
}

async fn commit(store: &dyn Store, group: Vec<Batch>) -> anyhow::Result<()> {
    for outcome in store.commit(group).await? {
        outcome?;
    }
    Ok(())
}
