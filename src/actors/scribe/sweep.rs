//! Takes away what remains of a deleted channel, a bounded page at a time, while the scribe goes on with the rest.

use std::sync::Arc;

use ractor::ActorRef;

use super::reply::Reply;
use super::request::{Administer, Contested, Lost};
use super::{Note, Own, ScribeMessage};
use crate::domain::event::Event;
use crate::domain::id::{PersonId, Seq};
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::record::{OutboxRecord, decode, decode_event};
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::{Store, Value, Write};

/// How many keys are read, and removed, at once.
const PAGE: usize = 512;

/// A deleted channel, and what of it is to be taken away.
pub(super) struct Sweep {
    pub(super) store: Arc<dyn Store>,
    pub(super) scribe: ActorRef<ScribeMessage>,
    pub(super) place: Place,
    pub(super) no: ChannelNo,
    /// Everything that came before this number.
    pub(super) below: Seq,
}

impl Sweep {
    /// Sweeps, and answers when everything is gone. A sweep that fails is taken up again when the channel is used next.
    pub(super) async fn run(self, reply: Reply<()>) {
        match self.remove_all().await {
            Ok(()) => {
                let Self { scribe, place, below, .. } = self;
                // If the scribe is gone, the reply is dropped, and says so.
                let _ = scribe.cast(ScribeMessage::Own(Own(Note::Swept { place, below, reply })));
            }
            Err(lost) => reply.send(Err(lost)),
        }
    }

    async fn remove_all(&self) -> Result<(), Lost> {
        let (ward, no, below) = (self.place.ward(), self.no, self.below);
        self.remove(Key::event(ward, no, Seq::NONE), Key::event(ward, no, below), |key, value| self.event(key, value)).await?;
        let is_older = |seq: Seq| seq < below;
        // What cannot be read goes too: it is of no use to anybody.
        let ids = Key::new(ward, Kind::MessageId).channel(no);
        self.remove(ids.clone(), ids.end(), |key, value| only_if(decode(key, value).map_or(true, is_older), key)).await?;
        let owed = Key::new(ward, Kind::Outbox).channel(no);
        let upto = |record: OutboxRecord| is_older(record.upto);
        self.remove(owed.clone(), owed.end(), |key, value| only_if(decode(key, value).map_or(true, upto), key)).await?;
        let (first, end) = (key::set_aside(ward, no, Seq::NONE), key::set_aside(ward, no, below));
        self.remove(first, end, |key, _| vec![key.clone()]).await
    }

    /// The keys of an event: its own, and that in the index of persons.
    fn event(&self, key: &Key, value: &Value) -> Vec<Key> {
        let mut keys = vec![key.clone()];
        if let Ok(recorded) = decode_event(key, value)
            && let Event::Said { message, .. } = recorded.event
        {
            keys.push(key::person(&self.place.guild, &PersonId::from(&*message.from.id), self.no, recorded.seq));
        }
        keys
    }

    async fn remove(&self, mut from: Key, to: Key, chosen: impl Fn(&Key, &Value) -> Vec<Key>) -> Result<(), Lost> {
        loop {
            let page = self.store.scan(from.clone(), to.clone(), false, PAGE).await;
            let page = page.map_err(|error| Lost::Unavailable(error.to_string().into()))?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            from = key::successor(last);
            let writes: Vec<_> = page.iter().flat_map(|(key, value)| chosen(key, value)).map(Write::Remove).collect();
            if !writes.is_empty() {
                self.write(writes).await?;
            }
        }
    }

    async fn write(&self, writes: Vec<Write>) -> Result<(), Lost> {
        let (reply, done) = Reply::awaited();
        let order = Administer { ward: self.place.ward(), writes, fresh: Vec::new(), reply };
        let _ = self.scribe.cast(ScribeMessage::Administer(order));
        match done.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Contested::Lost(lost))) => Err(lost),
            // Nothing had to be new; and a reply always answers.
            Ok(Err(Contested::Exists { .. })) | Err(_) => Err(Lost::Unknown),
        }
    }
}

fn only_if(is_chosen: bool, key: &Key) -> Vec<Key> {
    if is_chosen { vec![key.clone()] } else { Vec::new() }
}
