//! A companion's calls in flight: its questions in the pool.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use crate::actors::messages::companion::DecisionRequest;
use crate::actors::messages::models::CallId;
use crate::actors::models::Pool;
use crate::domain::id::{ChannelId, Ticket};

/// The questions of a companion in the pool. When this is dropped with the companion, it cancels them, and their channels are notified.
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

/// A call until the pool has its question. If it is dropped before that, the question is lost.
pub(super) struct StartingCall {
    number: u64,
    open: Option<Arc<Mutex<Open>>>,
}

/// Ends a call when its answer has arrived.
#[derive(Clone)]
pub(super) struct CallEnd {
    number: u64,
    open: Weak<Mutex<Open>>,
}

impl PendingCalls {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, numbers: 0, open: Arc::default() }
    }

    /// Adds a question that is about to go to the pool. The same question may be in flight already, if its channel asks again. Then the first
    /// answer counts.
    pub(super) fn start(&mut self, asking: DecisionRequest) -> (StartingCall, CallEnd) {
        self.numbers += 1;
        let number = self.numbers;
        self.open().insert(number, PendingCall { asking, call: None });
        (StartingCall { number, open: Some(self.open.clone()) }, CallEnd { number, open: Arc::downgrade(&self.open) })
    }

    /// Cancels the calls for this question.
    pub(super) fn cancel(&self, channel: &ChannelId, ticket: Ticket) {
        let matches = |call: &PendingCall| call.asking.ticket == ticket && call.asking.channel_key.channel == *channel;
        let cancelled: Vec<PendingCall> = self.open().extract_if(|_, call| matches(call)).map(|(_, call)| call).collect();
        for call in cancelled {
            self.cancel_in_pool(&call);
            call.asking.arrival.send(Ok(()));
        }
    }

    fn cancel_in_pool(&self, call: &PendingCall) {
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
            self.cancel_in_pool(call);
        }
    }
}

impl StartingCall {
    /// Notes the call that the pool assigned. The pool may have answered by now.
    pub(super) fn called(mut self, call: CallId) {
        let Some(open) = self.open.take() else { return };
        if let Some(pending) = locked(&open).get_mut(&self.number) {
            // The question may have been asked again by now.
            pending.call.get_or_insert(call);
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
    /// Whether the answer is still wanted.
    pub(super) fn is_open(&self) -> bool {
        self.open.upgrade().is_some_and(|open| locked(&open).contains_key(&self.number))
    }

    /// The pool has the question once more.
    pub(super) fn repeated(&self, call: CallId) {
        if let Some(open) = self.open.upgrade()
            && let Some(pending) = locked(&open).get_mut(&self.number)
        {
            pending.call = Some(call);
        }
    }

    /// Ends the call. False: it was cancelled, or lost with its companion.
    pub(super) fn finish(&self) -> bool {
        let Some(open) = self.open.upgrade() else { return false };
        let finished = locked(&open).remove(&self.number);
        finished.map(|call| call.asking.arrival.send(Ok(()))).is_some()
    }
}

fn locked(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock()
}
