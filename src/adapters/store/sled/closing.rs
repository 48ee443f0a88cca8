//! Closes a sled database in bounded time. After a failed write, sled may wait forever for data that will never be on disk.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The time limit for closing a database after a failure.
pub(super) const FAILED_TIMEOUT: Duration = Duration::from_secs(2);

/// Closes a database that has no other users. False: closing takes longer than the timeout, and ends with the process at the
/// latest.
pub(super) fn close_within(db: sled::Db, timeout: Duration) -> bool {
    let (ended, end) = mpsc::channel();
    let closing = thread::Builder::new().name("writer-close".into()).spawn(move || {
        drop(db);
        // The receiver may have timed out.
        let _ = ended.send(());
    });
    closing.is_ok() && end.recv_timeout(timeout).is_ok()
}

/// Runs `work` on a database, and closes the database if the work fails.
///
/// # Errors
/// Returns the errors of `work`.
pub(super) fn attempt<T, E>(db: sled::Db, work: impl FnOnce(&sled::Db) -> Result<T, E>) -> Result<(sled::Db, T), E> {
    match work(&db) {
        Ok(done) => Ok((db, done)),
        Err(error) => {
            close_within(db, FAILED_TIMEOUT);
            Err(error)
        }
    }
}
