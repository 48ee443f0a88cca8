//! What a companion is asked.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::channel::ChannelMessage;
use super::reply::{Dropped, Reply};
use crate::domain::closing::Stage;
use crate::domain::id::{ChannelId, Ticket};
use crate::domain::message::{Message, Modality};
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::Request;

/// What a companion is asked.
pub enum CompanionMessage {
    /// Decide whether to speak.
    Evaluate(Box<Evaluate>),
    /// Nobody wants this answer any more.
    Cancel {
        /// Who asked.
        channel: ChannelId,
        /// The question's number.
        ticket: Ticket,
    },
    /// Word what is to be said.
    Word(Box<Speak>),
}

/// A decision to be made.
pub struct Evaluate {
    /// Who asks, under which number.
    pub asking: DecisionRequest,
    /// What it is made from.
    pub input: DecisionInput,
}

/// Everything that a decision is made from.
pub struct DecisionInput {
    /// Why.
    pub trigger: Trigger,
    /// Whether it votes in a round with its answer.
    pub is_vote: bool,
    /// Typed or spoken.
    pub modality: Modality,
    /// Messages since it spoke last.
    pub message_count: u64,
    /// Who said what triggered it.
    pub speaker: Option<Arc<str>>,
    /// Whether the last messages were judged to repeat each other.
    pub is_repetitive: bool,
    /// The rolling summary.
    pub summary: Option<Arc<str>>,
    /// The most recent settled turns, oldest first.
    pub recent: Vec<Arc<Message>>,
    /// What it is about, and what the companion said itself meanwhile, oldest first.
    pub buffer: Vec<Arc<Message>>,
}

/// A statement to be worded.
pub struct Speak {
    /// Where.
    pub channel_key: ChannelKey,
    /// What it is made from.
    pub statement: Arc<Statement>,
    /// Where the words of the request go, once the turn to ask has come. Dropped: there are none.
    pub words: oneshot::Sender<Words>,
}

/// Everything that a statement is made from.
pub struct Statement {
    /// What it answers to.
    pub trigger: Trigger,
    /// How near its end the speaker sees the conversation.
    pub closing: Stage,
    /// Typed or spoken.
    pub modality: Modality,
    /// Why the companion decided to speak, in its own words.
    pub why: Option<Arc<str>>,
    /// Messages since it spoke last, at the decision.
    pub message_count: u64,
    /// Who said the newest of what it answers.
    pub speaker: Option<Arc<str>>,
    /// Whether the last messages were judged to repeat each other.
    pub is_repetitive: bool,
    /// The rolling summary.
    pub summary: Option<Arc<str>>,
    /// The most recent turns before the snapshot, oldest first.
    pub recent: Vec<Arc<Message>>,
    /// What it answers, and what the companion said itself meanwhile, oldest first.
    pub snapshot: Vec<Arc<Message>>,
}

/// How a companion asks for its statement.
pub struct Words {
    /// The name that it goes by there.
    pub name: Arc<str>,
    /// Words the request. It may panic, and take long: a prompt is long.
    pub request: Box<dyn FnOnce() -> Request + Send>,
}

/// Tells a channel, wherever it is then.
pub type Tell = Arc<dyn Fn(ChannelMessage) + Send + Sync>;

/// A question of a channel on its way to the pool.
pub struct DecisionRequest {
    /// Where.
    pub channel_key: ChannelKey,
    /// The question's number.
    pub ticket: Ticket,
    /// Tells the channel what comes of it.
    pub tell: Tell,
    /// Answered once the question needs no other way to the pool; dropped, it was lost on its way there.
    pub arrival: Reply<(), Dropped>,
}
