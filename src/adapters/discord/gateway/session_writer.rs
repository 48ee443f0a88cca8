//! Stores the position of a session while its connection runs, and records the number of open receipts.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::ledger::Ledger;
use super::session::{Session, SessionStore};
use crate::telemetry::instruments::{Instruments, NONE};

/// The task that stores up to which event a session is accepted. It is aborted when this is dropped.
pub struct SessionWriter(JoinHandle<()>);

impl SessionWriter {
    /// Starts the task. It writes a session with accepted events at most once per `every`.
    pub fn new(
        store: SessionStore,
        mut session: watch::Receiver<Option<Session>>,
        ledger: Ledger,
        every: Duration,
        instruments: &Instruments,
    ) -> Self {
        let mut share = instruments.discord_receipts_waiting.share(NONE);
        let mut entries = ledger.watch();
        Self(tokio::spawn(async move {
            let mut written = session.borrow().clone();
            loop {
                let ended = tokio::select! {
                    changed = entries.changed() => changed.is_err(),
                    changed = session.changed() => changed.is_err(),
                };
                if ended {
                    return;
                }
                share.set(entries.borrow_and_update().waiting());
                let accepted = ledger.accepted();
                let current = session.borrow_and_update().clone().map(|session| Session { accepted, ..session });
                if current == written {
                    continue;
                }
                // A session without accepted events is never resumed. It is written as soon as its READY is accepted.
                let can_be_resumed = current.as_ref().is_some_and(|session| session.accepted > 0);
                match store.save(current.as_ref()).await {
                    Ok(()) => written = current,
                    // The next change retries. After a restart before that, Discord repeats events that were already handled.
                    Err(error) => tracing::warn!(platform = "discord", %error, "a session cannot be stored"),
                }
                if can_be_resumed {
                    sleep(every).await;
                }
            }
        }))
    }

    /// Aborts the task, and waits until no write is in progress.
    pub async fn stop(mut self) {
        self.0.abort();
        // The task was aborted or has ended.
        let _ = (&mut self.0).await;
    }
}

impl Drop for SessionWriter {
    fn drop(&mut self) {
        self.0.abort();
    }
}
