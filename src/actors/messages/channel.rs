//! What a channel is told, and how it says that it stands.

use std::collections::HashMap;
use std::sync::Arc;

use ractor::{ActorId, RpcReplyPort};

use super::models::Outcome;
use super::turn_taking_manager::VoteError;
use super::writer::{Accepted, Committed, WriteError};
use crate::domain::conversation::Conversation;
use crate::domain::event::Recorded;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::vote::{State as Ballot, Vote};
use crate::journal::reader::{ReadError, Restored};
use crate::ports::language_model::LazyRequest;

/// What a channel is told.
pub enum ChannelMessage {
    /// What is on record was read, or could not be.
    Restored(Result<Box<Restored>, CannotRestore>),
    /// An event from outside was accepted: it was committed at this moment.
    Heard(Box<Recorded>, Moment),
    /// What it made is on record, or nobody knows.
    Recorded {
        /// Which batch.
        batch: u64,
        /// Its numbers.
        result: Result<Committed, WriteError>,
    },
    /// A statement is posted, or nobody knows.
    Posted {
        /// Its number.
        result: Result<Accepted, WriteError>,
    },
    /// A question never reached the pool.
    QuestionLost {
        /// Which question.
        ticket: Ticket,
    },
    /// A question cannot be put to the pool, since something in it panics: asking at once again would not help.
    QuestionUnasked {
        /// Which question.
        ticket: Ticket,
    },
    /// It is to be handed over again.
    AskAgain {
        /// Which question.
        ticket: Ticket,
    },
    /// A question came to its end.
    Answered {
        /// Which question.
        ticket: Ticket,
        /// What was asked.
        asked: Arc<LazyRequest>,
        /// What came of it.
        outcome: Box<Outcome>,
        /// What the answer says, where the turn-taking manager has read it.
        vote: Option<Box<Vote>>,
    },
    /// An external companion votes in the round that is open.
    Voted {
        /// Its vote.
        state: Box<Ballot>,
        /// Where it is said whether it counts, once that is on record.
        reply: RpcReplyPort<Result<(), VoteError>>,
    },
    /// An external companion that has the floor says its words. Answered with the statement's number once it is accepted.
    Words {
        /// Who.
        from: CompanionId,
        /// What it was selected for: the round's `message_id`, or the number of the newest event since.
        message_id: String,
        /// The words.
        text: Arc<str>,
        /// Where the number goes.
        reply: RpcReplyPort<Result<Seq, VoteError>>,
    },
    /// How much the last messages repeat each other was judged, or could not be.
    Judged {
        /// Which question.
        ticket: Ticket,
        /// What was asked.
        asked: Arc<LazyRequest>,
        /// What came of it.
        outcome: Box<Outcome>,
    },
    /// States that are missing in the round about this event are waited for no longer.
    RoundDue(Seq),
    /// A turn-taking manager is gone, after whatever it had to say.
    ManagerGone(ActorId),
    /// A reply is written, or failed.
    ReplyEnded {
        /// Which reply.
        ticket: Ticket,
        /// The words, or a stable code.
        text: Result<Arc<str>, Arc<str>>,
        /// What was asked.
        asked: Arc<LazyRequest>,
        /// What it took.
        outcome: Box<Outcome>,
    },
    /// A statement was posted on a platform, or not.
    Delivered {
        /// Which reply.
        ticket: Ticket,
        /// What came of it.
        delivered: Box<Delivered>,
    },
    /// A delivery's actor is gone, after whatever it had to say.
    DeliveryGone(ActorId),
    /// A reply's actor is gone, after whatever it had to say.
    ReplyGone(ActorId),
    /// A question came to its end that nobody waits for any more.
    Unclaimed {
        /// What was asked.
        asked: Arc<LazyRequest>,
        /// What it took.
        outcome: Box<Outcome>,
    },
    /// A summary came to its end.
    Summarised {
        /// The newest event that it covers.
        upto: Seq,
        /// The summary, if one was written.
        text: Option<Arc<str>>,
        /// What it took.
        outcome: Option<Box<Outcome>>,
    },
    /// What stands below this number was kept for long enough.
    LetGo(Seq),
    /// A deadline is due, a question may have waited for too long, or nothing was heard for a while.
    Woken,
    /// Who lives here changed, or how they are set.
    ResidenceChanged,
    /// The writer was replaced: what the one before it left on its way may be on record, and was never told here.
    LookAgain,
    /// Everything up to this number is on record, and was handed over before this if it ever will be.
    Fenced(Seq),
    /// How does it stand?
    Look(RpcReplyPort<Box<Look>>),
}

/// How a channel stands.
#[derive(Clone, Debug)]
pub struct Look {
    /// Its conversation.
    pub conversation: Conversation,
    /// Who was asked in the newest round.
    pub asked: Vec<CompanionId>,
    /// Since when each question and reply in flight is: by its number.
    pub since: HashMap<Ticket, Moment>,
}

/// Why a channel cannot go on from its record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRestore {
    /// What is stored is damaged: starting again at once does not help.
    #[error("{0}")]
    Damaged(String),
    /// Not now.
    #[error("{0}")]
    NotNow(String),
}

impl From<ReadError> for CannotRestore {
    fn from(error: ReadError) -> Self {
        if error.is_damage() { Self::Damaged(error.to_string()) } else { Self::NotNow(error.to_string()) }
    }
}

/// What came of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The words that were posted, or may have been; empty: none.
    pub text: Arc<str>,
    /// The platform's ids of its parts.
    pub ids: Vec<Arc<str>>,
    /// Whether nobody can know of some part whether it was posted.
    pub is_unconfirmed: bool,
    /// Why the rest was not posted, if it was not: a stable code.
    pub error: Option<&'static str>,
}
