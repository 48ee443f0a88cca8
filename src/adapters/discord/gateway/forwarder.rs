//! Forwards events from a connection to its intake, so that the connection can send heartbeats while the intake is busy.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::super::dispatch::{Dispatch, Intake};
use super::ledger::Ledger;

/// The limit of queued events.
const MOST_EVENTS: usize = 1_024;
/// The limit of queued text, in KiB. A longer event is queued alone.
const MOST_KIB: u32 = 64 * 1_024;

/// The queue from one connection to its intake. Dropping it reports the queued events as lost.
pub struct Forwarder {
    events: mpsc::Sender<(Dispatch, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
    end: oneshot::Sender<()>,
    task: ForwardTask,
}

/// The task that forwards events. It is aborted when this is dropped.
struct ForwardTask(JoinHandle<()>);

impl Drop for ForwardTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Forwarder {
    pub fn new(mut intake: Box<dyn Intake>) -> Self {
        let (events, mut queued) = mpsc::channel::<(Dispatch, OwnedSemaphorePermit)>(MOST_EVENTS);
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(async move {
            while let Some((dispatch, _room)) = queued.recv().await {
                intake.handle_dispatch(dispatch).await;
            }
            // The intake may have work in progress. It is dropped only after `finish` has waited for that work.
            let _ = ended.await;
            drop(intake);
        });
        Self { events, room: Arc::new(Semaphore::new(MOST_KIB as usize)), end, task: ForwardTask(task) }
    }

    /// Queues an event. Waits while the queue is full. Returns false if the task has ended.
    pub async fn forward(&self, dispatch: Dispatch) -> bool {
        let kib = u32::try_from(dispatch.data.get().len() / 1_024).unwrap_or(MOST_KIB).clamp(1, MOST_KIB);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(kib).await else { return false };
        self.events.send((dispatch, room)).await.is_ok()
    }

    /// Waits up to `within` for open receipts. If `keeps_running`, queued events still reach the intake; otherwise they are lost. Returns false if
    /// some receipts are still open.
    pub async fn finish(self, ledger: &Ledger, within: Duration, keeps_running: bool) -> bool {
        let Self { events, end, task, .. } = self;
        drop(events);
        let task = keeps_running.then_some(task);
        let mut entries = ledger.watch();
        let result = timeout_at(Instant::now() + within, entries.wait_for(|entries| entries.waiting() == 0)).await;
        let _ = end.send(());
        drop(task);
        result.is_ok()
    }
}
