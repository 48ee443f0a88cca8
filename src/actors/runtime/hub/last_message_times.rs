//! A cache of the time of each channel's last message, for callers that list all rooms again and again. An entry is valid until
//! the next event of its channel.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::stamp::Stamp;

#[derive(Debug, Default)]
pub struct LastMessageTimes {
    entries: Mutex<HashMap<ChannelKey, Entry>>,
    // Read without the lock, so that an event costs one load while the cache is empty.
    count: AtomicUsize,
    readings: AtomicUsize,
}

#[derive(Debug)]
enum Entry {
    Loading(Reading),
    Loaded(Option<Stamp>),
}

/// Identifies one read from the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading(usize);

impl LastMessageTimes {
    /// The time of the last message in a channel. `None`: it has no message.
    ///
    /// # Errors
    /// The time is not cached. Read it from the journal, and store it with [`loaded`](Self::loaded).
    pub fn get(&self, channel_key: &ChannelKey) -> Result<Option<Stamp>, Reading> {
        let mut entries = self.entries.lock();
        if let Some(Entry::Loaded(at)) = entries.get(channel_key) {
            return Ok(*at);
        }
        let reading = Reading(self.readings.fetch_add(1, Ordering::Relaxed));
        entries.insert(channel_key.clone(), Entry::Loading(reading));
        self.count.store(entries.len(), Ordering::Release);
        Err(reading)
    }

    /// Stores the time that was read from the journal, unless the entry was invalidated since the read began.
    pub fn loaded(&self, channel_key: &ChannelKey, reading: Reading, at: Option<Stamp>) {
        if let Some(entry) = self.entries.lock().get_mut(channel_key)
            && matches!(entry, Entry::Loading(begun) if *begun == reading)
        {
            *entry = Entry::Loaded(at);
        }
    }

    /// Drops a channel's entry, because of a new event.
    pub(super) fn invalidate(&self, channel_key: &ChannelKey) {
        if self.count.load(Ordering::Acquire) > 0 {
            let mut entries = self.entries.lock();
            entries.remove(channel_key);
            self.count.store(entries.len(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;
    use crate::samples::lobby;

    #[test]
    fn a_loaded_time_is_cached_until_something_happens() {
        let (cache, lobby) = (LastMessageTimes::default(), lobby());
        let at = |secs: u64| Some(Stamp::from(Moment::ZERO + std::time::Duration::from_secs(secs)));
        let first = cache.get(&lobby).unwrap_err();
        cache.loaded(&lobby, first, at(1));
        assert_eq!(cache.get(&lobby), Ok(at(1)));

        cache.invalidate(&lobby);
        let second = cache.get(&lobby).unwrap_err();
        cache.invalidate(&lobby);
        let third = cache.get(&lobby).unwrap_err();
        cache.loaded(&lobby, second, at(2));
        assert!(cache.get(&lobby).is_err(), "something has happened since");

        cache.loaded(&lobby, third, at(3));
        assert!(cache.get(&lobby).is_err(), "another read has begun");
    }
}
