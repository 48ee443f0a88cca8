//! What the whole counterpart knows, behind one lock: whatever happens, happens at one moment.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::faults::Faults;
use super::id::Id;
use super::journal::Journal;
use super::limits::Limits;
use super::rules::Rules;
use super::sessions::Gateway;
use super::world::World;

pub struct State {
    pub rules: Rules,
    pub world: World,
    pub gateway: Gateway,
    pub limits: Limits,
    pub faults: Faults,
    pub journal: Journal,
    /// When commands were created, by place.
    pub command_creates: BTreeMap<Option<Id>, Vec<Instant>>,
    /// The address of the gateway.
    pub gateway_url: String,
    /// The address that READY announces for RESUME.
    pub resume_url: String,
}

/// The state, and word of its changes.
pub struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

impl Shared {
    pub fn new(state: State) -> Self {
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Does something with the state, and wakes whoever waits for a change.
    pub fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let result = act(&mut self.lock());
        self.changed.notify_waiters();
        result
    }

    /// Looks at the state.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Waits until there is something.
    pub async fn until<T>(&self, mut look: impl FnMut(&State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let seen = look(&self.lock());
            match seen {
                Some(seen) => return seen,
                None => changed.await,
            }
        }
    }

    // A test that fails while it looks leaves the state as it is.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
