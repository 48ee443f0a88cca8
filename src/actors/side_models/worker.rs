//! One call to a model: tells the pool how it ended, whatever happens.

use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::Instrument;

use super::PoolMessage;
use super::queue::CallId;
use super::wording::Wording;
use crate::ports::language_model::{Answer, Draft, LanguageModel, NoAnswer};

/// What every try of one question needs.
#[derive(Clone)]
pub(super) struct Job {
    pub model: Arc<dyn LanguageModel>,
    pub request: Arc<Wording>,
    pub drafts: Option<mpsc::UnboundedSender<Draft>>,
    pub span: tracing::Span,
}

/// A call under way; dropping it ends the call.
pub(super) struct Worker(AbortHandle);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Worker {
    /// Starts a call. Its end comes to the pool as a message: `Ended`, or `Panicked` if it never returned.
    pub(super) fn start(pool: ActorRef<PoolMessage>, call: CallId, job: Job) -> Self {
        let ending = Ending { pool, call, owed: true };
        let span = job.span.clone();
        let work = async move {
            let result = job.model.ask(job.request.in_words(), job.drafts.as_ref()).await;
            ending.tell(result);
        };
        Self(tokio::spawn(work.instrument(span)).abort_handle())
    }
}

/// Owes the pool a word about how the call ended. Of a call that was ended by the pool itself it knows, and does not listen.
struct Ending {
    pool: ActorRef<PoolMessage>,
    call: CallId,
    owed: bool,
}

impl Ending {
    fn tell(mut self, result: Result<Answer, NoAnswer>) {
        self.owed = false;
        self.send(PoolMessage::Ended(self.call, result));
    }

    fn send(&self, message: PoolMessage) {
        // A pool that is gone has answered its questions by dropping them.
        drop(self.pool.cast(message));
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.owed {
            self.send(PoolMessage::Panicked(self.call));
        }
    }
}
