//! Works out the batch that a request comes to, given where its journal stands.

use std::sync::Arc;

use super::request::Request;
use crate::actors::messages::writer::{
    Accept, DeleteChannel, DeleteExpired, Held, OutboxWrite, Post, Record, RedactEvents, RemoveFromIndex, WriteError, WriteMeta,
};
use crate::domain::event::{Event, Made, Recorded};
use crate::domain::id::{PersonId, Seq, Ticket, TurnId, Ward};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::Head;
use crate::journal::record::{
    ChannelRecord, PendingRecord, UsageRecord, Used, encode, encode_event, encode_number, encode_snapshot,
};
use crate::journal::speakers::{self, IndexedPeople, speaker};
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Append, Batch, Value, Write};

/// Where a journal stands, as far as writing needs to know.
#[derive(Clone, Debug, Default)]
pub(super) struct JournalPosition {
    pub(super) no: Option<ChannelNo>,
    pub(super) last: Seq,
    pub(super) at: Moment,
    /// The newest event from outside, while something is pending.
    heard: Seq,
    is_pending: bool,
    /// Everything that the channel made itself up to here is contained in the conversation that it runs.
    made: Seq,
    /// Everything below was deleted with the whole channel.
    deleted_below: Seq,
    /// What is missing below was deleted, or let go.
    lowest: Seq,
    /// Who is known to be in the index of persons.
    listed: IndexedPeople,
}

/// What a request comes to.
pub(super) struct Plan {
    /// None: nothing needs to be written.
    pub(super) batch: Option<Batch>,
    /// What happened, once it is committed.
    pub(super) events: Vec<Arc<Recorded>>,
}

impl From<Head> for JournalPosition {
    fn from(head: Head) -> Self {
        Self {
            no: head.no,
            last: head.last,
            at: head.at,
            heard: head.pending.map_or(Seq::NONE, |pending| pending.heard),
            is_pending: head.pending.is_some(),
            made: head.last,
            deleted_below: head.swept_below,
            lowest: head.lowest,
            listed: IndexedPeople::default(),
        }
    }
}

/// Works out what a request comes to, and where its journal stands after it.
pub(super) fn plan(request: &Request, ward: &mut Held, position: &mut JournalPosition) -> Result<Plan, WriteError> {
    match request {
        Request::Accept(Accept { channel_key, at, event, id, .. }) => {
            let mut draft = Draft::of(channel_key, ward, position);
            draft.hear(at.unwrap_or_default(), event, None, id.as_ref())?;
            Ok(draft.finish())
        }
        Request::Post(Post { channel_key, at, event, turn, ids, ticket, usage, .. }) => {
            let mut draft = Draft::of(channel_key, ward, position);
            draft.hear(at.unwrap_or_default(), event, *turn, ids.first())?;
            ids.iter().skip(1).for_each(|id| draft.name(id));
            draft.fulfil(*ticket);
            draft.count(draft.position.at, usage);
            Ok(draft.finish())
        }
        Request::Record(record) => plan_record(record, ward, position),
        Request::Delete(DeleteChannel { channel_key, .. }) => {
            if position.no.is_none() {
                return Ok(Plan::nothing());
            }
            let mut draft = Draft::of(channel_key, ward, position);
            draft.delete_all();
            Ok(draft.finish())
        }
        Request::RedactEvents(RedactEvents { channel_key, events, writes, .. }) => {
            if position.no.is_none() {
                return Ok(Plan::nothing());
            }
            let mut draft = Draft::of(channel_key, ward, position);
            draft.rewrite(events);
            draft.batch.writes.extend(writes.iter().cloned());
            Ok(draft.finish())
        }
        Request::DeleteExpired(DeleteExpired { channel_key, below, snapshot, .. }) => {
            let is_outdated = *below <= position.deleted_below || *below < position.lowest || *below > position.last.next();
            if position.no.is_none() || is_outdated {
                return Ok(Plan::nothing());
            }
            let mut draft = Draft::of(channel_key, ward, position);
            draft.let_go(*below, snapshot.as_ref());
            Ok(draft.finish())
        }
        Request::RemoveFromIndex(RemoveFromIndex { channel_key, stretch, keys, as_of, .. }) => {
            // While it was open, somebody may have been heard again in it since, who is listed already.
            let was_open = speakers::stretch(as_of.next()) <= speakers::stretch(*stretch);
            if position.no.is_none() || (was_open && position.last != *as_of) {
                return Ok(Plan::nothing());
            }
            let mut draft = Draft::of(channel_key, ward, position);
            draft.position.listed = IndexedPeople::default();
            draft.batch.writes.extend(keys.iter().cloned().map(Write::Remove));
            Ok(draft.finish())
        }
        Request::Swept { channel_key, below, .. } => {
            // A later deletion has a sweep of its own, and its mark stays until that is done.
            if position.no.is_none() || position.deleted_below != *below {
                return Ok(Plan::nothing());
            }
            let mut draft = Draft::of(channel_key, ward, position);
            draft.batch.writes.push(Write::Remove(key::sweep(draft.batch.ward, draft.no)));
            Ok(draft.finish())
        }
        Request::Fence(_) => Ok(Plan::nothing()),
        Request::WriteMeta(WriteMeta { ward: name, writes, fresh, .. }) => {
            let (fresh, writes) = (fresh.clone(), writes.clone());
            let batch = Batch { ward: *name, term: ward.term, append: None, fresh, writes };
            Ok(Plan { batch: Some(batch), events: Vec::new() })
        }
    }
}

/// How many bytes a batch carries, about.
pub(super) fn weight(batch: &Batch) -> usize {
    let records = batch.append.iter().flat_map(|append| &append.records).map(Vec::len).sum::<usize>();
    let writes = batch.writes.iter().map(|write| match write {
        Write::Put(key, value) => key.as_bytes().len() + value.len(),
        Write::Remove(key) => key.as_bytes().len(),
    });
    records + writes.sum::<usize>()
}

fn plan_record(record: &Record, ward: &mut Held, position: &mut JournalPosition) -> Result<Plan, WriteError> {
    let Record { channel_key, at, made, quiet, snapshot, outbox, usage, .. } = record;
    if made.iter().any(|made| made.event.is_heard()) {
        return Err(WriteError::Unfit("an event from outside is accepted, not made"));
    }
    let handled = made.iter().map(|made| made.handled).chain(snapshot.iter().map(|snapshot| snapshot.handled()));
    if handled.min().is_some_and(|handled| handled < position.deleted_below) {
        return Err(WriteError::Deleted);
    }
    let mut draft = Draft::of(channel_key, ward, position);
    for made in made {
        draft.make(*at, made);
    }
    draft.mark_pending(*quiet, !made.is_empty());
    if let Some(conversation) = snapshot {
        let value = encode_snapshot(draft.position.made, conversation);
        draft.batch.writes.push(Write::Put(key::snapshot(draft.batch.ward, draft.no), value));
    }
    for write in outbox {
        match write {
            OutboxWrite::Put(ticket, record) => {
                draft.batch.writes.push(Write::Put(key::outbox(draft.batch.ward, draft.no, *ticket), encode(record)));
            }
            OutboxWrite::Remove(ticket) => draft.fulfil(*ticket),
        }
    }
    draft.count(*at, usage);
    Ok(draft.finish())
}

impl Plan {
    fn nothing() -> Self {
        Self { batch: None, events: Vec::new() }
    }
}

/// A batch for one channel, in the making.
struct Draft<'a> {
    channel_key: &'a ChannelKey,
    no: ChannelNo,
    ward: &'a mut Held,
    position: &'a mut JournalPosition,
    batch: Batch,
    records: Vec<Vec<u8>>,
    after: Seq,
    events: Vec<Arc<Recorded>>,
}

impl<'a> Draft<'a> {
    /// For this channel, which gets its number now if it has none.
    fn of(channel_key: &'a ChannelKey, ward: &'a mut Held, position: &'a mut JournalPosition) -> Self {
        let name = channel_key.ward();
        let mut batch = Batch { ward: name, term: ward.term, append: None, fresh: Vec::new(), writes: Vec::new() };
        let no = *position.no.get_or_insert_with(|| {
            let no = ChannelNo(ward.next_channel);
            ward.next_channel += 1;
            let record = ChannelRecord { guild: channel_key.guild.clone(), channel: channel_key.channel.clone() };
            batch.fresh.push(key::channel_name(channel_key));
            batch.writes.extend([
                Write::Put(key::channel_name(channel_key), encode(&no.0)),
                Write::Put(key::channel_of(name, no), encode(&record)),
                Write::Put(key::next_channel(name), encode(&ward.next_channel)),
            ]);
            no
        });
        let after = position.last;
        Self { channel_key, no, ward, position, batch, records: Vec::new(), after, events: Vec::new() }
    }

    fn hear(&mut self, at: Moment, event: &Event, turn: Option<TurnId>, id: Option<&Arc<str>>) -> Result<(), WriteError> {
        if !event.is_heard() {
            return Err(WriteError::Unfit("only an event from outside is accepted"));
        }
        let seq = self.position.last.next();
        if let Some(id) = id {
            let key = key::message_id(self.batch.ward, self.no, id);
            self.batch.fresh.push(key.clone());
            self.batch.writes.push(Write::Put(key, encode(&seq)));
        }
        if let Some(person) = speaker(event)
            && self.position.listed.add(person, seq)
        {
            let entry = key::person(&self.channel_key.guild, &PersonId::from(&**person), self.no, seq);
            self.batch.writes.push(Write::Put(entry, encode(&())));
        }
        self.position.heard = seq;
        if !self.position.is_pending {
            self.put_pending();
        }
        self.append(at.max(self.position.at), &Made { handled: seq, turn, event: event.clone() });
        Ok(())
    }

    /// The newest event goes by this id, too.
    fn name(&mut self, id: &str) {
        let seq = self.position.last;
        self.batch.writes.push(Write::Put(key::message_id(self.batch.ward, self.no, id), encode(&seq)));
    }

    /// Its time is the conversation's, which may not have handled the journal's newest event yet: a fold needs just that.
    fn make(&mut self, at: Moment, made: &Made) {
        self.append(at, made);
        self.position.made = self.position.last;
    }

    fn append(&mut self, at: Moment, made: &Made) {
        let seq = self.position.last.next();
        let Made { handled, turn, event } = made.clone();
        let recorded = Recorded { seq, at, handled, turn, event };
        self.records.push(encode_event(&recorded));
        self.position.last = seq;
        self.position.at = self.position.at.max(at);
        self.events.push(Arc::new(recorded));
    }

    /// What is heard makes a channel pending; it stays so until the channel has handled the newest and is at rest.
    fn mark_pending(&mut self, quiet: Option<Seq>, has_made: bool) {
        match quiet {
            Some(quiet) if quiet >= self.position.heard && self.position.is_pending => {
                self.position.is_pending = false;
                self.batch.writes.push(Write::Remove(key::pending(self.batch.ward, self.no)));
            }
            None if has_made && !self.position.is_pending => self.put_pending(),
            _ => {}
        }
    }

    fn put_pending(&mut self) {
        self.position.is_pending = true;
        let record = PendingRecord { heard: self.position.heard };
        self.batch.writes.push(Write::Put(key::pending(self.batch.ward, self.no), encode(&record)));
    }

    fn fulfil(&mut self, ticket: Ticket) {
        self.batch.writes.push(Write::Remove(key::outbox(self.batch.ward, self.no, ticket)));
    }

    fn count(&mut self, at: Moment, usage: &[Used]) {
        for used in usage {
            self.ward.usages = self.ward.usages.wrapping_add(1);
            let number = (self.ward.term.0 << 32) | u64::from(self.ward.usages);
            let record = UsageRecord { at, channel: self.channel_key.channel.clone(), used: used.clone() };
            self.batch.writes.push(Write::Put(key::usage(&self.channel_key.guild, at, self.no, number), encode(&record)));
        }
    }

    /// Everything so far counts as gone at once; a sweep takes it away after.
    fn delete_all(&mut self) {
        let (ward, no) = (self.batch.ward, self.no);
        let lowest = self.position.last.next();
        self.position.heard = Seq::NONE;
        self.position.is_pending = false;
        self.position.deleted_below = lowest;
        self.position.lowest = lowest;
        self.batch.writes.extend([
            Write::Put(key::tombstone(ward, no), encode_number(lowest)),
            Write::Put(key::sweep(ward, no), encode_number(lowest)),
            Write::Remove(key::snapshot(ward, no)),
            Write::Remove(key::pending(ward, no)),
            Write::Remove(key::summary(ward, no)),
        ]);
    }

    fn let_go(&mut self, below: Seq, snapshot: Option<&Value>) {
        let (ward, no) = (self.batch.ward, self.no);
        self.position.lowest = below;
        self.batch.writes.push(Write::Put(key::tombstone(ward, no), encode_number(below)));
        self.batch.writes.extend(snapshot.map(|value| Write::Put(key::snapshot(ward, no), value.clone())));
    }

    fn rewrite(&mut self, events: &[Recorded]) {
        // What a sweep has taken away of what was let go comes back without words, to be swept again; of a deleted channel nothing does.
        let there = self.position.deleted_below.max(Seq(1))..=self.position.last;
        for recorded in events.iter().filter(|recorded| there.contains(&recorded.seq)) {
            self.batch.writes.push(Write::Put(Key::event(self.batch.ward, self.no, recorded.seq), encode_event(recorded)));
        }
    }

    fn finish(mut self) -> Plan {
        if self.records.is_empty() && self.batch.writes.is_empty() {
            return Plan::nothing();
        }
        // Even an append of nothing names the number that it follows: when something before it in the group is refused, so is this, and
        // the order stays.
        self.batch.append = Some(Append { channel: self.no, after: self.after, records: self.records });
        Plan { batch: Some(self.batch), events: self.events }
    }
}

/// Whether this key of a channel in this ward is the id of a message.
pub(super) fn is_message_id(key: &Key, ward: Ward, no: ChannelNo, id: &str) -> bool {
    *key == key::message_id(ward, no, id)
}
