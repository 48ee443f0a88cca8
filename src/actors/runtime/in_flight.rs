//! What a channel is at, for whoever looks at why it died.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::actors::runtime::watchdog::at_message;
use crate::domain::id::{ChannelId, Seq};

/// Channels that hung before this start, nobody knows over which message. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct RecentHangs(Arc<Mutex<Hung>>);

#[derive(Debug, Default)]
struct Hung {
    themselves: BTreeSet<ChannelId>,
    over_words: BTreeSet<ChannelId>,
}

impl RecentHangs {
    pub fn note(&self, channel: ChannelId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).themselves.insert(channel);
    }

    /// Whoever made words of what was said there did: a question, or a reply.
    pub fn note_prompt_hang(&self, channel: ChannelId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).over_words.insert(channel);
    }

    /// Whether this one did, and whether somebody did over words; it is told once.
    fn take(&self, channel: &ChannelId) -> (bool, bool) {
        let mut hung = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (hung.themselves.remove(channel), hung.over_words.remove(channel))
    }
}

/// The event that a channel is handling, so that one that kills it again and again is found. It outlives the channel.
#[derive(Debug, Default)]
pub struct InFlight {
    event: AtomicU64,
    is_restoring: AtomicBool,
    is_resuming: AtomicBool,
    is_in_words: AtomicBool,
    unreadable: Mutex<Option<String>>,
}

impl InFlight {
    /// That of a channel, which looks for what it died of, if it hung before this start.
    pub fn of(channel: &ChannelId, hung: &RecentHangs) -> Self {
        let (itself, over_words) = hung.take(channel);
        Self { is_resuming: AtomicBool::new(itself), is_in_words: AtomicBool::new(over_words), ..Self::default() }
    }

    /// Takes the event in flight, if there is one.
    pub fn take(&self) -> Option<Seq> {
        Some(Seq(self.event.swap(0, Ordering::AcqRel))).filter(|seq| *seq != Seq::NONE)
    }

    /// Marks this event as in flight.
    pub fn hold(&self, seq: Seq) {
        self.event.store(seq.0, Ordering::Release);
        at_message(seq);
    }

    pub fn lay_down(&self) {
        self.hold(Seq::NONE);
    }

    /// It begins to go on from its record.
    pub fn restore(&self) {
        self.is_restoring.store(true, Ordering::Release);
    }

    /// It is back, with everything that was on record.
    pub fn is_restored(&self) {
        self.is_restoring.store(false, Ordering::Release);
    }

    /// Whoever had this before died before it was back.
    pub fn died_restoring(&self) -> bool {
        self.is_restoring.load(Ordering::Acquire)
    }

    /// It ends because what is on record of it cannot be read.
    pub fn cannot_be_read(&self, why: String) {
        *self.unreadable.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Why whoever had this before could not read what is on record of it, if that is how it ended.
    pub fn take_unreadable(&self) -> Option<String> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// It goes on from its record, which any message that is still open may have a part in.
    pub fn resume(&self) {
        self.is_resuming.store(true, Ordering::Release);
    }

    /// It went on from its record.
    pub fn is_resumed(&self) {
        self.is_resuming.store(false, Ordering::Release);
    }

    /// Something that was said here is to be looked for over which whoever makes words of it hangs.
    pub fn is_in_words(&self) -> bool {
        self.is_in_words.load(Ordering::Acquire)
    }

    /// It was looked for, and is not there.
    pub fn is_not_in_words(&self) {
        self.is_in_words.store(false, Ordering::Release);
    }

    /// Whoever had this before died while it went on from its record.
    pub fn died_resuming(&self) -> bool {
        self.is_resuming.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_hung_before_looks_once_for_what_it_hung_over() {
        let hung = RecentHangs::default();
        hung.note("console:lobby".into());

        let looks = ["console:den", "console:lobby", "console:lobby"].map(|id| InFlight::new(&id.into(), &hung).died_resuming());

        assert_eq!(looks, [false, true, false]);
    }
}
