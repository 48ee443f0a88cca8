//! Messages to a companion.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::channel::ChannelMessage;
use super::reply::{Dropped, Reply};
use crate::domain::closing::Stage;
use crate::domain::id::{ChannelId, Seq, Ticket};
use crate::domain::message::Modality;
use crate::domain::priority::Priority;
use crate::domain::prompt::Said;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::settings::companion::Companion as Settings;

pub enum CompanionMessage {
    /// Decide whether to speak.
    Evaluate(Box<DecisionRequest>),
    /// Drop a question whose answer is no longer wanted.
    Cancel { channel: ChannelId, ticket: Ticket },
    /// Send the settings in force in a channel. Dropped: the companion is no longer configured.
    SettingsIn { channel: ChannelId, settings: oneshot::Sender<Arc<Settings>> },
}

/// Asks a channel for what a prompt is built from, as it is when this is called. `None`: it is not there any more, or the channel is not running.
pub type Source<T> = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<T>> + Send>> + Send + Sync>;

pub struct DecisionInput {
    pub trigger: Trigger,
    pub stage: Stage,
    pub modality: Modality,
    /// Messages since the companion last spoke.
    pub message_count: u64,
    /// Minutes since something was said.
    pub minutes: u64,
    /// The name of the author of the message that triggered the question.
    pub speaker: Option<Arc<str>>,
    /// Whether the last statements were judged repetitive.
    pub is_repetitive: bool,
    pub summary: Option<Arc<str>>,
    /// The most recent settled turns, oldest first.
    pub recent: Vec<Said>,
    /// The unsettled messages and the companion's own statements between them, oldest first.
    pub buffer: Vec<Said>,
}

#[derive(Clone)]
pub struct Statement {
    pub trigger: Trigger,
    pub closing: Stage,
    /// How often somebody wanted another statement in the place of one that was made.
    pub tries: u32,
    pub modality: Modality,
    /// Whether it is spoken in a voice call.
    pub is_spoken: bool,
    /// Why the companion decided to speak, in its own words.
    pub why: Option<Arc<str>>,
    /// Messages since the companion last spoke, at the time of the decision.
    pub message_count: u64,
    /// Minutes since something was said.
    pub minutes: u64,
    /// The name of the author of the newest message that is answered.
    pub speaker: Option<Arc<str>>,
    /// Whether the last statements were judged repetitive.
    pub is_repetitive: bool,
    pub summary: Option<Arc<str>>,
    /// The newest event that the summary covers.
    pub summary_upto: Seq,
    /// The messages before the snapshot, oldest first: the most recent ones, until the history is read from the journal.
    pub recent: Vec<Said>,
    /// The number of messages between the summary and `recent` that do not fit.
    pub left_out: usize,
    /// Where `recent` is read from: everything since the newest `clear`.
    pub history: HistoryRange,
    /// The messages that are answered and the companion's own statements between them, oldest first.
    pub snapshot: Vec<Said>,
}

/// A stretch of a journal: the events after one number and before another.
#[derive(Clone, Debug)]
pub struct HistoryRange {
    pub after: Seq,
    pub before: Seq,
}

/// Sends a message to a channel. The channel's address is resolved at the time of the call.
pub type Tell = Arc<dyn Fn(ChannelMessage) + Send + Sync>;

/// A channel's question, whether to speak, on its way to the pool.
pub struct DecisionRequest {
    pub channel_key: ChannelKey,
    pub ticket: Ticket,
    pub priority: Priority,
    /// Everything that the prompt is built from.
    pub input: Source<DecisionInput>,
    /// Sends the result to the channel.
    pub tell: Tell,
    /// Answered once the question has safely reached the pool. Dropped: it was lost on its way there.
    pub arrival: Reply<(), Dropped>,
}
