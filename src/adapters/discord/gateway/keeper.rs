//! Keeps a session's note up to date while its connection is lived, and tells how much is under way.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::ledger::Ledger;
use super::session::{Session, Shelf};
use crate::telemetry::instruments::{Instruments, NONE};

/// Writes down how far a session is accepted. Dropped, it stops.
pub struct Keeper(JoinHandle<()>);

impl Keeper {
    /// Keeps the session on the shelf, not more often than in this time.
    pub fn new(
        shelf: Shelf,
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
                let now = session.borrow_and_update().clone().map(|session| Session { accepted, ..session });
                if now == written {
                    continue;
                }
                // Of one of which nothing is accepted nobody goes on: it is written again as soon as its READY is.
                let is_of_use = now.as_ref().is_some_and(|session| session.accepted > 0);
                match shelf.put(now.as_ref()).await {
                    Ok(()) => written = now,
                    // It is tried again at the next change; until then a restart hears again what it heard.
                    Err(error) => tracing::warn!(platform = "discord", %error, "a session is not kept"),
                }
                if is_of_use {
                    sleep(every).await;
                }
            }
        }))
    }

    /// Stops, and waits until nothing is written any more.
    pub async fn stop(mut self) {
        self.0.abort();
        // It was aborted, or it is over.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}
