//! The bid of one companion in a turn, from its question to its end, and its changes.

use super::super::id::{CompanionId, Seq, Ticket, TurnId};
use super::super::trigger::Trigger;

/// The bid of a companion for the floor: the companion is asked, wants to speak, is selected, and makes its statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Bid {
    pub companion: CompanionId,
    /// The event that began it. If that event is not journaled any more, the first one that names the bid.
    pub began: Seq,
    /// None in journals of older versions.
    pub turn: Option<TurnId>,
    pub trigger: Trigger,
    /// The number of the message that triggered it. None if no message did, or if it is not known.
    pub message: Option<Seq>,
    /// The messages that it is about, without deleted ones. Until the companion gets the floor, also without settled ones.
    pub messages: Vec<Seq>,
    /// The newest event that it is about.
    pub upto: Seq,
    /// The number of its question. None if it was not asked.
    pub question: Option<Ticket>,
    /// The number of its reply. None until the reply is owed.
    pub reply: Option<Ticket>,
    pub phase: Phase,
    /// The companion lost the floor while it was writing.
    pub is_late: bool,
    /// The newest inbound event when the companion was selected, or when it got the floor without a selection.
    pub selected_at: Option<Seq>,
    /// The newest event that the companion has settled since.
    pub(super) settled: Seq,
    /// A person addressed the companion with the message.
    pub(super) is_called: bool,
}

/// The progress of a bid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Asked,
    /// It wants to speak, and waits for the votes of others.
    Wants,
    /// It wants to speak, and waits until the floor is free.
    Held,
    /// Another companion was selected. It takes over if that one makes no statement.
    Lost,
    /// It speaks next.
    Selected,
    /// Its statement is being written, or waits for its playback.
    Writing,
    /// Its attempt was stopped, and the next one has not begun.
    Replanning,
    /// A sentence is about to play, or has played.
    Speaking,
}

/// The change of a bid by an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The bid after the event. If it has ended: the bid before the event.
    pub bid: Bid,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It has entered this phase.
    Now(Phase),
    /// It has the floor, and owes its statement.
    Owed,
    /// The companion that was selected before made no statement, and this one has the floor instead.
    TookOver,
    /// The attempt with this number was stopped, and another one begins.
    BegunAgain(Ticket),
    /// It has lost the floor, and continues to write.
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
    /// The messages that it was about have settled, or the silence that it was about has ended.
    Settled,
    /// The companion is asked again.
    AskedAnew,
    /// Another companion speaks. The journal does not contain the end of this bid.
    Replaced,
}
