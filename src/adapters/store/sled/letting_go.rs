//! Ends sled's work on a database, in bounded time: after a write that failed it may wait without end for what will never be on disk.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// So long sled may take to end its work where something failed.
pub(super) const FAILED_PATIENCE: Duration = Duration::from_secs(2);

/// Ends sled's work, if nobody else has the database. False if it has not ended by then: it ends with the process.
pub(super) fn let_go(db: sled::Db, patience: Duration) -> bool {
    let (ended, end) = mpsc::channel();
    let closing = thread::Builder::new().name("writer-close".into()).spawn(move || {
        drop(db);
        // Whoever waits may have had enough.
        let _ = ended.send(());
    });
    closing.is_ok() && end.recv_timeout(patience).is_ok()
}

/// Does something with a database, and lets go of it where that fails.
///
/// # Errors
/// Those of the work.
pub(super) fn attempt<T, E>(db: sled::Db, work: impl FnOnce(&sled::Db) -> Result<T, E>) -> Result<(sled::Db, T), E> {
    match work(&db) {
        Ok(done) => Ok((db, done)),
        Err(error) => {
            let_go(db, FAILED_PATIENCE);
            Err(error)
        }
    }
}
