//! Takes away what remains of a deleted channel, or of what was let go, a bounded page at a time, while the writer goes on with the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ractor::ActorRef;
use tokio::time::Instant;

use super::index_removal::{Leaving, remove_from_index};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{MetaWriteError, Own, WriteError, WriteMeta, WriterMessage};
use crate::domain::id::{PersonId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::ReadError;
use crate::journal::record::{OutboxRecord, decode, decode_event};
use crate::journal::speakers::{speaker, stretch};
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::{Store, Value, Write};

/// How many keys are read, and removed, at once.
const PAGE: usize = 512;

/// How fast it is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Page after page.
    AtOnce,
    /// After each page, the store is left to others for as long as that took.
    Patient,
}

/// A channel, and what of it is to be taken away.
pub struct Sweep {
    /// Where it is read.
    pub store: Arc<dyn Store>,
    /// Who writes.
    pub writer: ActorRef<WriterMessage>,
    /// Whose journal.
    pub channel_key: ChannelKey,
    /// The number that stands for the channel.
    pub no: ChannelNo,
    /// Everything that came before this number.
    pub below: Seq,
    /// How fast.
    pub pace: Pace,
}

impl Sweep {
    /// Sweeps, and answers when everything is gone. A sweep that fails is taken up again when the channel is used next.
    pub(super) async fn run(self, reply: Reply<()>) {
        match self.remove_all().await {
            Ok(_) => {
                let Self { writer, channel_key, below, .. } = self;
                // If the writer is gone, the reply is dropped, and says so.
                let _ = writer.cast(WriterMessage::Own(Own::Swept { channel_key, below, reply }));
            }
            Err(lost) => reply.send(Err(lost)),
        }
    }

    /// Takes everything away that came before, and tells how many events that was.
    ///
    /// # Errors
    /// Some of it may be there still.
    pub async fn remove_all(&self) -> Result<u64, WriteError> {
        let (ward, no, below) = (self.channel_key.ward(), self.no, self.below);
        let is_older = |seq: Seq| seq < below;
        // What cannot be read goes too: it is of no use to anybody.
        let ids = Key::new(ward, Kind::MessageId).channel(no);
        self.remove(ids.clone(), ids.end(), |key, value| only_if(decode(key, value).map_or(true, is_older), key)).await?;
        let owed = Key::new(ward, Kind::Outbox).channel(no);
        let upto = |record: OutboxRecord| is_older(record.upto);
        self.remove(owed.clone(), owed.end(), |key, value| only_if(decode(key, value).map_or(true, upto), key)).await?;
        let (first, end) = (key::dead_letter(ward, no, Seq::NONE), key::dead_letter(ward, no, below));
        self.remove(first, end, |key, _| vec![key.clone()]).await?;
        // Last of all: as long as an event is left, whoever looks knows that this did not come to its end.
        self.remove_events().await
    }

    /// Takes the events away, and before them whoever said nothing else out of the index of persons: stretch by stretch.
    async fn remove_events(&self) -> Result<u64, WriteError> {
        let (ward, no) = (self.channel_key.ward(), self.no);
        let mut passed = 0;
        loop {
            let began = Instant::now();
            let (first, end) = (Key::event(ward, no, Seq::NONE), Key::event(ward, no, self.below));
            let draft = self.store.scan(first, end, false, PAGE).await;
            let mut draft = draft.map_err(|error| ReadError::from(error).of(&self.channel_key))?;
            let Some(last) = draft.last().and_then(|(key, _)| key.last_number()).map(Seq) else { return Ok(passed) };
            if draft.len() == PAGE {
                // The rest of the last stretch goes with the next page. A page is longer than a stretch.
                let rest = Key::event(ward, no, stretch(last));
                draft.retain(|(key, _)| *key < rest);
            }
            for (stretch, people) in speakers(&draft) {
                let leaving = Leaving { stretch, below: self.below, people: &people, notes: &[] };
                remove_from_index(&*self.store, &self.writer, &self.channel_key, leaving).await?;
            }
            passed += draft.len() as u64;
            self.write(draft.into_iter().map(|(key, _)| Write::Remove(key)).collect()).await?;
            if self.pace == Pace::Patient {
                tokio::time::sleep(began.elapsed()).await;
            }
        }
    }

    async fn remove(&self, mut from: Key, to: Key, chosen: impl Fn(&Key, &Value) -> Vec<Key>) -> Result<u64, WriteError> {
        let mut passed = 0;
        loop {
            let began = Instant::now();
            let draft = self.store.scan(from.clone(), to.clone(), false, PAGE).await;
            let draft = draft.map_err(|error| ReadError::from(error).of(&self.channel_key))?;
            let Some((last, _)) = draft.last() else { return Ok(passed) };
            passed += draft.len() as u64;
            from = key::successor(last);
            let writes: Vec<_> = draft.iter().flat_map(|(key, value)| chosen(key, value)).map(Write::Remove).collect();
            if !writes.is_empty() {
                self.write(writes).await?;
            }
            if self.pace == Pace::Patient {
                tokio::time::sleep(began.elapsed()).await;
            }
        }
    }

    async fn write(&self, writes: Vec<Write>) -> Result<(), WriteError> {
        let (reply, done) = Reply::awaited();
        let order = WriteMeta { ward: self.channel_key.ward(), writes, fresh: Vec::new(), reply };
        let _ = self.writer.cast(WriterMessage::WriteMeta(order));
        match done.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(MetaWriteError::WriteError(lost))) => Err(lost),
            // Nothing had to be new; and a reply always answers.
            Ok(Err(MetaWriteError::Exists { .. })) | Err(_) => Err(WriteError::Unknown),
        }
    }
}

/// Who said something in these events, by stretch.
fn speakers(draft: &[(Key, Value)]) -> BTreeMap<Seq, BTreeSet<PersonId>> {
    let mut speakers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    // What cannot be read goes too, and nobody knows whose it was.
    for recorded in draft.iter().filter_map(|(key, value)| decode_event(key, value).ok()) {
        if let Some(person) = speaker(&recorded.event) {
            speakers.entry(stretch(recorded.seq)).or_default().insert(PersonId::from(&**person));
        }
    }
    speakers
}

fn only_if(is_chosen: bool, key: &Key) -> Vec<Key> {
    if is_chosen { vec![key.clone()] } else { Vec::new() }
}
