//! What is going on in a room at one moment.

use std::sync::Arc;

use serde::Serialize;

use super::stamp::Stamp;
pub use crate::domain::conversation::Doing;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::trigger::Trigger;

/// A room at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoomState {
    /// Each companion present, in the order of ids.
    pub companions: Vec<CompanionState>,
    /// Who has the right to speak, if anybody.
    pub floor: Option<Floor>,
    /// The conversation that goes on, if one does.
    pub episode: Option<Episode>,
    /// The moment that this describes.
    pub at: Stamp,
}

/// One companion in a room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompanionState {
    /// Its id.
    pub id: CompanionId,
    /// What people call it.
    pub name: Arc<str>,
    /// Its tier.
    pub interjection: Arc<str>,
    /// The texts of its unsettled messages, oldest first.
    pub buffer: Vec<Arc<str>>,
    /// Messages that count towards the next interjection.
    pub message_count: u64,
    /// Checks made since the last reset.
    pub check_count: u64,
    /// The message count at which an interjection is considered; absent before the first message.
    pub next_interjection_at: Option<u64>,
    /// When the lull ends, if its timer is armed.
    pub lull_at: Option<Stamp>,
    /// How long a lull lasts for it, in seconds.
    pub lull_secs: f64,
    /// What it is doing.
    pub doing: Doing,
    /// Why, when it was asked, is speaking or is in back-off.
    pub trigger: Option<Trigger>,
    /// Since when.
    pub since: Option<Stamp>,
    /// When it is asked again, in back-off.
    pub retry_at: Option<Stamp>,
    /// Whether an operator paused it here.
    pub paused: bool,
    /// The stage of closing: `none`, `pre-closing`, `closing` or `terminal` (seed 002).
    pub closing: Arc<str>,
}

/// The right to speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Floor {
    /// Who has it.
    pub companion: CompanionId,
    /// The reply that it is for.
    pub ticket: Ticket,
}

/// One conversation in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Episode {
    /// When its first message came.
    pub began_at: Stamp,
}
