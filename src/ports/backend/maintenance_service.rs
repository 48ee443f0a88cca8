//! Tasks of operators: quarantine, backups, the deletion of a person's data, readiness.

use async_trait::async_trait;

use super::keeping::{BackedUp, Forget, Forgotten, Quarantine, Readiness};
use super::refused::Refused;

/// Keeps the server and its data in order.
#[async_trait]
pub trait MaintenanceService: Send + Sync + 'static {
    /// Guilds in quarantine, suspended channels and dead letters.
    async fn quarantine(&self) -> Result<Quarantine, Refused>;

    /// Releases a guild from quarantine, named by its id, or retries a suspended channel, named by its entry's id.
    async fn release(&self, entry: &str) -> Result<(), Refused>;

    /// Retries a dead letter, named by its entry's id.
    async fn retry(&self, entry: &str) -> Result<(), Refused>;

    /// Drops a dead letter, named by its entry's id.
    async fn drop_entry(&self, entry: &str) -> Result<(), Refused>;

    /// Writes a consistent copy of the store to a path on the server's machine.
    async fn backup(&self, to: &str) -> Result<BackedUp, Refused>;

    /// Like [`backup`](Self::backup), but the store chooses the file, for a process on the server's machine that reads it. Dropping the second part
    /// of the result, or the future, deletes the file.
    async fn copy_for(&self, process: u32) -> Result<(BackedUp, Box<dyn Send + Sync>), Refused>;

    /// The amount of data that [`forget`](Self::forget) would delete now.
    async fn forgettable(&self, forget: &Forget) -> Result<Forgotten, Refused>;

    /// Forgets a person in a guild: deletes their messages, and the decisions and summaries that came from them.
    async fn forget(&self, forget: Forget) -> Result<Forgotten, Refused>;

    /// Whether messages can be accepted, and the reason if not.
    async fn readiness(&self) -> Readiness;
}
