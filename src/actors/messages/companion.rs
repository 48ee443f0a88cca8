//! Messages to a companion.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::channel::ChannelMessage;
use super::reply::{Dropped, Reply};
use crate::domain::closing::Stage;
use crate::domain::id::{ChannelId, Seq, Ticket};
use crate::domain::message::{Message, Modality};
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::Request;

pub enum CompanionMessage {
    /// Decide whether to speak.
    Evaluate(Box<Evaluate>),
    /// Drop a question whose answer is no longer wanted.
    Cancel { channel: ChannelId, ticket: Ticket },
    /// Prepare the prompt of a statement.
    PreparePrompt(Box<Speak>),
}

/// A request to decide whether to speak.
pub struct Evaluate {
    /// The channel that asks, and the question's number.
    pub asking: DecisionRequest,
    /// Everything that the prompt is built from.
    pub input: DecisionInput,
}

/// The input of a decision.
pub struct DecisionInput {
    pub trigger: Trigger,
    /// The companion's closing stage.
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
    /// The rolling summary.
    pub summary: Option<Arc<str>>,
    /// The most recent settled turns, oldest first.
    pub recent: Vec<Arc<Message>>,
    /// The unsettled messages and the companion's own statements between them, oldest first.
    pub buffer: Vec<Arc<Message>>,
}

/// A request for the prompt of a statement.
pub struct Speak {
    pub channel_key: ChannelKey,
    /// What the statement is made from.
    pub statement: Arc<Statement>,
    /// Receives the prompt. Dropped: there is none.
    pub prompt: oneshot::Sender<StatementPrompt>,
}

/// The input of a statement.
#[derive(Clone)]
pub struct Statement {
    pub trigger: Trigger,
    /// The speaker's closing stage.
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
    /// The rolling summary.
    pub summary: Option<Arc<str>>,
    /// The messages before the snapshot, oldest first: the most recent ones, until the history is read from the journal.
    pub recent: Vec<Arc<Message>>,
    /// The number of messages between the summary and `recent` that do not fit.
    pub left_out: usize,
    /// Where `recent` is read from: everything since the end of the rolling summary.
    pub history: HistoryRange,
    /// The messages that are answered and the companion's own statements between them, oldest first.
    pub snapshot: Vec<Arc<Message>>,
}

/// A stretch of a journal: the events after one number and before another.
#[derive(Clone, Debug)]
pub struct HistoryRange {
    pub after: Seq,
    pub before: Seq,
}

/// The prompt of a companion's statement.
pub struct StatementPrompt {
    /// The companion's name in the channel.
    pub name: Arc<str>,
    /// Builds the request. It may panic, and may take long because prompts are long.
    pub request: Box<dyn FnOnce() -> Request + Send>,
}

/// Sends a message to a channel. The channel's address is resolved at the time of the call.
pub type Tell = Arc<dyn Fn(ChannelMessage) + Send + Sync>;

/// A channel's question on its way to the pool.
pub struct DecisionRequest {
    pub channel_key: ChannelKey,
    pub ticket: Ticket,
    /// Sends the result to the channel.
    pub tell: Tell,
    /// Answered once the question has safely reached the pool. Dropped: it was lost on its way there.
    pub arrival: Reply<(), Dropped>,
}
