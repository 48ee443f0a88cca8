//! The message to a companion, and the input of prompts.

use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::channel::ChannelMessage;
use super::models::{CallFacts, CallId, Outcome};
use super::reply::{Dropped, Reply};
use crate::domain::conversation::ReplyCalls;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::priority::Priority;
use crate::domain::prompt::{PromptInput, StatementInput};
use crate::domain::raw_answer::Speakers;
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{Draft, LazyRequest};

/// Reads prompt input from a channel at the time of the call. `None`: the input no longer exists, or the channel is not running.
pub type Source<T> = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<T>> + Send>> + Send + Sync>;

/// The input of a statement.
#[derive(Clone)]
pub struct Statement {
    /// `recent` holds the most recent messages, until the history is read from the journal.
    pub input: StatementInput,
    /// The range from which `recent` is read: everything since the newest `clear` or the beginning of a new conversation.
    pub history: HistoryRange,
    /// The newest `clear`: the summary and the notes of this prompt are from after it.
    pub cleared: Seq,
    /// The calls of tools of the reply. `None`: it can make none.
    pub calls: Option<ReplyCalls>,
}

impl Statement {
    /// Removes messages up to an event, which a guest in the room must not know.
    pub fn hidden_upto(mut self, hidden: Seq) -> Self {
        self.input.input.hide_upto(hidden, self.cleared);
        self.history.after = self.history.after.max(hidden);
        self.cleared = self.cleared.max(hidden);
        if self.input.input.summary.is_none() {
            self.input.summary_upto = self.input.summary_upto.max(hidden);
        }
        self
    }
}

/// A range of a journal: the events after one number and before another.
#[derive(Clone, Debug)]
pub struct HistoryRange {
    pub after: Seq,
    pub before: Seq,
}

/// A statement whose call is already in progress, because the model decides and speaks in one call.
pub struct Begun {
    pub request: Arc<LazyRequest>,
    /// The people and companions whose names end the statement.
    pub speakers: Arc<Mutex<Speakers>>,
    /// The text received so far, and the stream of the rest.
    pub raw: String,
    pub pieces: UnboundedReceiver<Draft>,
    /// The call's metadata, without its token counts.
    pub facts: CallFacts,
    /// Dropping it cancels the call.
    pub outcome: Pin<Box<dyn Future<Output = Outcome> + Send + Sync>>,
}

/// Sends a message to a channel. The channel's address is resolved at the time of the call.
pub type Tell = Arc<dyn Fn(ChannelMessage) + Send + Sync>;

/// Asks a companion whether to speak. With several companions in `asked`, one call asks all of them, and the first one receives
/// this message. It is the only message type of a companion.
pub struct DecisionRequest {
    pub channel_key: ChannelKey,
    /// The companions that are asked, in the order of their ids, with the tickets of their questions.
    pub asked: Vec<(CompanionId, Ticket)>,
    pub priority: Priority,
    /// When the pool fails the question with a timeout.
    pub deadline: Instant,
    /// Whether this repeats a question whose answer could not be parsed.
    pub is_repeat: bool,
    /// Everything that the prompt is built from, for each companion whose question is still open.
    pub input: Source<Vec<(CompanionId, PromptInput)>>,
    /// Sends the result to the channel.
    pub tell: Tell,
    /// Answered once the question is in the pool. Dropped if the question is lost before that.
    pub arrival: Reply<CallId, Dropped>,
}
