//! The connection that carries a whole call. The call owns it, so that it survives the death of an actor.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::ports::platform_call::{CallConnection, Ended, PlatformCall};

pub struct Link {
    state: Mutex<State>,
}

struct State {
    connection: Arc<dyn CallConnection>,
    /// The connection to run if the current one finds that the call is over. It is set when the call was begun again meanwhile.
    next: Option<Arc<dyn CallConnection>>,
    task: Option<JoinHandle<()>>,
    begun: Option<Instant>,
    /// How the last run ended, until it is taken. The inner `None` means that it panicked.
    ended: Option<Option<Ended>>,
    is_over: bool,
}

impl Link {
    pub fn new(connection: Arc<dyn CallConnection>) -> Self {
        Self { state: Mutex::new(State { connection, next: None, task: None, begun: None, ended: None, is_over: false }) }
    }

    pub fn connection(&self) -> Arc<dyn CallConnection> {
        self.state.lock().connection.clone()
    }

    /// Stores a connection to run if the current one ends with [`Ended::Over`]. Returns false if the call is over: the caller needs a new link.
    pub fn set_replacement(&self, connection: Arc<dyn CallConnection>) -> bool {
        let mut state = self.state.lock();
        state.next = Some(connection);
        !state.is_over
    }

    /// Starts the connection. Does nothing if it runs, if the outcome of its last run was not taken yet, or if the call is over. Calls `report` when
    /// the connection has ended.
    pub fn run(self: &Arc<Self>, call: Arc<dyn PlatformCall>, report: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if state.is_over || state.ended.is_some() || state.task.is_some() {
            return;
        }
        state.begun = Some(Instant::now());
        let (connection, link) = (state.connection.clone(), Arc::downgrade(self));
        state.task = Some(tokio::spawn(async move {
            let ended = AssertUnwindSafe(connection.live(call)).catch_unwind().await.ok();
            let Some(link) = link.upgrade() else { return };
            let mut state = link.state.lock();
            (state.task, state.ended) = (None, Some(ended));
            drop(state);
            report();
        }));
    }

    /// Takes the outcome of the last run. The inner `None` means that it panicked.
    pub fn take_ended(&self) -> Option<Option<Ended>> {
        self.state.lock().ended.take()
    }

    pub fn lasted(&self) -> Duration {
        self.state.lock().begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// Handles the end of the call that the connection found. Returns false if the call was begun again meanwhile, so that another connection must be
    /// run.
    pub fn finish(&self) -> bool {
        let mut state = self.state.lock();
        match state.next.take() {
            Some(next) => state.connection = next,
            None => state.is_over = true,
        }
        state.is_over
    }

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

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::mpsc;

    use super::*;
    use crate::domain::message::Author;
    use crate::ports::backend::Refused;
    use crate::ports::call_room::{Line, Listener};

    /// A connection that finds at once that the call is over.
    struct Brief;

    #[async_trait]
    impl CallConnection for Brief {
        async fn live(&self, _: Arc<dyn PlatformCall>) -> Ended {
            Ended::Over
        }
    }

    struct Nobody;

    #[async_trait]
    impl PlatformCall for Nobody {
        async fn enter(&self, _: Author) -> Result<Arc<dyn Line>, Refused> {
            Err(Refused::broken(String::new()))
        }

        fn attach(&self, _: Arc<dyn Listener>) -> Arc<dyn Line> {
            unreachable!("nothing is played")
        }
    }

    #[tokio::test]
    async fn a_call_that_is_begun_again_while_its_connection_ends_goes_on() {
        let (link, (ended, mut ends)) = (Arc::new(Link::new(Arc::new(Brief))), mpsc::unbounded_channel());
        let run = || {
            let ended = ended.clone();
            link.run(Arc::new(Nobody), move || {
                let _ = ended.send(());
            });
        };

        run();
        ends.recv().await.unwrap();
        assert!(link.set_replacement(Arc::new(Brief)));
        assert_eq!(link.take_ended(), Some(Some(Ended::Over)));
        assert!(!link.finish(), "the other one is to be run");
        run();
        ends.recv().await.unwrap();
        link.take_ended();
        assert!(link.finish());
        assert!(!link.set_replacement(Arc::new(Brief)), "it needs another link");
    }
}
