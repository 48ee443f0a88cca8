//! The places for recordings that are recognised outside of a call.

use tokio::sync::{Semaphore, SemaphorePermit};

/// The most recordings that are read and recognised at a time. It also bounds their memory, and leaves services to the people in calls.
const MOST_AT_ONCE: usize = 2;

pub struct Places(Semaphore);

impl Default for Places {
    fn default() -> Self {
        Self(Semaphore::new(MOST_AT_ONCE))
    }
}

impl Places {
    /// Waits for a place. `None`: the server stops.
    pub async fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }
}
