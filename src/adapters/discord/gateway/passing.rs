//! Carries events from a connection to its intake, so that the connection goes on beating its heart while the intake waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::super::dispatch::{Dispatch, Intake};
use super::ledger::Ledger;

/// So many events wait at most.
const MOST_EVENTS: usize = 1_024;
/// So much text waits at most, in KiB; a longer event waits alone.
const MOST_KIB: u32 = 64 * 1_024;

/// The way from one connection to its intake. Dropped, what is on it is lost, and told so.
pub struct Passing {
    events: mpsc::Sender<(Dispatch, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
    end: oneshot::Sender<()>,
    carrier: Carrier,
}

/// What carries the events. Dropped, it stops.
struct Carrier(JoinHandle<()>);

impl Drop for Carrier {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Passing {
    /// A way to this intake.
    pub fn new(mut intake: Box<dyn Intake>) -> Self {
        let (events, mut arriving) = mpsc::channel::<(Dispatch, OwnedSemaphorePermit)>(MOST_EVENTS);
        let (end, ended) = oneshot::channel();
        let carrier = tokio::spawn(async move {
            while let Some((dispatch, _room)) = arriving.recv().await {
                intake.take(dispatch).await;
            }
            // Whoever takes in may have something under way: it is let go when that is waited for.
            let _ = ended.await;
            drop(intake);
        });
        Self { events, room: Arc::new(Semaphore::new(MOST_KIB as usize)), end, carrier: Carrier(carrier) }
    }

    /// Puts an event on its way. Waits while there is no room. False: nobody carries any more.
    pub async fn put(&self, dispatch: Dispatch) -> bool {
        let kib = u32::try_from(dispatch.data.get().len() / 1_024).unwrap_or(MOST_KIB).clamp(1, MOST_KIB);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(kib).await else { return false };
        self.events.send((dispatch, room)).await.is_ok()
    }

    /// Waits for the receipts of what is under way, as long as that may take. What is not with the intake yet is carried there, or else
    /// lost. False: some receipts did not come.
    pub async fn finish(self, ledger: &Ledger, within: Duration, carries_on: bool) -> bool {
        let Self { events, end, carrier, .. } = self;
        drop(events);
        let carrier = carries_on.then_some(carrier);
        let mut entries = ledger.watch();
        let settled = timeout_at(Instant::now() + within, entries.wait_for(|entries| entries.waiting() == 0)).await;
        let _ = end.send(());
        drop(carrier);
        settled.is_ok()
    }
}
