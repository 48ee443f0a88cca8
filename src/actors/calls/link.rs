//! The connection that carries a whole call. It belongs to the call, so that an actor that dies does not interrupt it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::ports::platform_call::{CallConnection, Ended, PlatformCall};

/// See the module.
pub struct Link {
    connection: Arc<dyn CallConnection>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    task: Option<JoinHandle<()>>,
    /// When the newest run began.
    begun: Option<Instant>,
    /// How the last run ended, until somebody takes it. `None` within: it panicked.
    ended: Option<Option<Ended>>,
    is_over: bool,
}

impl Link {
    pub fn new(connection: Arc<dyn CallConnection>) -> Self {
        Self { connection, state: Mutex::default() }
    }

    /// Runs the connection, unless it runs, or ended and nobody has taken that yet. `report` is called when it has ended.
    pub fn run(self: &Arc<Self>, call: Arc<dyn PlatformCall>, report: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if state.is_over || state.ended.is_some() || state.task.is_some() {
            return;
        }
        state.begun = Some(Instant::now());
        let (connection, link) = (self.connection.clone(), Arc::downgrade(self));
        state.task = Some(tokio::spawn(async move {
            let ended = AssertUnwindSafe(connection.live(call)).catch_unwind().await.ok();
            let Some(link) = link.upgrade() else { return };
            let mut state = link.state.lock();
            (state.task, state.ended) = (None, Some(ended));
            drop(state);
            report();
        }));
    }

    /// How the last run ended, once. `None` within: it panicked.
    pub fn take_ended(&self) -> Option<Option<Ended>> {
        self.state.lock().ended.take()
    }

    /// How long ago the newest run began.
    pub fn lasted(&self) -> Duration {
        self.state.lock().begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// The connection is not needed any more.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        if let Some(task) = state.task.take() {
            task.abort();
        }
    }

    pub fn is_over(&self) -> bool {
        self.state.lock().is_over
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}
