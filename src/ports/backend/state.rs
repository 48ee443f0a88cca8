//! The current state of a room.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::stamp::Stamp;
use crate::domain::budget::UsedUp;
use crate::domain::closing::Stage;
pub use crate::domain::conversation::Doing;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::trigger::Trigger;
use crate::domain::vote::State;
use crate::settings::companion::{Interjection, ModelChoice, QuietHours};

/// A message that an endpoint's filter refuses.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FilteredMessage {
    /// The number of the message.
    pub message: Seq,
    /// The kind of prompt: `decision`, `statement` or `summary`.
    pub asked: &'static str,
    /// The model and its endpoint.
    pub model: Arc<str>,
}

/// The state of a room at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RoomState {
    /// The companions that are present, ordered by id.
    pub companions: Vec<CompanionState>,
    /// The holder of the floor, if there is one.
    pub floor: Option<Floor>,
    /// The replies that are being written without the floor, oldest first. Their companions took longer than `turn_taking.floor_timeout_secs`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<Floor>,
    /// The open rounds, oldest first.
    pub rounds: Vec<RoundState>,
    /// The companion that was selected and has not begun to speak.
    pub turn: Option<TurnState>,
    /// Statements by companions that were selected after the newest human message.
    pub streak: u32,
    /// The limit of `streak` (`turn_taking.max_companion_streak`). At the limit, decisions have the reason `loop_guard`.
    pub max_companion_streak: u32,
    /// Statements by companions since the conversation was opened.
    pub turns: u32,
    /// The limit of `turns` (`turn_taking.max_turns`); absent: no limit.
    pub max_turns: Option<u32>,
    pub repetition: RepetitionState,
    pub episode: Option<Episode>,
    /// The messages that an endpoint's filter refuses. They are omitted from such prompts to its model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filtered: Vec<FilteredMessage>,
    /// Why the room is out of service, although it may have work to do. Null: it is in service.
    pub kept_away: Option<OutOfService>,
    /// The budget that allows no further statements, as far as the room is awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_up: Option<UsedUpBudget>,
    /// The time of this state.
    pub at: Stamp,
}

/// A budget that is used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsedUpBudget {
    /// `guild_statements` or `guild_tokens`.
    pub budget: &'static str,
    /// When it is free again. Absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_at: Option<Stamp>,
}

impl From<UsedUp> for UsedUpBudget {
    fn from(UsedUp { budget, free_at }: UsedUp) -> Self {
        Self { budget: budget.as_str(), free_at: free_at.map(Into::into) }
    }
}

/// Why a room is out of service: its guild is in quarantine, the channel is suspended, or its record cannot be read. The rest of the state is then
/// taken from the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutOfService {
    /// The id of the entry in `GET /api/quarantine`, which `release` takes. None: there is no such entry.
    pub id: Option<Arc<str>>,
    /// When the room is retried automatically. None: unknown.
    pub until: Option<Stamp>,
    /// The problem, and how to fix it.
    pub detail: String,
}

/// One companion in a room.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CompanionState {
    pub id: CompanionId,
    pub name: Arc<str>,
    #[schemars(with = "Interjection")]
    pub interjection: Arc<str>,
    /// The texts of the companion's unsettled messages, oldest first.
    pub buffer: Vec<Arc<str>>,
    /// The number of messages that count towards the next interjection.
    pub message_count: u64,
    /// The number of checks since the last reset.
    pub check_count: u64,
    /// The message count at which an interjection is considered. Absent before the first message.
    pub next_interjection_at: Option<u64>,
    /// When the lull ends, if its timer is armed.
    pub lull_at: Option<Stamp>,
    /// The length of a lull for this companion, in seconds.
    pub lull_secs: f64,
    pub doing: Doing,
    /// The trigger, if the companion was asked, is speaking or is in back-off.
    pub trigger: Option<Trigger>,
    /// When the companion began its current activity.
    pub since: Option<Stamp>,
    /// When the companion is asked again, if it is in back-off.
    pub retry_at: Option<Stamp>,
    pub paused: bool,
    /// The hours in which the companion speaks only when spoken to. Absent: never.
    #[serde(skip_serializing_if = "QuietHours::are_never")]
    pub quiet_hours: QuietHours,
    /// The stage of closing: `none`, `pre-closing`, `closing` or `terminal` (docs/design/closing.md C-1).
    pub closing: Stage,
    /// The number of people's messages that the companion received since it closed the conversation.
    pub heard_closed: u32,
    /// The number of such messages after which the companion is open again (`closing.reopen_after`).
    pub reopen_after: u32,
    /// The number of the companion's statements in this conversation.
    pub turns: u32,
    /// The number of its own statements after which the companion ends the conversation. Absent: no limit of its own.
    pub max_turns: Option<u32>,
    /// Whether the companion's statements are judged for repetition.
    pub repetition: bool,
    pub model: ModelChoice,
    /// Whether an external program plays the companion.
    pub external: bool,
}

/// A round that is open.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RoundState {
    /// The number of the message of the round. States name it as a string.
    pub message_id: Seq,
    pub opened_at: Stamp,
    /// When the round closes without the missing States.
    pub deadline: Stamp,
    /// The companions that were asked when the round opened, ordered by id.
    pub asked: Vec<CompanionId>,
    /// The companions whose States are missing, ordered by id.
    pub missing: Vec<CompanionId>,
    /// The States received so far, ordered by companion id.
    pub states: Vec<State>,
}

/// A companion that was selected and has not begun to speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TurnState {
    pub companion: CompanionId,
    pub trigger: Trigger,
    /// When the companion will speak. Absent: immediately.
    pub speak_at: Option<Stamp>,
}

/// How repetitive the newest statements are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RepetitionState {
    /// The last judgement, from 0 (all different) to 1 (all the same).
    pub score: f64,
    /// The number of consecutive judgements that found repetition.
    pub detections: u32,
    /// Whether the side model is being asked to judge.
    pub judging: bool,
}

/// The right to speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Floor {
    pub companion: CompanionId,
    pub ticket: Ticket,
    /// The deadline for the statement of an external companion.
    pub due_at: Option<Stamp>,
}

/// One episode of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Episode {
    pub began_at: Stamp,
}
