//! What is going on in a room at one moment.

use std::sync::Arc;

use serde::Serialize;

use super::stamp::Stamp;
use crate::domain::closing::Stage;
pub use crate::domain::conversation::Doing;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::trigger::Trigger;
use crate::domain::vote::State;

/// A room at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoomState {
    /// Each companion present, in the order of ids.
    pub companions: Vec<CompanionState>,
    /// Who has the right to speak, if anybody.
    pub floor: Option<Floor>,
    /// The round that is open, if one is.
    pub round: Option<RoundState>,
    /// Whoever was selected and has not begun to speak.
    pub turn: Option<TurnState>,
    /// Statements by companions that were selected after the newest human message.
    pub streak: u32,
    /// How many there may be (`turn_taking.max_companion_streak`).
    pub max_companion_streak: u32,
    /// Statements by companions since the conversation was opened.
    pub turns: u32,
    /// How many there may be (`turn_taking.max_turns`); absent: any number.
    pub max_turns: Option<u32>,
    /// How much the last messages repeat each other.
    pub repetition: RepetitionState,
    /// The conversation that goes on, if one does.
    pub episode: Option<Episode>,
    /// Why nothing goes on in it, although something may have to.
    pub kept_away: Option<OutOfService>,
    /// The moment that this describes.
    pub at: Stamp,
}

/// Why nothing goes on in a room: its guild is kept away, it is left alone, or its record cannot be followed. What is told of it beside is
/// what the record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutOfService {
    /// The entry of `GET /api/quarantine`, which `release` takes; none: there is no such entry.
    pub id: Option<Arc<str>>,
    /// When it is tried again by itself; none: that is not known.
    pub until: Option<Stamp>,
    /// What is wrong, and the way out.
    pub detail: String,
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
    /// The stage of closing: `none`, `pre-closing`, `closing` or `terminal` (docs/design/closing.md C-1).
    pub closing: Stage,
    /// Human messages that it heard since it closed.
    pub heard_closed: u32,
    /// How many open it again (`closing.reopen_after`).
    pub reopen_after: u32,
    /// A program outside plays it.
    pub external: bool,
}

/// A round that is open.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundState {
    /// What it is about: States name this number, as a text.
    pub message_id: Seq,
    /// When it was opened.
    pub opened_at: Stamp,
    /// When missing States are waited for no longer.
    pub deadline: Stamp,
    /// Who was asked when it was opened, by id.
    pub asked: Vec<CompanionId>,
    /// Whose States are still waited for, by id.
    pub missing: Vec<CompanionId>,
    /// The States that are there, by id of their senders.
    pub states: Vec<State>,
}

/// A companion that was selected and has not begun to speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TurnState {
    /// Whose turn it is.
    pub companion: CompanionId,
    /// Why it was asked.
    pub trigger: Trigger,
    /// When it speaks; absent: at once.
    pub speak_at: Option<Stamp>,
}

/// How much the last messages repeat each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RepetitionState {
    /// The last judgement, from 0 (all different) to 1 (the same again and again).
    pub score: f64,
    /// How many judgements in a row found repetition.
    pub detections: u32,
    /// Whether the side model is being asked to judge.
    pub judging: bool,
}

/// The right to speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Floor {
    /// Who has it.
    pub companion: CompanionId,
    /// The reply that it is for.
    pub ticket: Ticket,
    /// Of an external companion: when its words are waited for no longer.
    pub due_at: Option<Stamp>,
}

/// One conversation in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Episode {
    /// When its first message came.
    pub began_at: Stamp,
}
