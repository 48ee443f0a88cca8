//! Parts of a conversation's state: announcements about the next message, and the position in the journal.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::id::{CompanionId, Seq, Ticket};
use super::super::moment::Moment;

/// Journaled facts about the next message. They take effect when that message is applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Announced {
    /// The number of the next message, if it is an address over the budget of its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<Seq>,
    /// The number of the next message, if it is a stop phrase that cancels something, and the companions that it stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<(Seq, BTreeSet<CompanionId>)>,
    /// The companions in `stopped` that decline only this message, because they are asked again about the messages of others.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) retracted_alone: BTreeSet<CompanionId>,
}

/// The position of a conversation in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The newest inbound event that was handled.
    pub(super) handled: Seq,
    /// The newest moment seen. The clock never goes back before it.
    pub(super) clock: Moment,
    /// The last ticket that was assigned.
    pub(super) tickets: Ticket,
}

pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}
