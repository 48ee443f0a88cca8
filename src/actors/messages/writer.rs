//! Requests to the writer, and its answers.

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
use crate::ports::inbound_events::StoredFile;
use crate::ports::store::key::Key;
use crate::ports::store::{Refusal, StoreError, Term, Value, Write};

#[expect(clippy::large_enum_variant, reason = "a message is boxed when it is sent")]
pub enum WriterMessage {
    Request(Request),
    /// A message of the writer to itself.
    Own(Own),
}

pub enum Request {
    /// Accept an event from outside.
    Accept(Accept),
    /// Append events that a channel produced.
    Record(Record),
    /// Append a companion's statement.
    Post(Post),
    /// Append the messages of a hand-over.
    HandOver(HandOver),
    /// Write records outside of journals.
    WriteMeta(WriteMeta),
    DeleteChannel(DeleteChannel),
    /// Replace events by their redacted form.
    RedactEvents(RedactEvents),
    /// Raise the low-water mark of a journal.
    DeleteExpired(DeleteExpired),
    /// Remove people from the index of persons.
    RemoveFromIndex(RemoveFromIndex),
    /// Wait until all earlier requests are finished.
    Fence(Fence),
    /// A sweep has removed the rest of a deleted channel below this number.
    Swept {
        channel_key: ChannelKey,
        /// The first number that is left.
        below: Seq,
        reply: Reply<()>,
    },
}

/// Messages that the writer sends to itself.
#[derive(Debug)]
pub enum Own {
    /// Acquiring a ward succeeded or failed.
    Taken(Ward, Result<Held, ReadError>),
    /// The head of a journal was read, or could not be.
    Opened(ChannelKey, Result<Head, ReadError>),
    /// The store has answered for this group of commits.
    Committed(u64, Result<Vec<Result<(), Refusal>>, StoreError>),
}

/// A ward that is held.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The term under which the ward is written.
    pub term: Term,
    /// The number that the next new channel gets.
    pub next_channel: u32,
    /// Distinguishes usage records of one moment in one channel. Together with the term it is never repeated.
    pub usages: u32,
}

/// Accepts one event from outside.
pub struct Accept {
    pub channel_key: ChannelKey,
    /// When it happened. `None`: when the writer receives it. Never earlier than the channel's newest event.
    pub at: Option<Moment>,
    /// An [inbound event](Event::is_inbound).
    pub event: Event,
    /// The platform's id of the message. A second event with the same id is answered with the number of the first, whatever its
    /// text.
    pub id: Option<Arc<str>>,
    /// Files of the message that are stored with it, numbered from 0.
    pub files: Vec<StoredFile>,
    pub reply: Reply<Accepted, Refused>,
}

/// Appends events that a channel produced, together with their metadata, in one atomic batch.
pub struct Record {
    pub channel_key: ChannelKey,
    /// When they happened, by the conversation's clock.
    pub at: Moment,
    pub made: Vec<Made>,
    pub quiet: Option<Quiet>,
    /// The conversation after all of this channel's events up to and including these.
    pub snapshot: Option<Box<Conversation>>,
    /// Changes of the outbox.
    pub outbox: Vec<OutboxWrite>,
    pub usage: Vec<Used>,
    pub reply: Reply<Committed>,
}

impl Record {
    /// A batch without events.
    pub fn new(channel_key: ChannelKey, at: Moment, reply: Reply<Committed>) -> Self {
        let (made, outbox, usage) = (Vec::new(), Vec::new(), Vec::new());
        Self { channel_key, at, made, quiet: None, snapshot: None, outbox, usage, reply }
    }
}

/// A channel is at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// Nothing is pending once this inbound event is handled.
    pub handled: Seq,
    /// When a companion may start a conversation, if the channel stays silent until then.
    pub due: Option<Moment>,
}

/// A change of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a batch has one or two of them")]
pub enum OutboxWrite {
    /// The reply is owed, or has made progress.
    Put(Ticket, OutboxRecord),
    /// The reply is no longer owed.
    Remove(Ticket),
}

/// Appends a companion's statement, and removes its reply from the outbox. On the console, this posts the statement. On a
/// platform, it was posted before.
pub struct Post {
    pub channel_key: ChannelKey,
    /// When it was said. `None`: when the writer receives it.
    pub at: Option<Moment>,
    pub event: Event,
    /// The event that records the AI disclosure that was posted with the statement.
    pub disclosed: Option<Box<Event>>,
    /// The turn that it ends.
    pub turn: Option<TurnId>,
    /// The platform's ids of the statement's parts. The first is used as in [`Accept`]; the others refer to the statement as
    /// well.
    pub ids: Vec<Arc<str>>,
    /// The statement whose place it takes.
    pub replaces: Option<Replaces>,
    /// The reply that it fulfils.
    pub ticket: Ticket,
    pub usage: Vec<Used>,
    pub reply: Reply<Accepted>,
}

/// A statement whose deletion is recorded in the batch of the one that takes its place. Its words are redacted afterwards, at the
/// latest by the next cleanup.
#[derive(Clone, Copy)]
pub struct Replaces {
    pub statement: Seq,
    /// Its post on the platform was edited, and is now that of the new statement.
    pub in_place: bool,
}

/// Appends the messages of a voice call, in one atomic batch. The channel receives them in one actor message.
pub struct HandOver {
    pub channel_key: ChannelKey,
    /// When it happened. `None`: when the writer receives it.
    pub at: Option<Moment>,
    /// The newest inbound event that the channel had handled when it made the messages.
    pub handled: Seq,
    /// Messages, in the order of their numbers.
    pub messages: Vec<Event>,
    pub reply: Reply<Committed>,
}

/// Writes records outside of journals: settings, rooms, dead letters.
pub struct WriteMeta {
    pub ward: Ward,
    /// The writes. They must not change a journal or its head.
    pub writes: Vec<Write>,
    pub reply: Reply<()>,
}

/// Deletes a channel's journal and all data derived from it. Answered once everything is deleted. The numbers are not used again.
pub struct DeleteChannel {
    pub channel_key: ChannelKey,
    pub reply: Reply<()>,
}

/// Replaces events by their redacted form. They keep their numbers. Events that were deleted in the meantime stay deleted.
pub struct RedactEvents {
    pub channel_key: ChannelKey,
    /// The redacted events; see [`redact`](crate::journal::redaction::redact).
    pub events: Vec<Recorded>,
    /// Other keys of the channel to change: the snapshot that quotes the events, and their dead letters.
    pub writes: Vec<Write>,
    pub reply: Reply<()>,
}

/// Raises the low-water mark of a journal: from then on, missing events below it are no gap. The events themselves stay until
/// they are swept. A higher mark that was set in the meantime stays, and so does a deletion of the journal.
pub struct DeleteExpired {
    pub channel_key: ChannelKey,
    /// The lowest number that the journal must still contain. The stored snapshot covers everything below.
    pub below: Seq,
    /// The conversation's new snapshot, if it changes.
    pub snapshot: Option<Value>,
    pub reply: Reply<()>,
}

/// Removes people from the index of persons for stretches of a journal without any message of theirs.
pub struct RemoveFromIndex {
    pub channel_key: ChannelKey,
    /// A number in the newest of these [stretches](crate::journal::speakers).
    pub stretch: Seq,
    /// Their keys in the index, and the keys of the notes that request the removal.
    pub keys: Vec<Key>,
    /// The number of the journal's last event at the time of the check.
    pub as_of: Seq,
    /// Answered with whether the entries were removed. They stay if a message may have been added to the stretch since the check.
    pub reply: Reply<bool>,
}

/// Waits until all earlier requests for this channel are finished. A channel that is restored after a crash sends this first.
/// Otherwise, requests that its predecessor had in flight could be committed after the channel has read its journal.
pub struct Fence {
    pub channel_key: ChannelKey,
    /// Answered with the number of the journal's last event.
    pub reply: Reply<Seq>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub seq: Seq,
    /// False: the event is a duplicate, and the number is that of the first event.
    pub is_new: bool,
}

/// The answer to [`Record`] and [`HandOver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The number of the first event. Without events, the number after `last`.
    pub first: Seq,
    /// The number of the journal's last event.
    pub last: Seq,
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// It is unknown whether the request was stored. Restore from the store, and continue from its content.
    #[error("it is not known whether this was stored; read it again before you continue")]
    Unknown,
    /// It was not stored, and nothing can be stored until the server has reopened its store.
    #[error("nothing can be stored now: {0}")]
    Unavailable(Arc<str>),
    /// It was not stored, because the channel's journal cannot be read. The text contains the remedy.
    #[error("{0}")]
    Unreadable(Arc<str>),
    /// It was not stored: it belongs to a history that was deleted.
    #[error("the channel was deleted; restore it and continue")]
    Deleted,
    /// It was not stored: the request is invalid.
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
    /// Too many requests wait to be stored, or to be handled by the channel.
    #[error("too many messages wait; try again in {} ms", .retry_after.as_millis())]
    Busy { retry_after: Duration },
    /// The files do not fit into the channel.
    #[error("the files of this room would take more than {most_mb} MB (storage.room_files_mb); delete messages with files first")]
    FilesFull { most_mb: u32 },
    /// It was not stored, or it is unknown whether it was.
    #[error(transparent)]
    WriteError(#[from] WriteError),
}

impl From<Dropped> for Refused {
    fn from(dropped: Dropped) -> Self {
        Self::WriteError(dropped.into())
    }
}
