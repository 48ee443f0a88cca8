//! One companion in a turn, from its question to its end, and what can happen to it.

use super::super::id::{CompanionId, Seq, Ticket, TurnId};
use super::super::trigger::Trigger;

/// The bid of a companion for the floor: it is asked, wants to speak, is selected, and makes its statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Bid {
    pub companion: CompanionId,
    /// The event that began it. If that is not on record any more, the first one that names it.
    pub began: Seq,
    /// None in records of older versions.
    pub turn: Option<TurnId>,
    pub trigger: Trigger,
    /// The number of the message that triggered it. None if it is about no message, or not known.
    pub message: Option<Seq>,
    /// The messages that it is about, without those that were deleted, and until the companion gets the floor without those that have settled.
    pub messages: Vec<Seq>,
    /// The newest event that it is about.
    pub upto: Seq,
    /// The number of its question, if it was asked.
    pub question: Option<Ticket>,
    /// The number of its reply, once it is owed.
    pub reply: Option<Ticket>,
    pub phase: Phase,
    /// It lost the floor while it was writing.
    pub is_late: bool,
    /// The newest inbound event when the companion was selected, or got the floor without that.
    pub selected_at: Option<Seq>,
    /// The newest event that the companion has settled since.
    pub(super) settled: Seq,
    /// A person addressed the companion with the message.
    pub(super) is_called: bool,
}

/// How far a bid has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Asked,
    /// It wants to speak, and the votes of others are missing.
    Wants,
    /// It wants to speak, and waits until the floor is free.
    Held,
    /// Another companion was selected. It takes over if that one makes no statement.
    Lost,
    /// It speaks next.
    Selected,
    /// Its statement is written, or about to be spoken.
    Writing,
    /// People have said more. Its next attempt has not begun.
    Replanning,
    /// A sentence is about to be heard, or was.
    Speaking,
}

/// What happened to a bid with an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The bid after the event. If it has ended, as it was before.
    pub bid: Bid,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It has come to this phase.
    Now(Phase),
    /// It has the floor, and owes its statement.
    Owed,
    /// The companion that was selected before it made no statement, and it has the floor instead.
    TookOver,
    /// The attempt with this number was stopped, and another one begins.
    BegunAgain(Ticket),
    /// It has lost the floor, and writes on.
    Late,
    FloorTaken,
    /// The rest of a sentence was dropped.
    Stalled,
    Interrupted,
    Ended(Ending),
}

/// How a bid ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The answer is NO, or its messages settled without an answer.
    Declined,
    Unanswered,
    Posted,
    Failed,
    /// A person stopped it.
    Cancelled,
    /// All messages that it was about were deleted.
    Deleted,
    Cleared,
    Left,
    Paused,
    /// The companion has ended the conversation.
    Closed,
    /// What it wanted to say something about has settled, or somebody has ended the silence.
    Settled,
    /// The companion is asked again.
    AskedAnew,
    /// Another one speaks. The record does not say how this one ended.
    Replaced,
}
