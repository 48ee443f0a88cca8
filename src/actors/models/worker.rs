//! One call to a model: tells the pool how it ended, whatever happens.

use ractor::ActorRef;
use tokio::task::AbortHandle;
use tracing::Instrument;

use crate::actors::messages::models::{CallId, Job, PoolMessage};
use crate::ports::language_model::{Answer, NoAnswer};
use crate::telemetry::instruments::Instruments;

/// A call under way; dropping it ends the call.
pub(super) struct Worker(AbortHandle);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Worker {
    /// Starts a call. Its end comes to the pool as a message: `Ended`; `Panicked`, if it never returned; or `NoPrompt`, if it was never made.
    pub(super) fn start(pool: ActorRef<PoolMessage>, call: CallId, job: Job, instruments: Instruments) -> Self {
        let mut ending = Ending { pool, call, owed: Some(PoolMessage::NoPrompt) };
        let span = job.span.clone();
        let work = async move {
            let request = job.request.build();
            ending.owed = Some(PoolMessage::Panicked);
            instruments.pool_calls.add(1, [request.role.as_str()]);
            let result = job.model.ask(request, job.drafts.as_ref()).await;
            ending.tell(result);
        };
        Self(tokio::spawn(work.instrument(span)).abort_handle())
    }
}

/// Owes the pool a word about how the call ended. Of a call that was ended by the pool itself it knows, and does not listen.
struct Ending {
    pool: ActorRef<PoolMessage>,
    call: CallId,
    /// What it is, if nothing more comes.
    owed: Option<fn(CallId) -> PoolMessage>,
}

impl Ending {
    fn tell(mut self, result: Result<Answer, NoAnswer>) {
        self.owed = None;
        self.send(PoolMessage::Ended(self.call, result));
    }

    fn send(&self, message: PoolMessage) {
        // A pool that is gone has answered its questions by dropping them.
        drop(self.pool.cast(message));
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(owed) = self.owed {
            self.send(owed(self.call));
        }
    }
}
