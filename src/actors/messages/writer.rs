//! What the writer is asked, and what it answers.

use std::sync::Arc;
use std::time::Duration;

use super::reply::{Dropped, Reply};
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Made, Recorded};
use crate::domain::id::{Seq, Ticket, TurnId, Ward};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Head, ReadError};
use crate::journal::record::{OutboxRecord, Used};
use crate::ports::store::key::Key;
use crate::ports::store::{Refusal, StoreError, Term, Value, Write};

/// What the writer is asked.
#[derive(Debug)]
pub enum WriterMessage {
    /// Accept an event from outside.
    Accept(Accept),
    /// Put on record what a channel made.
    Record(Record),
    /// Take in a statement that is posted with being stored.
    Post(Post),
    /// Write what is nobody's journal.
    WriteMeta(WriteMeta),
    /// Delete a channel's journal.
    DeleteChannel(DeleteChannel),
    /// Write events again without their words.
    RedactEvents(RedactEvents),
    /// Let the oldest events of a journal go.
    DeleteExpired(DeleteExpired),
    /// Take people out of the index.
    RemoveFromIndex(RemoveFromIndex),
    /// Wait for what was asked before.
    Fence(Fence),
    /// What the writer tells itself.
    Own(Own),
}

/// What the writer tells itself.
#[derive(Debug)]
pub enum Own {
    /// A ward was taken, or not.
    Taken(Ward, Result<Held, ReadError>),
    /// It was looked up where a journal stands.
    Opened(ChannelKey, Result<Head, ReadError>),
    /// The store has answered what came of this group.
    Committed(u64, Result<Vec<Result<(), Refusal>>, StoreError>),
    /// What remained of a deleted channel below this number is gone.
    Swept {
        /// The channel's place.
        channel_key: ChannelKey,
        /// The first number that is left.
        below: Seq,
        /// Who waits for it.
        reply: Reply<()>,
    },
}

/// A ward that is held.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Under which it is written.
    pub term: Term,
    /// The number that the next new channel gets.
    pub next_channel: u32,
    /// Tells apart what is used at one moment in one channel; with the term it never comes again.
    pub usages: u32,
}

/// Accepts one event from outside.
#[derive(Debug)]
pub struct Accept {
    /// Where.
    pub channel_key: ChannelKey,
    /// When it happened; none: when the writer hears of it. Never before the channel's newest event.
    pub at: Option<Moment>,
    /// What happened; one that [is heard](Event::is_heard).
    pub event: Event,
    /// The platform's id of the message; the same id again gives the first number, whatever the text.
    pub id: Option<Arc<str>>,
    /// Where the number goes.
    pub reply: Reply<Accepted, Refused>,
}

/// Puts on record what a channel made itself, and all that belongs to it, whole or not at all.
#[derive(Debug)]
pub struct Record {
    /// Where.
    pub channel_key: ChannelKey,
    /// When it happened, by the conversation's clock.
    pub at: Moment,
    /// What happened.
    pub made: Vec<Made>,
    /// Nothing is pending once this event from outside is handled.
    pub quiet: Option<Seq>,
    /// The conversation after all of this channel's records up to and with this one.
    pub snapshot: Option<Box<Conversation>>,
    /// Changes of replies owed.
    pub outbox: Vec<OutboxWrite>,
    /// What was used.
    pub usage: Vec<Used>,
    /// Where the outcome goes.
    pub reply: Reply<Committed>,
}

/// A change of a reply owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxWrite {
    /// It is owed, or got further.
    Put(Ticket, OutboxRecord),
    /// It is owed no more.
    Remove(Ticket),
}

/// Takes in a companion's statement that is posted with being stored, as on the console: the event, and that its reply is owed no more.
#[derive(Debug)]
pub struct Post {
    /// Where.
    pub channel_key: ChannelKey,
    /// When; none: when the writer hears of it.
    pub at: Option<Moment>,
    /// The statement.
    pub event: Event,
    /// The turn that it ends.
    pub turn: Option<TurnId>,
    /// The platform's ids of the statement's parts: the first as in [`Accept`]; by the others it is found as well.
    pub ids: Vec<Arc<str>>,
    /// The reply that it fulfils.
    pub ticket: Ticket,
    /// What was used.
    pub usage: Vec<Used>,
    /// Where the number goes.
    pub reply: Reply<Accepted>,
}

/// Writes what is nobody's journal: settings, rooms, messages set aside.
#[derive(Debug)]
pub struct WriteMeta {
    /// Where all the keys lie.
    pub ward: Ward,
    /// What to write; never a journal or its head.
    pub writes: Vec<Write>,
    /// Keys that must not exist yet.
    pub fresh: Vec<Key>,
    /// Where the outcome goes.
    pub reply: Reply<(), MetaWriteError>,
}

/// Deletes a channel's journal and all that was made from it. Answered once everything is gone. Its numbers are not used again.
#[derive(Debug)]
pub struct DeleteChannel {
    /// Which one.
    pub channel_key: ChannelKey,
    /// Where the outcome goes.
    pub reply: Reply<()>,
}

/// Writes events again without what must be forgotten. They keep their numbers. What was deleted meanwhile stays deleted.
#[derive(Debug)]
pub struct RedactEvents {
    /// Where.
    pub channel_key: ChannelKey,
    /// The events as they are to read from now on; see [`redact`](crate::journal::redaction::redact).
    pub events: Vec<Recorded>,
    /// Other keys of the channel to change: the snapshot that quotes them, what was set aside of them.
    pub writes: Vec<Write>,
    /// Where the outcome goes.
    pub reply: Reply<()>,
}

/// Lets the oldest events of a journal go: what is missing below a number was let go, from now on. They still lie there until somebody
/// takes them away. What was deleted, or let go beyond that, meanwhile stays so.
#[derive(Debug)]
pub struct DeleteExpired {
    /// Where.
    pub channel_key: ChannelKey,
    /// The lowest number that the journal still owes. The stored snapshot contains everything below.
    pub below: Seq,
    /// The conversation's snapshot, as it is to be kept from now on, if it is to change.
    pub snapshot: Option<Value>,
    /// Where the outcome goes.
    pub reply: Reply<()>,
}

/// Takes people out of the index of persons, of whom nothing is left in stretches of a journal.
#[derive(Debug)]
pub struct RemoveFromIndex {
    /// Where.
    pub channel_key: ChannelKey,
    /// A number in the newest of these [stretches](crate::journal::speakers).
    pub stretch: Seq,
    /// Their keys in the index, and what notes that they are to go.
    pub keys: Vec<Key>,
    /// The number of the journal's last event when nothing was left of them.
    pub as_of: Seq,
    /// Where it goes whether that was done: not, if something may have been said in the stretch since.
    pub reply: Reply<bool>,
}

/// Waits until everything is settled that was asked for this channel before. Whoever restores a channel after a crash asks this first, or
/// what its predecessor left on the way would come after.
#[derive(Debug)]
pub struct Fence {
    /// Where.
    pub channel_key: ChannelKey,
    /// Where the number of the journal's last event goes.
    pub reply: Reply<Seq>,
}

/// An event was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its number.
    pub seq: Seq,
    /// False: it is a duplicate; the number is that of the first.
    pub is_new: bool,
}

/// What a channel made is on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The number of the first event; without any, the one after `last`.
    pub first: Seq,
    /// The number of the journal's last event.
    pub last: Seq,
}

/// Why something was not written, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// It may have been stored, or not: restore from the store, and go on from what is there.
    #[error("it is not known whether this was stored; read it again before going on")]
    Unknown,
    /// It was not stored, and nothing will be until the server has opened its store again.
    #[error("nothing can be stored now: {0}")]
    Unavailable(Arc<str>),
    /// It was not stored, and will not be as long as what is on record of the channel cannot be read; this says what to do.
    #[error("{0}")]
    Unreadable(Arc<str>),
    /// It was not stored: it belongs to a history that was deleted.
    #[error("the channel was deleted; restore it and go on")]
    Deleted,
    /// It was not stored: it contradicts what this request is for.
    #[error("this cannot be recorded: {0}")]
    Unfit(&'static str),
}

impl From<Dropped> for WriteError {
    fn from(_: Dropped) -> Self {
        Self::Unknown
    }
}

impl From<ReadError> for WriteError {
    fn from(error: ReadError) -> Self {
        let why = error.to_string().into();
        if error.is_damage() { Self::Unreadable(why) } else { Self::Unavailable(why) }
    }
}

/// Why an event was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too much waits: to be stored, or for its channel.
    #[error("too many messages wait; try again in {} ms", .retry_after.as_millis())]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// It was not stored, or may not have been.
    #[error(transparent)]
    WriteError(#[from] WriteError),
}

impl From<Dropped> for Refused {
    fn from(dropped: Dropped) -> Self {
        Self::WriteError(dropped.into())
    }
}

/// Why an administrative write was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaWriteError {
    /// A key that had to be new is there.
    #[error("{key} exists already")]
    Exists {
        /// Which key.
        key: Key,
        /// What it holds.
        value: Value,
    },
    /// It was not stored, or may not have been.
    #[error(transparent)]
    WriteError(#[from] WriteError),
}

impl From<Dropped> for MetaWriteError {
    fn from(dropped: Dropped) -> Self {
        Self::WriteError(dropped.into())
    }
}
