//! The effects of events on settlement: the companions and messages that an event settles, and the reply that it concerns.

use std::slice;

use super::decision::Decision;
use super::event::{Decided, Event};
use super::id::{CompanionId, Seq, Ticket};

/// The messages that an event settles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled<'a> {
    /// The companions for which it settles.
    pub companions: &'a [CompanionId],
    /// The messages that settle.
    pub messages: &'a [Seq],
    /// The newest event that settles. `Seq::NONE` means that only `messages` settle.
    pub upto: Seq,
}

/// A reply that is owed as a result of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Owed<'a> {
    /// The companion that owes it.
    pub companion: &'a CompanionId,
    pub ticket: Ticket,
    /// The number of the stopped attempt. None if the reply is not a restart.
    pub replaces: Option<Ticket>,
    /// The messages that it answers. They settle with the event.
    pub messages: &'a [Seq],
    /// The newest event that settles.
    pub upto: Seq,
}

impl Decided {
    /// The messages that the decision settles. None for a YES, because the reply that follows settles them.
    pub fn settled(&self) -> Option<Settled<'_>> {
        let settled = Settled { companions: &self.companions, messages: &self.messages, upto: self.upto };
        (self.decision == Decision::No).then_some(settled)
    }
}

impl Event {
    /// The messages that the event settles. None if it settles none.
    pub fn settled(&self) -> Option<Settled<'_>> {
        if let Self::Decided(decided) = self {
            return decided.settled();
        }
        let Owed { companion, messages, upto, .. } = self.owed()?;
        Some(Settled { companions: slice::from_ref(companion), messages, upto })
    }

    /// The reply that is owed as a result of this event. None if there is none.
    pub fn owed(&self) -> Option<Owed<'_>> {
        match self {
            Self::ReplyOwed { companion, ticket, messages, upto, .. } => {
                Some(Owed { companion, ticket: *ticket, replaces: None, messages, upto: *upto })
            }
            Self::Replanned { companion, ticket, next, messages, upto, .. }
            | Self::ReplyExtended { companion, ticket, next, messages, upto, .. } => {
                Some(Owed { companion, ticket: *next, replaces: Some(*ticket), messages, upto: *upto })
            }
            _ => None,
        }
    }

    /// The number of the owed reply that the event concerns. None for other events, and for the event that first makes the reply owed.
    pub fn reply(&self) -> Option<Ticket> {
        match self {
            Self::Said { reply, .. } => *reply,
            Self::Cancelled { ticket, .. } => *ticket,
            Self::Replanning { ticket, .. }
            | Self::Replanned { ticket, .. }
            | Self::ReplyExtended { ticket, .. }
            | Self::SentenceStarting { ticket, .. }
            | Self::SentencePlayed { ticket, .. }
            | Self::Interrupted { ticket, .. }
            | Self::FloorExpired { ticket, .. }
            | Self::FloorTaken { ticket, .. }
            | Self::ReplyFailed { ticket, .. } => Some(*ticket),
            _ => None,
        }
    }

    /// Whether the event cancels all activity of this companion, because it left or the room was cleared.
    pub fn cancels(&self, companion: &CompanionId) -> bool {
        match self {
            Self::Cleared { .. } => true,
            Self::Left { companion: who } => who == companion,
            _ => false,
        }
    }

    /// Whether the event pauses this companion.
    pub fn pauses(&self, companion: &CompanionId) -> bool {
        matches!(self, Self::Paused { companion: who, paused: true } if who.as_ref().is_none_or(|who| who == companion))
    }
}

/// Whether a deletion covers all of these messages. False if there are no messages, so that a reply to no message is not affected.
pub fn are_all_deleted(messages: &[Seq], deleted: &[Seq]) -> bool {
    !messages.is_empty() && messages.iter().all(|seq| deleted.contains(seq))
}
