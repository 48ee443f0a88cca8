//! Removes the remains of a deleted channel, or expired events, a bounded page at a time, while the writer continues with other requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ractor::ActorRef;
use tokio::time::Instant;

use super::index_removal::{IndexRemoval, remove_from_index};
use super::requests::ask;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Request, WriteError, WriteMeta, WriterMessage};
use crate::domain::id::{PersonId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{OutboxRecord, decode, decode_event};
use crate::journal::speakers::{self, stretch};
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::{Store, Value, Write};

/// How many keys are read and removed at once.
const PAGE: usize = 512;

/// How fast a sweep runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Page after page.
    AtOnce,
    /// After each page the sweep pauses for as long as the page took, so that other callers can use the store.
    Patient,
}

/// The removal of all records of a channel's journal below a number.
pub struct Sweep {
    pub store: Arc<dyn Store>,
    pub writer: ActorRef<WriterMessage>,
    pub channel_key: ChannelKey,
    /// The channel's number in the store's keys.
    pub no: ChannelNo,
    /// The first number that stays.
    pub below: Seq,
    pub pace: Pace,
}

impl Sweep {
    /// Sweeps, and answers when everything is removed. A failed sweep is repeated when the channel is next used.
    pub(super) async fn run(self, reply: Reply<()>) {
        match self.remove_all().await {
            Ok(_) => {
                let Self { writer, channel_key, below, .. } = self;
                // If the writer has stopped, the reply is dropped, and the caller gets an error.
                let _ = writer.cast(WriterMessage::Request(Request::Swept { channel_key, below, reply }));
            }
            Err(lost) => reply.send(Err(lost)),
        }
    }

    /// Removes all records below the number. Returns the number of removed events.
    ///
    /// # Errors
    /// Returns an error if records may remain.
    pub async fn remove_all(&self) -> Result<u64, WriteError> {
        let (ward, no, below) = (self.channel_key.ward(), self.no, self.below);
        let is_older = |seq: Seq| seq < below;
        // Unreadable records are removed, too: they are of no use.
        let ids = Key::new(ward, Kind::MessageId).channel(no);
        self.remove(ids.clone(), ids.end(), |key, value| key_if(decode(key, value).map_or(true, is_older), key)).await?;
        let owed = Key::new(ward, Kind::Outbox).channel(no);
        let upto = |record: OutboxRecord| is_older(record.upto);
        self.remove(owed.clone(), owed.end(), |key, value| key_if(decode(key, value).map_or(true, upto), key)).await?;
        let (first, end) = (key::dead_letter(ward, no, Seq::NONE), key::dead_letter(ward, no, below));
        self.remove(first, end, |key, _| vec![key.clone()]).await?;
        let (first, end) = (key::noted(ward, no, Seq::NONE), key::noted(ward, no, below));
        self.remove(first, end, |key, _| vec![key.clone()]).await?;
        let (first, end) = (key::files_from(ward, no, Seq::NONE), key::files_from(ward, no, below));
        self.remove(first, end, |key, _| vec![key.clone()]).await?;
        let (first, end) = (key::file_parts_from(ward, no, Seq::NONE), key::file_parts_from(ward, no, below));
        self.remove(first, end, |key, _| vec![key.clone()]).await?;
        // The events go last. While an event is left, it shows that the sweep is not finished.
        self.remove_events().await
    }

    /// Removes the events, stretch by stretch. Before each stretch, removes its speakers from the index of persons unless they
    /// have later messages there.
    async fn remove_events(&self) -> Result<u64, WriteError> {
        let (ward, no) = (self.channel_key.ward(), self.no);
        let mut removed = 0;
        loop {
            let began = Instant::now();
            let (first, end) = (Key::event(ward, no, Seq::NONE), Key::event(ward, no, self.below));
            let page = self.store.scan(first, end, false, PAGE).await;
            let mut page = page.map_err(|error| ReadError::from(error).of(&self.channel_key))?;
            let Some(last) = page.last().and_then(|(key, _)| key.last_number()).map(Seq) else { return Ok(removed) };
            if page.len() == PAGE {
                // The last stretch may continue on the next page, so it is left for the next pass. A page is longer than a
                // stretch.
                let rest = Key::event(ward, no, stretch(last));
                page.retain(|(key, _)| *key < rest);
            }
            for (stretch, people) in speakers(&page) {
                let removal = IndexRemoval { stretch, below: self.below, people: &people, notes: &[] };
                remove_from_index(&*self.store, &self.writer, &self.channel_key, removal).await?;
            }
            removed += page.len() as u64;
            self.write(page.into_iter().map(|(key, _)| Write::Remove(key)).collect()).await?;
            if self.pace == Pace::Patient {
                tokio::time::sleep(began.elapsed()).await;
            }
        }
    }

    async fn remove(&self, from: Key, to: Key, keys_to_remove: impl Fn(&Key, &Value) -> Vec<Key>) -> Result<(), WriteError> {
        let mut pages = Reader::new(&*self.store).pages(from, to);
        loop {
            let began = Instant::now();
            let Some(page) = pages.next().await.map_err(|error| error.of(&self.channel_key))? else { return Ok(()) };
            let writes: Vec<_> = page.iter().flat_map(|(key, value)| keys_to_remove(key, value)).map(Write::Remove).collect();
            if !writes.is_empty() {
                self.write(writes).await?;
            }
            if self.pace == Pace::Patient {
                tokio::time::sleep(began.elapsed()).await;
            }
        }
    }

    async fn write(&self, writes: Vec<Write>) -> Result<(), WriteError> {
        let ward = self.channel_key.ward();
        ask(&self.writer, |reply| Request::WriteMeta(WriteMeta { ward, writes, reply })).await
    }
}

/// The speakers of these events, by stretch.
fn speakers(page: &[(Key, Value)]) -> BTreeMap<Seq, BTreeSet<PersonId>> {
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    // Unreadable events are removed, too. Their speakers are unknown.
    for recorded in page.iter().filter_map(|(key, value)| decode_event(key, value).ok()) {
        for person in speakers::speakers(&recorded.event) {
            found.entry(stretch(recorded.seq)).or_default().insert(PersonId::from(&**person));
        }
    }
    found
}

fn key_if(is_chosen: bool, key: &Key) -> Vec<Key> {
    if is_chosen { vec![key.clone()] } else { Vec::new() }
}
