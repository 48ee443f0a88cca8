//! Plans the batch of a request from the position of its journal.

use std::sync::Arc;

use crate::actors::messages::writer::{
    Accept, DeleteChannel, DeleteExpired, HandOver, Held, OutboxWrite, Post, Quiet, Record, RedactEvents, RemoveFromIndex,
    Replaces, Request, WriteError, WriteMeta,
};
use crate::domain::event::{Event, Made, Recorded};
use crate::domain::id::{PersonId, Seq, Ticket, TurnId, Ward};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::figures::figure;
use crate::journal::key;
use crate::journal::reader::Head;
use crate::journal::record::{
    ChannelRecord, FILE_PART_BYTES, FileRecord, PendingRecord, UsageRecord, Used, encode, encode_bytes, encode_event,
    encode_number, encode_snapshot,
};
use crate::journal::speakers::{self, IndexedPeople, speakers};
use crate::ports::inbound_events::StoredFile;
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Append, Batch, Value, Write};

/// The data about a journal that writing needs.
#[derive(Clone, Debug, Default)]
pub(super) struct JournalPosition {
    pub(super) no: Option<ChannelNo>,
    pub(super) last: Seq,
    pub(super) at: Moment,
    /// The newest inbound event, while the channel is pending.
    newest_inbound: Seq,
    is_pending: bool,
    /// While the channel is not pending: when a companion may start a conversation there.
    due: Option<Moment>,
    /// The last event that the channel itself made, or the end of the journal when it was opened. The running conversation
    /// contains all of the channel's own events up to here.
    made: Seq,
    /// Events below this number were deleted with the whole channel.
    deleted_below: Seq,
    /// The low-water mark. Events that are missing below it were deleted or have expired.
    lowest: Seq,
    /// The people who are known to be in the index of persons.
    listed: IndexedPeople,
}

/// The batch of a request, and its events.
pub(super) struct Plan {
    /// `None`: nothing needs to be written.
    pub(super) batch: Option<Batch>,
    /// The events that exist once the batch is committed.
    pub(super) events: Vec<Arc<Recorded>>,
}

impl From<Head> for JournalPosition {
    fn from(head: Head) -> Self {
        Self {
            no: head.no,
            last: head.last,
            at: head.at,
            newest_inbound: head.pending.map_or(Seq::NONE, |pending| pending.heard),
            is_pending: head.pending.is_some_and(|pending| pending.due.is_none()),
            due: head.pending.and_then(|pending| pending.due),
            made: head.last,
            deleted_below: head.swept_below,
            lowest: head.lowest,
            listed: IndexedPeople::default(),
        }
    }
}

/// Plans the batch of a request, and moves the position behind it.
pub(super) fn plan(request: &Request, ward: &mut Held, position: &mut JournalPosition) -> Result<Plan, WriteError> {
    match request {
        Request::Accept(Accept { channel_key, at, event, id, files, .. }) => {
            let mut draft = Draft::of(channel_key, ward, position);
            draft.append_inbound(at.unwrap_or_default(), event, None, id.as_ref())?;
            files.iter().zip(0..).for_each(|(file, number)| draft.put_file(file, number));
            Ok(draft.finish())
        }
        Request::Post(Post { channel_key, at, event, disclosed, turn, ids, replaces, ticket, usage, .. }) => {
            let mut draft = Draft::of(channel_key, ward, position);
            if let Some(Replaces { statement, .. }) = replaces {
                draft.append_inbound(at.unwrap_or_default(), &Event::replaced(*statement), None, None)?;
                // Until its words are redacted.
                let note = key::index_removal(draft.batch.ward, draft.no, *statement);
                draft.batch.writes.push(Write::Put(note, encode(&())));
            }
            let is_known = replaces.is_some_and(|replaces| replaces.in_place);
            draft.append_inbound(at.unwrap_or_default(), event, *turn, ids.first().filter(|_| !is_known))?;
            ids.iter().skip(usize::from(!is_known)).for_each(|id| draft.add_message_id(id));
            if let Some(disclosed) = disclosed {
                draft.append_inbound(at.unwrap_or_default(), disclosed, *turn, None)?;
            }
            draft.remove_from_outbox(*ticket);
            draft.record_usage(draft.position.at, usage);
            Ok(draft.finish())
        }
        Request::HandOver(HandOver { channel_key, at, handled, messages, .. }) => {
            if *handled < position.deleted_below {
                return Err(WriteError::Deleted);
            }
            let mut draft = Draft::of(channel_key, ward, position);
            for message in messages {
                draft.append_inbound(at.unwrap_or_default(), message, None, None)?;
            }
            Ok(draft.finish())
        }
        Request::Record(record) => plan_record(record, ward, position),
        Request::DeleteChannel(DeleteChannel { channel_key, .. }) => {
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
            draft.expire(*below, snapshot.as_ref());
            Ok(draft.finish())
        }
        Request::RemoveFromIndex(RemoveFromIndex { channel_key, stretch, keys, as_of, .. }) => {
            // The stretch was not full at that time. A person who has spoken in it since would be listed already and must stay
            // listed.
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
            // A later deletion has its own sweep, and its mark stays until that sweep is done.
            if position.no.is_none() || position.deleted_below != *below {
                return Ok(Plan::nothing());
            }
            let mut draft = Draft::of(channel_key, ward, position);
            draft.batch.writes.push(Write::Remove(key::sweep(draft.batch.ward, draft.no)));
            Ok(draft.finish())
        }
        Request::Fence(_) => Ok(Plan::nothing()),
        Request::WriteMeta(WriteMeta { ward: number, writes, .. }) => {
            let batch = Batch { ward: *number, term: ward.term, append: None, fresh: Vec::new(), writes: writes.clone() };
            Ok(Plan { batch: Some(batch), events: Vec::new() })
        }
    }
}

/// The approximate size of a batch in bytes.
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
    if made.iter().any(|made| made.event.is_inbound()) {
        return Err(WriteError::Unfit("a channel cannot record an inbound event; inbound events are accepted"));
    }
    let handled = made.iter().map(|made| made.handled).chain(snapshot.iter().map(|snapshot| snapshot.handled()));
    if handled.min().is_some_and(|handled| handled < position.deleted_below) {
        return Err(WriteError::Deleted);
    }
    let mut draft = Draft::of(channel_key, ward, position);
    for made in made {
        draft.append_made(made);
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
            OutboxWrite::Remove(ticket) => draft.remove_from_outbox(*ticket),
        }
    }
    draft.record_usage(*at, usage);
    Ok(draft.finish())
}

impl Plan {
    fn nothing() -> Self {
        Self { batch: None, events: Vec::new() }
    }
}

/// A batch for one channel while it is being built.
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
    /// A draft for this channel. The channel gets its number now if it has none.
    fn of(channel_key: &'a ChannelKey, ward: &'a mut Held, position: &'a mut JournalPosition) -> Self {
        let number = channel_key.ward();
        let mut batch = Batch { ward: number, term: ward.term, append: None, fresh: Vec::new(), writes: Vec::new() };
        let no = *position.no.get_or_insert_with(|| {
            let no = ChannelNo(ward.next_channel);
            ward.next_channel += 1;
            let record = ChannelRecord { guild: channel_key.guild.clone(), channel: channel_key.channel.clone() };
            batch.fresh.push(key::channel_name(channel_key));
            batch.writes.extend([
                Write::Put(key::channel_name(channel_key), encode(&no.0)),
                Write::Put(key::channel_of(number, no), encode(&record)),
                Write::Put(key::next_channel(number), encode(&ward.next_channel)),
            ]);
            no
        });
        let after = position.last;
        Self { channel_key, no, ward, position, batch, records: Vec::new(), after, events: Vec::new() }
    }

    fn append_inbound(
        &mut self,
        at: Moment,
        event: &Event,
        turn: Option<TurnId>,
        id: Option<&Arc<str>>,
    ) -> Result<(), WriteError> {
        if !event.is_inbound() {
            return Err(WriteError::Unfit("only inbound events are accepted"));
        }
        let seq = self.position.last.next();
        if let Some(id) = id {
            let key = key::message_id(self.batch.ward, self.no, id);
            self.batch.fresh.push(key.clone());
            self.batch.writes.push(Write::Put(key, encode(&seq)));
        }
        if let Event::Said { message, .. } = event
            && let Some(id) = message.quoted.as_ref().and_then(|quoted| quoted.id.as_deref())
        {
            self.batch.writes.push(Write::Put(key::quotation(self.batch.ward, self.no, id, seq), encode(&seq)));
        }
        self.position.newest_inbound = seq;
        if !self.position.is_pending {
            self.put_pending();
        }
        self.append(&Made { at: at.max(self.position.at), handled: seq, turn, event: event.clone() });
        Ok(())
    }

    /// Adds a platform's id to the newest event.
    fn add_message_id(&mut self, id: &str) {
        let seq = self.position.last;
        self.batch.writes.push(Write::Put(key::message_id(self.batch.ward, self.no, id), encode(&seq)));
    }

    /// Stores a file of the newest event.
    fn put_file(&mut self, file: &StoredFile, number: u64) {
        let (ward, no, seq) = (self.batch.ward, self.no, self.position.last);
        let record = FileRecord { media_type: file.media_type.clone(), bytes: file.bytes.len() as u64 };
        self.batch.writes.push(Write::Put(key::file(ward, no, seq, number), encode(&record)));
        let parts = file.bytes.chunks(FILE_PART_BYTES).zip(0..);
        self.batch.writes.extend(parts.map(|(part, n)| {
            let key = key::file_parts(ward, no, seq, number).number(n);
            Write::Put(key, encode_bytes(part))
        }));
    }

    /// Appends an event that the channel made. Its time is the conversation's clock, which may be behind the journal's newest
    /// event. A fold needs exactly that time.
    fn append_made(&mut self, made: &Made) {
        self.append(made);
        self.position.made = self.position.last;
    }

    fn append(&mut self, made: &Made) {
        let seq = self.position.last.next();
        for person in speakers(&made.event) {
            if self.position.listed.add(person, seq) {
                let entry = key::person(&self.channel_key.guild, &PersonId::from(&**person), self.no, seq);
                self.batch.writes.push(Write::Put(entry, encode(&())));
            }
        }
        if let Event::Disclosed(disclosed) = &made.event {
            let told = disclosed.owed.people.iter().map(|person| key::disclosure(&self.channel_key.guild, person));
            self.batch.writes.extend(told.map(|key| Write::Put(key, encode(&made.at))));
        }
        // The index of notes has each `clear`, too: notes from before it are not used in other rooms.
        if let Event::Noted(_) | Event::Cleared { anew: false } = &made.event {
            self.batch.writes.push(Write::Put(key::noted(self.batch.ward, self.no, seq), encode(&())));
        }
        if let Some(figure) = figure(&made.event) {
            self.record_usage(made.at.month(0), &[figure]);
        }
        let Made { at, handled, turn, event } = made.clone();
        let recorded = Recorded { seq, at, handled, turn, event };
        self.records.push(encode_event(&recorded));
        self.position.last = seq;
        self.position.at = self.position.at.max(at);
        self.events.push(Arc::new(recorded));
    }

    /// Updates the pending mark. An inbound event makes a channel pending, until the channel has handled the newest one and is at rest.
    fn mark_pending(&mut self, quiet: Option<Quiet>, has_made: bool) {
        match quiet {
            Some(Quiet { handled, due })
                if handled >= self.position.newest_inbound && (self.position.is_pending || self.position.due != due) =>
            {
                self.position.is_pending = false;
                self.position.due = due;
                match due {
                    Some(_) => self.write_pending(),
                    None => self.batch.writes.push(Write::Remove(key::pending(self.batch.ward, self.no))),
                }
            }
            None if has_made && !self.position.is_pending => self.put_pending(),
            _ => {}
        }
    }

    fn put_pending(&mut self) {
        self.position.is_pending = true;
        self.position.due = None;
        self.write_pending();
    }

    fn write_pending(&mut self) {
        let record = PendingRecord { heard: self.position.newest_inbound, due: self.position.due };
        self.batch.writes.push(Write::Put(key::pending(self.batch.ward, self.no), encode(&record)));
    }

    fn remove_from_outbox(&mut self, ticket: Ticket) {
        self.batch.writes.push(Write::Remove(key::outbox(self.batch.ward, self.no, ticket)));
    }

    fn record_usage(&mut self, at: Moment, usage: &[Used]) {
        for used in usage {
            self.ward.usages = self.ward.usages.wrapping_add(1);
            let number = (self.ward.term.0 << 32) | u64::from(self.ward.usages);
            let record = UsageRecord { at, channel: self.channel_key.channel.clone(), used: used.clone() };
            self.batch.writes.push(Write::Put(key::usage(&self.channel_key.guild, at, self.no, number), encode(&record)));
        }
    }

    /// Marks all events so far as deleted. A sweep removes them afterwards.
    fn delete_all(&mut self) {
        let (ward, no) = (self.batch.ward, self.no);
        let lowest = self.position.last.next();
        self.position.newest_inbound = Seq::NONE;
        self.position.is_pending = false;
        self.position.due = None;
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

    fn expire(&mut self, below: Seq, snapshot: Option<&Value>) {
        let (ward, no) = (self.batch.ward, self.no);
        self.position.lowest = below;
        self.batch.writes.push(Write::Put(key::tombstone(ward, no), encode_number(below)));
        self.batch.writes.extend(snapshot.map(|value| Write::Put(key::snapshot(ward, no), value.clone())));
    }

    fn rewrite(&mut self, events: &[Recorded]) {
        // An expired event that a sweep has removed is stored again, without its text, and swept again. Events of a deleted
        // channel are not.
        let stored = self.position.deleted_below.max(Seq(1))..=self.position.last;
        for recorded in events.iter().filter(|recorded| stored.contains(&recorded.seq)) {
            let key = Key::event(self.batch.ward, self.no, recorded.seq);
            self.batch.writes.push(Write::Put(key, encode_event(recorded)));
            if matches!(&recorded.event, Event::Noted(note) if note.is_redacted()) {
                self.batch.writes.push(Write::Remove(key::noted(self.batch.ward, self.no, recorded.seq)));
            }
        }
    }

    fn finish(mut self) -> Plan {
        if self.records.is_empty() && self.batch.writes.is_empty() {
            return Plan::nothing();
        }
        // Even an empty append names the number that it follows. If an earlier batch of the group is refused, this one is refused
        // too, and the order stays.
        self.batch.append = Some(Append { channel: self.no, after: self.after, records: self.records });
        Plan { batch: Some(self.batch), events: self.events }
    }
}

/// Whether this key of a channel in this ward is the id of a message.
pub(super) fn is_message_id(key: &Key, ward: Ward, no: ChannelNo, id: &str) -> bool {
    *key == key::message_id(ward, no, id)
}
