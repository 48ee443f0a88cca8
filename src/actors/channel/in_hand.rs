//! What a channel is at, for whoever looks at why it died.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::actors::watchdog::at_message;
use crate::domain::id::Seq;

/// The event that a channel is handling, so that one that kills it again and again is found. It outlives the channel.
#[derive(Debug, Default)]
pub struct InHand {
    event: AtomicU64,
    is_resuming: AtomicBool,
}

impl InHand {
    /// The event in hand, if there is one; and nothing is from now on.
    pub fn take(&self) -> Option<Seq> {
        Some(Seq(self.event.swap(0, Ordering::AcqRel))).filter(|seq| *seq != Seq::NONE)
    }

    pub(super) fn hold(&self, seq: Seq) {
        self.event.store(seq.0, Ordering::Release);
        at_message(seq);
    }

    pub(super) fn lay_down(&self) {
        self.hold(Seq::NONE);
    }

    /// It goes on from its record, which any message that is still open may have a part in.
    pub(super) fn resume(&self) {
        self.is_resuming.store(true, Ordering::Release);
    }

    pub(super) fn is_resumed(&self) {
        self.is_resuming.store(false, Ordering::Release);
    }

    /// Whoever had this before died while it went on from its record.
    pub(super) fn died_resuming(&self) -> bool {
        self.is_resuming.load(Ordering::Acquire)
    }
}
