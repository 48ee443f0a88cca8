//! One call to a model. It reports its end to the pool, even if it panics.

use ractor::ActorRef;
use tracing::Instrument;

use crate::actors::messages::models::{CallId, Job, PoolMessage};
use crate::actors::runtime::owned_task::OwnedTask;
use crate::telemetry::instruments::Instruments;

/// Starts a call, which is cancelled when the returned value is dropped. The pool receives the result as a message:
///
/// * `Ended`: the call ended.
/// * `Changed`: the call failed, but the next prompt may be accepted.
/// * `Panicked`: the call panicked.
/// * `NoPrompt`: building the prompt panicked, so no call was made.
/// * `NotNeeded`: the prompt has no input any more, so no call was made.
pub(super) fn start(pool: ActorRef<PoolMessage>, call: CallId, job: Job, instruments: Instruments) -> OwnedTask {
    let mut report = EndReport { pool, call, on_drop: Some(PoolMessage::NoPrompt) };
    let span = job.span.clone();
    let work = async move {
        let Some(request) = job.request.build().await else {
            report.end(PoolMessage::NotNeeded(call));
            return;
        };
        report.on_drop = Some(PoolMessage::Panicked);
        instruments.pool_calls.add(1, [request.role.as_str()]);
        let result = job.model.ask(&request, job.drafts.as_ref()).await;
        report.end(match &result {
            Err(failure) if job.request.changes_after(failure) => PoolMessage::Changed(call),
            _ => PoolMessage::Ended(call, result),
        });
    };
    tokio::spawn(work.instrument(span)).into()
}

/// Reports the end of the call to the pool, at the latest when it is dropped. The pool ignores the report of a call that it ended
/// itself.
struct EndReport {
    pool: ActorRef<PoolMessage>,
    call: CallId,
    /// The report to send on drop.
    on_drop: Option<fn(CallId) -> PoolMessage>,
}

impl EndReport {
    fn end(mut self, message: PoolMessage) {
        self.on_drop = None;
        self.send(message);
    }

    fn send(&self, message: PoolMessage) {
        // A pool that has stopped has answered its questions by dropping them.
        drop(self.pool.cast(message));
    }
}

impl Drop for EndReport {
    fn drop(&mut self) {
        if let Some(on_drop) = self.on_drop {
            self.send(on_drop(self.call));
        }
    }
}
