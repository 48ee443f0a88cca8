//! Tasks and timers that end with their owner.

use tokio::task::{AbortHandle, JoinHandle};

/// A task or a timer, which is aborted when this is dropped.
pub struct OwnedTask(AbortHandle);

impl<T> From<JoinHandle<T>> for OwnedTask {
    fn from(task: JoinHandle<T>) -> Self {
        Self(task.abort_handle())
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
