//! When something was last said in each channel, for those who ask for all of them again and again: kept until something happens there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::stamp::Stamp;

/// What is known of channels.
#[derive(Debug, Default)]
pub struct LastMessageTimes {
    known: Mutex<HashMap<ChannelKey, Known>>,
    // Read without the lock, so that what happens costs one load while nobody asks.
    count: AtomicUsize,
    readings: AtomicUsize,
}

#[derive(Debug)]
enum Known {
    BeingRead(Reading),
    Read(Option<Stamp>),
}

/// Somebody reads it from the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading(usize);

impl LastMessageTimes {
    /// When something was last said in a channel, if anything was.
    ///
    /// # Errors
    /// It has to be read from the record, and is kept once [`read`](Self::read) tells.
    pub fn get(&self, channel_key: &ChannelKey) -> Result<Option<Stamp>, Reading> {
        let mut known = self.lock();
        if let Some(Known::Read(at)) = known.get(channel_key) {
            return Ok(*at);
        }
        let reading = Reading(self.readings.fetch_add(1, Ordering::Relaxed));
        known.insert(channel_key.clone(), Known::BeingRead(reading));
        self.count.store(known.len(), Ordering::Release);
        Err(reading)
    }

    /// What was read; it is not kept if something happened meanwhile.
    pub fn read(&self, channel_key: &ChannelKey, reading: Reading, at: Option<Stamp>) {
        if let Some(known) = self.lock().get_mut(channel_key)
            && matches!(known, Known::BeingRead(begun) if *begun == reading)
        {
            *known = Known::Read(at);
        }
    }

    /// Something happened in a channel.
    pub(super) fn outdated(&self, channel_key: &ChannelKey) {
        if self.count.load(Ordering::Acquire) > 0 {
            let mut known = self.lock();
            known.remove(channel_key);
            self.count.store(known.len(), Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ChannelKey, Known>> {
        // No code that holds the lock can panic halfway through a change.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;

    #[test]
    fn what_was_read_is_kept_until_something_happens() {
        let (last_message_times, lobby) = (LastMessageTimes::default(), ChannelKey::new(&"home".into(), &"console:lobby".into()));
        let at = |secs: u64| Some(Stamp::from(Moment::ZERO + std::time::Duration::from_secs(secs)));
        let first = last_message_times.get(&lobby).unwrap_err();
        last_message_times.read(&lobby, first, at(1));
        assert_eq!(last_message_times.get(&lobby), Ok(at(1)));

        last_message_times.outdated(&lobby);
        let second = last_message_times.get(&lobby).unwrap_err();
        last_message_times.outdated(&lobby);
        let third = last_message_times.get(&lobby).unwrap_err();
        last_message_times.read(&lobby, second, at(2));
        assert!(last_message_times.get(&lobby).is_err(), "something happened since");

        last_message_times.read(&lobby, third, at(3));
        assert!(last_message_times.get(&lobby).is_err(), "somebody else reads it by now");
    }
}
