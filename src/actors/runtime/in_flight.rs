//! Records which event a channel is handling, so that its guild can find out why the channel died.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::actors::runtime::watchdog::at_message;
use crate::domain::id::Seq;

/// The event that a channel is handling. It outlives the channel's actor, so that an event that keeps killing it is found.
#[derive(Debug, Default)]
pub struct InFlight {
    event: AtomicU64,
    suspect: AtomicU64,
    is_restoring: AtomicBool,
    unreadable: Mutex<Option<String>>,
}

impl InFlight {
    /// Removes and returns the event in flight, if any, after a death. The event stays the suspect until the channel runs again.
    pub fn take_event(&self) -> Option<Seq> {
        let event = Some(Seq(self.event.swap(0, Ordering::AcqRel))).filter(|seq| *seq != Seq::NONE)?;
        self.suspect.store(event.0, Ordering::Release);
        Some(event)
    }

    /// The event during which the previous actor died, if it has not run again since.
    pub fn suspect(&self) -> Seq {
        Seq(self.suspect.load(Ordering::Acquire))
    }

    /// Marks this event as in flight.
    pub fn mark(&self, seq: Seq) {
        self.event.store(seq.0, Ordering::Release);
        at_message(seq);
    }

    pub fn clear(&self) {
        self.mark(Seq::NONE);
    }

    /// The channel begins to restore its conversation from its journal.
    pub fn begin_restore(&self) {
        self.is_restoring.store(true, Ordering::Release);
    }

    /// The channel is restored and runs again.
    pub fn end_restore(&self) {
        self.is_restoring.store(false, Ordering::Release);
        self.suspect.store(0, Ordering::Release);
    }

    /// Whether the previous actor died before it ran again.
    pub fn died_restoring(&self) -> bool {
        self.is_restoring.load(Ordering::Acquire)
    }

    /// The channel ends because its journal cannot be read.
    pub fn mark_unreadable(&self, why: String) {
        *self.unreadable.lock() = Some(why);
    }

    /// Why the previous actor could not read its journal, if it ended because of that.
    pub fn take_unreadable(&self) -> Option<String> {
        self.unreadable.lock().take()
    }
}
