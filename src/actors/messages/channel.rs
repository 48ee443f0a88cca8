//! Messages to a channel, and the answer to its inspection.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ractor::{ActorId, RpcReplyPort};
use tokio::sync::oneshot;

use super::companion::Begun;
use super::models::Outcome;
use super::turn_taking_manager::VoteError;
use super::writer::{Accepted, Committed, WriteError};
use crate::domain::budget::UsedUp;
use crate::domain::conversation::{Conversation, Notice, WantedCalls};
use crate::domain::event::{Failure, NotesTaken, Recorded};
use crate::domain::filter::Finding;
use crate::domain::id::{CompanionId, PersonId, Seq, Ticket};
use crate::domain::message::Untranscribed;
use crate::domain::moment::Moment;
use crate::domain::note::Note;
use crate::domain::notice::Owed;
use crate::domain::reminders::{NewReminder, NotSet, Reading, Reminder};
use crate::domain::tools::CallAnswer;
use crate::domain::vote::State as Ballot;
use crate::journal::reader::{ReadError, Restored};
use crate::journal::record::Written;
use crate::ports::language_model::LazyRequest;

pub enum ChannelMessage {
    /// The journal of the channel was read, or could not be.
    Restored(Result<Box<Restored>, CannotRestore>),
    /// Input that was [handed over](crate::actors::runtime::directory::Directory::hand_over) to the channel. It waits until the
    /// channel is restored.
    Received(Received),
    /// The messages of a hand-over were not journaled, or it is unknown whether they were.
    NotHandedOver(WriteError),
    /// The writer's answer to a batch of the channel's own events.
    Recorded { batch: u64, result: Result<Committed, WriteError> },
    /// The writer's answer to a statement.
    Posted { result: Result<Accepted, WriteError> },
    /// A question was lost before it reached the pool, or a reply was lost with the pool.
    Lost { ticket: Ticket },
    /// Start a lost question, judgement or reply again.
    StartAgain { ticket: Ticket },
    /// A question or a judgement was answered, or failed.
    Answered { ticket: Ticket, asked: Arc<LazyRequest>, outcome: Box<Outcome> },
    /// One call answered the questions to several companions, or failed.
    AnsweredTogether { tickets: Vec<Ticket>, asked: Arc<LazyRequest>, outcome: Box<Outcome> },
    /// An external companion votes in the open round.
    Vote {
        state: Box<Ballot>,
        /// Answered once the vote is journaled, or with the reason why it does not count.
        reply: RpcReplyPort<Result<(), VoteError>>,
    },
    /// An external companion that has the floor submits its statement. Answered with the statement's number once it is accepted.
    Speak {
        from: CompanionId,
        /// The message that the companion was selected for: the round's `message_id`, or the number of the newest event since.
        message_id: String,
        text: Arc<str>,
        reply: RpcReplyPort<Result<Seq, VoteError>>,
    },
    /// A person pressed Stop for the reply of a companion. Answered once that is journaled, or with the reason why nothing was
    /// stopped.
    StopReply { companion: CompanionId, reply: RpcReplyPort<Result<(), VoteError>> },
    /// The deadline for missing States has passed, in the round about this event.
    RoundDue(Seq),
    /// A turn-taking manager has ended. All of its messages came before this one.
    ManagerGone(ActorId),
    /// The model that writes a reply asks for calls of tools. Answered once they have ended.
    CallsWanted { wanted: Box<WantedCalls>, asked: Arc<LazyRequest>, outcome: Box<Outcome>, reply: oneshot::Sender<()> },
    /// A reminder that no companion acknowledges was posted.
    ReminderPosted(u64),
    /// A call has ended.
    CallEnded { call: Ticket, answer: CallAnswer },
    /// A person who may do so confirms or declines a call. Answered once that is journaled.
    ConfirmCall { call: Ticket, by: Option<PersonId>, is_confirmed: bool, reply: RpcReplyPort<Result<(), VoteError>> },
    /// A sentence of a spoken reply is written. All sentences arrive before `ReplyEnded`.
    SentenceWritten { ticket: Ticket, text: Arc<str> },
    /// A reply was written, or failed.
    ReplyEnded {
        ticket: Ticket,
        text: Result<Arc<str>, Failure>,
        /// Which statement's place it takes.
        written: Box<Written>,
        asked: Arc<LazyRequest>,
        outcome: Box<Outcome>,
    },
    /// Write a draft of a message by this person. Nothing of it is on record but its usage. Answered with the text, or a stable error code.
    Draft { companion: CompanionId, person: Arc<str>, reply: RpcReplyPort<Result<Arc<str>, Arc<str>>> },
    /// Set a reminder, which gets the next number. Dropped by a channel that is not restored.
    Remind { wanted: Box<NewReminder>, reply: RpcReplyPort<Result<(Reminder, Reading), NotSet>> },
    /// Make this call of the tool `remind`, for a person with this time zone. `None`: the guild's.
    ReminderCall { call: Ticket, zone: Option<Arc<str>> },
    /// A statement was posted on a platform, or could not be.
    Delivered { ticket: Ticket, delivered: Box<Delivered> },
    /// A delivery's actor has ended. All of its messages came before this one.
    DeliveryGone(ActorId),
    /// A reply's actor has ended. All of its messages came before this one.
    ReplyGone(ActorId),
    /// The model's answer was no statement. The reply asks the model once more.
    Repeated { ticket: Ticket, asked: Arc<LazyRequest>, outcome: Box<Outcome> },
    /// A call ended whose answer the channel does not need. Its usage still counts.
    Unclaimed { asked: Arc<LazyRequest>, outcome: Box<Outcome> },
    /// A model that decides and speaks in one call has decided to speak.
    Speaks { ticket: Ticket, begun: Box<Begun> },
    /// A model that decides and speaks in one call has passed, with its reason if it gave one.
    Passed { ticket: Ticket, reason: Option<String>, asked: Arc<LazyRequest>, outcome: Box<Outcome> },
    /// The result of the search for messages that a filter refuses in a summary's prompt.
    Filtered(Box<Finding>),
    /// A summary was written, or failed.
    Summarised {
        /// The newest event that it covers.
        upto: Seq,
        /// The number of messages that it covers and the previous summary did not.
        messages: u64,
        /// The summary, if one was written.
        text: Option<Arc<str>>,
        outcome: Option<Box<Outcome>>,
    },
    /// Notes were taken, or could not be.
    NotesTaken { taken: Option<Taken>, outcome: Option<Box<Outcome>> },
    /// The words of a voice note were recognised, or there are none.
    Transcribed(Box<Transcription>),
    /// Events below this number have expired.
    Expired(Seq),
    /// A deadline is due, a question may have waited for too long, or the channel has been idle for a while.
    Woken,
    /// The channel's members or their settings have changed.
    MembershipChanged,
    /// The writer was replaced. Requests to the old one may have been committed without an answer, so the channel checks whether
    /// it missed events.
    WriterReplaced,
    /// Everything up to this number is journaled. Events up to it that were dispatched to this channel arrived before this
    /// message.
    Fenced(Seq),
    /// Reads prompt input from the conversation. A channel that is not restored drops this message.
    Read(Box<dyn FnOnce(&Conversation) + Send>),
    /// Answer with the current state of the conversation.
    Inspect(RpcReplyPort<Box<Inspection>>),
}

/// The outcome of the recognition of a voice note.
pub struct Transcription {
    /// The note, as it was recorded.
    pub note: Recorded,
    pub transcript: Result<Transcript, Untranscribed>,
}

/// The recognised words of a voice note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    pub text: Arc<str>,
    /// The recogniser.
    pub provider: Arc<str>,
    /// The recogniser's confidence in the least certain part, in thousandths.
    pub confidence: Option<u16>,
}

/// The notes of one call.
pub type Taken = (Vec<Note>, NotesTaken);

pub enum Received {
    /// An inbound event, and the time of its commit.
    Inbound(Box<Recorded>, Moment),
    /// The messages of a hand-over, in the order of their numbers, and the time of their commit. They are handled as one input.
    HandedOver(Vec<Recorded>, Moment),
    /// An event of the voice call that is not journaled.
    Voice(Notice),
    /// Other models answer from now on. This is not journaled, but the back-offs that it ends are.
    ModelsReplaced,
}

/// The current state of a channel.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub conversation: Conversation,
    /// When each question and reply in flight began.
    pub since: HashMap<Ticket, Moment>,
    /// The used-up budget that forbids further statements in the guild. None if the channel is not running.
    pub used_up: Option<UsedUp>,
    /// The people of the guild who may not address companions for now. Empty if the channel is not running.
    pub over_addresses: BTreeSet<PersonId>,
}

/// Why a channel cannot continue from its journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRestore {
    /// The journal is damaged, so an immediate restart does not help.
    #[error("{0}")]
    Damaged(String),
    /// The store does not answer at the moment.
    #[error("{0}")]
    NotNow(String),
}

impl From<ReadError> for CannotRestore {
    fn from(error: ReadError) -> Self {
        if error.is_damage() { Self::Damaged(error.to_string()) } else { Self::NotNow(error.to_string()) }
    }
}

/// The result of posting a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The text that was posted, or may have been. Empty: none.
    pub text: Arc<str>,
    /// The platform's ids of the statement's parts.
    pub ids: Vec<Arc<str>>,
    /// Whether some part has an unknown outcome: it may or may not have been posted.
    pub is_unconfirmed: bool,
    /// Why the remaining parts were not posted, as a stable code.
    pub error: Option<&'static str>,
    /// The disclosure that was certainly posted with the statement, and the platform's id of the part that contained it.
    pub disclosed: Option<(Owed, Arc<str>)>,
    /// How it was written. It takes no other statement's place if the platform did not delete that one, which stays on record.
    pub written: Written,
}
