//! Messages to a companion.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::channel::ChannelMessage;
use super::reply::{Dropped, Reply};
use crate::domain::id::{ChannelId, Seq, Ticket};
use crate::domain::priority::Priority;
use crate::domain::prompt::{PromptInput, StatementInput};
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

/// What a statement is made from.
#[derive(Clone)]
pub struct Statement {
    /// `recent` holds the most recent messages, until the history is read from the journal.
    pub input: StatementInput,
    /// Where `recent` is read from: everything since the newest `clear`.
    pub history: HistoryRange,
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
    pub input: Source<PromptInput>,
    /// Sends the result to the channel.
    pub tell: Tell,
    /// Answered once the question has safely reached the pool. Dropped: it was lost on its way there.
    pub arrival: Reply<(), Dropped>,
}
