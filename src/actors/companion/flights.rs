//! A companion's calls in flight: the questions that are with the pool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::actors::messages::companion::Asking;
use crate::actors::messages::models::CallId;
use crate::actors::models::Pool;
use crate::domain::id::{ChannelId, Ticket};

/// The questions of a companion that are with the pool. Dropped with it, it cancels them, and their channels are told that they are lost.
pub(super) struct Flights {
    pool: Pool,
    numbers: u64,
    open: Arc<Mutex<Open>>,
}

type Open = HashMap<u64, Flight>;

struct Flight {
    asking: Asking,
    call: Option<CallId>,
}

/// A flight until the pool has its question. Dropped before that, it is lost.
pub(super) struct Departure {
    number: u64,
    open: Option<Arc<Mutex<Open>>>,
}

/// What ends a flight when its answer is there.
pub(super) struct Landing {
    number: u64,
    open: Weak<Mutex<Open>>,
}

impl Flights {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, numbers: 0, open: Arc::default() }
    }

    /// A question goes to the pool. One that its channel lost sight of may be in flight already: the first answer counts.
    pub(super) fn take_off(&mut self, asking: Asking) -> (Departure, Landing) {
        self.numbers += 1;
        let number = self.numbers;
        self.open().insert(number, Flight { asking, call: None });
        (Departure { number, open: Some(self.open.clone()) }, Landing { number, open: Arc::downgrade(&self.open) })
    }

    /// Nobody wants this answer any more.
    pub(super) fn cancel(&self, channel: &ChannelId, ticket: Ticket) {
        let is_meant = |flight: &Flight| flight.asking.ticket == ticket && flight.asking.channel_key.channel == *channel;
        let cancelled: Vec<Flight> = self.open().extract_if(|_, flight| is_meant(flight)).map(|(_, flight)| flight).collect();
        for flight in cancelled {
            self.call_off(&flight);
            flight.asking.arrival.send(Ok(()));
        }
    }

    fn call_off(&self, flight: &Flight) {
        if let Some(call) = flight.call {
            self.pool.cancel(call);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        locked(&self.open)
    }
}

impl Drop for Flights {
    fn drop(&mut self) {
        let lost = std::mem::take(&mut *self.open());
        for flight in lost.values() {
            self.call_off(flight);
        }
    }
}

impl Departure {
    /// The pool has the question. It may have answered by now.
    pub(super) fn called(mut self, call: CallId) {
        let Some(open) = self.open.take() else { return };
        if let Some(flight) = locked(&open).get_mut(&self.number) {
            flight.call = Some(call);
        }
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        let lost = self.open.take().and_then(|open| locked(&open).remove(&self.number));
        drop(lost);
    }
}

impl Landing {
    /// Ends the flight; false: it was cancelled, or lost with its companion.
    pub(super) fn land(&self) -> bool {
        let Some(open) = self.open.upgrade() else { return false };
        let landed = locked(&open).remove(&self.number);
        landed.map(|flight| flight.asking.arrival.send(Ok(()))).is_some()
    }
}

fn locked(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
