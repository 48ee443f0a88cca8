//! Marks what a channel is handling, so that its guild can find out why it died.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::actors::runtime::watchdog::at_message;
use crate::domain::id::{ChannelId, Seq};

/// Channels that hung before this start of the server on an unknown message. Cheap to clone; all clones share their state.
#[derive(Clone, Debug, Default)]
pub struct RecentHangs(Arc<Mutex<Hung>>);

#[derive(Debug, Default)]
struct Hung {
    channels: BTreeSet<ChannelId>,
    prompts: BTreeSet<ChannelId>,
}

impl RecentHangs {
    /// The channel itself hung.
    pub fn note(&self, channel: ChannelId) {
        self.0.lock().channels.insert(channel);
    }

    /// A companion or a reply hung while it built a prompt from the channel's messages.
    pub fn note_prompt_hang(&self, channel: ChannelId) {
        self.0.lock().prompts.insert(channel);
    }

    /// Whether the channel hung, and whether building a prompt of it hung. Each is returned once.
    fn take(&self, channel: &ChannelId) -> (bool, bool) {
        let mut hung = self.0.lock();
        (hung.channels.remove(channel), hung.prompts.remove(channel))
    }
}

/// The event that a channel is handling, so that an event that kills it again and again is found. It outlives the channel's actor.
#[derive(Debug, Default)]
pub struct InFlight {
    event: AtomicU64,
    is_restoring: AtomicBool,
    is_resuming: AtomicBool,
    needs_prompt_search: AtomicBool,
    unreadable: Mutex<Option<String>>,
}

impl InFlight {
    /// The marker of a channel. If the channel hung before this start, the next restore searches for the message that it hung on.
    pub fn new(channel: &ChannelId, hung: &RecentHangs) -> Self {
        let (channel_hung, prompt_hung) = hung.take(channel);
        Self { is_resuming: AtomicBool::new(channel_hung), needs_prompt_search: AtomicBool::new(prompt_hung), ..Self::default() }
    }

    /// Takes the event in flight, if any.
    pub fn take(&self) -> Option<Seq> {
        Some(Seq(self.event.swap(0, Ordering::AcqRel))).filter(|seq| *seq != Seq::NONE)
    }

    /// Marks this event as in flight.
    pub fn mark(&self, seq: Seq) {
        self.event.store(seq.0, Ordering::Release);
        at_message(seq);
    }

    pub fn clear(&self) {
        self.mark(Seq::NONE);
    }

    /// The channel begins to continue from its record.
    pub fn begin_restore(&self) {
        self.is_restoring.store(true, Ordering::Release);
    }

    /// The channel has continued from its record, and runs again.
    pub fn end_restore(&self) {
        self.is_restoring.store(false, Ordering::Release);
    }

    /// Whether the previous actor died before it ran again.
    pub fn died_restoring(&self) -> bool {
        self.is_restoring.load(Ordering::Acquire)
    }

    /// The channel ends because its record cannot be read.
    pub fn mark_unreadable(&self, why: String) {
        *self.unreadable.lock() = Some(why);
    }

    /// Why the previous actor could not read its record, if it ended because of that.
    pub fn take_unreadable(&self) -> Option<String> {
        self.unreadable.lock().take()
    }

    /// The channel begins the step that follows from its restored state. Any unsettled message may affect this step.
    pub fn begin_resume(&self) {
        self.is_resuming.store(true, Ordering::Release);
    }

    /// The channel has made that step.
    pub fn end_resume(&self) {
        self.is_resuming.store(false, Ordering::Release);
    }

    /// Whether the channel has to search for a message that hangs the building of prompts.
    pub fn needs_prompt_search(&self) -> bool {
        self.needs_prompt_search.load(Ordering::Acquire)
    }

    /// The search has ended without finding one.
    pub fn end_prompt_search(&self) {
        self.needs_prompt_search.store(false, Ordering::Release);
    }

    /// Whether the previous actor died in the step that followed from its restored state.
    pub fn died_resuming(&self) -> bool {
        self.is_resuming.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_hung_before_searches_once_for_the_message() {
        let hung = RecentHangs::default();
        hung.note("console:lobby".into());

        let searches =
            ["console:den", "console:lobby", "console:lobby"].map(|id| InFlight::new(&id.into(), &hung).died_resuming());

        assert_eq!(searches, [false, true, false]);
    }
}
