//! The whole state of the test double, behind one lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::faults::Faults;
use super::journal::Journal;
use super::limits::Limits;
use super::sessions::Gateway;
use super::{Rules, World, voice};

pub struct State {
    /// The voice servers. Their lock may be taken under this one, never the other way round.
    pub voice: Arc<voice::state::Shared>,
    pub rules: Rules,
    pub world: World,
    pub gateway: Gateway,
    pub limits: Limits,
    pub faults: Faults,
    pub journal: Journal,
    /// The files that people posted, by the last part of their paths.
    pub files: BTreeMap<String, StoredFile>,
    /// When commands were created.
    pub command_creates: Vec<Instant>,
    /// The URL of the gateway.
    pub gateway_url: String,
    /// The URL that READY announces for RESUME.
    pub resume_url: String,
}

/// What the file server answers.
#[derive(Clone, Debug)]
pub struct StoredFile {
    pub status: u16,
    /// Where it redirects to.
    pub location: Option<String>,
    pub bytes: Vec<u8>,
    /// The number of requests, and whether any had a token.
    pub asked: usize,
    pub had_token: bool,
}

/// The state, with notifications of its changes.
pub struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

impl Shared {
    pub fn new(state: State) -> Self {
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Changes the state, and wakes all tasks that wait for a change.
    pub fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let result = act(&mut self.state.lock());
        self.changed.notify_waiters();
        result
    }

    /// Reads the state.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    /// Waits until the closure finds something in the state.
    pub async fn until<T>(&self, mut look: impl FnMut(&State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let seen = look(&self.state.lock());
            match seen {
                Some(seen) => return seen,
                None => changed.await,
            }
        }
    }
}
