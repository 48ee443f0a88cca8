//! A companion's calls in flight: the questions that are with the pool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::actors::messages::companion::DecisionRequest;
use crate::actors::messages::models::CallId;
use crate::actors::models::Pool;
use crate::domain::id::{ChannelId, Ticket};

/// The questions of a companion that are with the pool. Dropped with it, it cancels them, and their channels are told that they are lost.
pub(super) struct PendingCalls {
    pool: Pool,
    numbers: u64,
    open: Arc<Mutex<Open>>,
}

type Open = HashMap<u64, PendingCall>;

struct PendingCall {
    asking: DecisionRequest,
    call: Option<CallId>,
}

/// A flight until the pool has its question. Dropped before that, it is lost.
pub(super) struct StartingCall {
    number: u64,
    open: Option<Arc<Mutex<Open>>>,
}

/// What ends a flight when its answer is there.
pub(super) struct CallEnd {
    number: u64,
    open: Weak<Mutex<Open>>,
}

impl PendingCalls {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, numbers: 0, open: Arc::default() }
    }

    /// A question goes to the pool. One that its channel lost sight of may be in flight already: the first answer counts.
    pub(super) fn start(&mut self, asking: DecisionRequest) -> (StartingCall, CallEnd) {
        self.numbers += 1;
        let number = self.numbers;
        self.open().insert(number, PendingCall { asking, call: None });
        (StartingCall { number, open: Some(self.open.clone()) }, CallEnd { number, open: Arc::downgrade(&self.open) })
    }

    /// Nobody wants this answer any more.
    pub(super) fn cancel(&self, channel: &ChannelId, ticket: Ticket) {
        let is_meant = |call: &PendingCall| call.asking.ticket == ticket && call.asking.channel_key.channel == *channel;
        let cancelled: Vec<PendingCall> = self.open().extract_if(|_, call| is_meant(call)).map(|(_, call)| call).collect();
        for call in cancelled {
            self.call_off(&call);
            call.asking.arrival.send(Ok(()));
        }
    }

    fn call_off(&self, call: &PendingCall) {
        if let Some(call) = call.call {
            self.pool.cancel(call);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        locked(&self.open)
    }
}

impl Drop for PendingCalls {
    fn drop(&mut self) {
        let lost = std::mem::take(&mut *self.open());
        for call in lost.values() {
            self.call_off(call);
        }
    }
}

impl StartingCall {
    /// The pool has the question. It may have answered by now.
    pub(super) fn called(mut self, call: CallId) {
        let Some(open) = self.open.take() else { return };
        if let Some(pending) = locked(&open).get_mut(&self.number) {
            pending.call = Some(call);
        }
    }
}

impl Drop for StartingCall {
    fn drop(&mut self) {
        let lost = self.open.take().and_then(|open| locked(&open).remove(&self.number));
        drop(lost);
    }
}

impl CallEnd {
    /// Ends the flight; false: it was cancelled, or lost with its companion.
    pub(super) fn finish(&self) -> bool {
        let Some(open) = self.open.upgrade() else { return false };
        let finished = locked(&open).remove(&self.number);
        finished.map(|call| call.asking.arrival.send(Ok(()))).is_some()
    }
}

fn locked(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
