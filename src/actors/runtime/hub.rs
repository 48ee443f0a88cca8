//! Publishes the events of channels to watchers.

mod last_message_times;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

pub use self::last_message_times::LastMessageTimes;
use crate::domain::event::Recorded;
use crate::journal::channel_key::ChannelKey;

/// How many items of one channel a watcher may fall behind before it misses items.
pub const BACKLOG: usize = 256;

/// The same limit for a watcher of all channels.
pub const TOTAL_BACKLOG: usize = 16 * BACKLOG;

/// An item that is published in a channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    /// A committed event.
    Recorded(Arc<Recorded>),
    /// An item without a sequence number, as JSON, such as a draft or a timer.
    Note(Arc<str>),
    /// The channel's room was deleted. Later items are of a new room, or of this one if its deletion was undone.
    Closed,
}

/// How many items a slow watcher missed. Missed events can be read from the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} items were missed")]
pub struct Missed(pub u64);

/// Connects channels to their watchers. Cheap to clone; all clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Hub(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The watchers of a channel; under `None`, the watchers of all channels.
    watched: Mutex<HashMap<Option<ChannelKey>, Watched>>,
    /// How many watchers there have been.
    joined: AtomicU64,
    // Read without the lock, so that publishing costs one load while there are no watchers.
    count: AtomicUsize,
    /// How many events were published.
    recorded: AtomicU64,
    last_message_times: LastMessageTimes,
}

#[derive(Debug)]
struct Watched {
    items: broadcast::Sender<(ChannelKey, Live)>,
    /// The number of the watcher that joined last.
    newest: u64,
}

/// Watches one channel, or all channels, including future ones. Receives every published item, with its channel.
#[derive(Debug)]
pub struct Watcher {
    key: Option<ChannelKey>,
    items: broadcast::Receiver<(ChannelKey, Live)>,
    hub: Hub,
}

impl Hub {
    /// A hub without watchers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches a channel, or all: receives everything that is published from now on. To miss nothing, read the journal after this
    /// call, not before.
    pub fn watch(&self, channel_key: Option<&ChannelKey>) -> Watcher {
        let backlog = if channel_key.is_some() { BACKLOG } else { TOTAL_BACKLOG };
        let (key, newest) = (channel_key.cloned(), self.0.joined.fetch_add(1, Ordering::Relaxed));
        let mut watched = self.0.watched.lock();
        let entry = watched.entry(key.clone()).or_insert_with(|| Watched { items: broadcast::channel(backlog).0, newest });
        entry.newest = entry.newest.max(newest);
        let items = entry.items.subscribe();
        self.0.count.store(watched.len(), Ordering::Release);
        Watcher { key, items, hub: self.clone() }
    }

    /// Publishes to the watchers of this channel.
    pub fn publish(&self, channel_key: &ChannelKey, item: Live) {
        self.0.last_message_times.invalidate(channel_key);
        if matches!(item, Live::Recorded(_)) {
            self.0.recorded.fetch_add(1, Ordering::Relaxed);
        }
        if self.watched_count() > 0 {
            for watched in watched_by(&self.0.watched.lock(), channel_key) {
                // An error only means that no watcher is left.
                let _ = watched.items.send((channel_key.clone(), item.clone()));
            }
        }
    }

    /// How many events were published since the start, in all channels.
    pub fn recorded(&self) -> u64 {
        self.0.recorded.load(Ordering::Relaxed)
    }

    /// The cached time of the last message of each channel.
    pub fn last_message_times(&self) -> &LastMessageTimes {
        &self.0.last_message_times
    }

    /// Whether this channel has watchers. Without watchers, no note needs to be built.
    pub fn is_watched(&self, channel_key: &ChannelKey) -> bool {
        self.newest_watcher(channel_key).is_some()
    }

    /// A number that grows with every new watcher of this channel. `None` if it has no watchers.
    pub fn newest_watcher(&self, channel_key: &ChannelKey) -> Option<u64> {
        if self.watched_count() == 0 {
            return None;
        }
        watched_by(&self.0.watched.lock(), channel_key).map(|watched| watched.newest).max()
    }

    /// The number of watched channels. The watchers of all channels count as one more.
    pub fn watched_count(&self) -> usize {
        self.0.count.load(Ordering::Acquire)
    }
}

/// The entries that receive a channel's items: the watchers of all channels, and the channel's own.
fn watched_by<'a>(
    watched: &'a HashMap<Option<ChannelKey>, Watched>,
    channel_key: &ChannelKey,
) -> impl Iterator<Item = &'a Watched> + use<'a> {
    [None, Some(channel_key.clone())].into_iter().filter_map(|key| watched.get(&key))
}

impl Watcher {
    /// Waits for the next item.
    ///
    /// # Errors
    /// [`Missed`] if this watcher fell more than [`BACKLOG`] or [`TOTAL_BACKLOG`] items behind. The next call continues with the
    /// oldest stored item.
    pub async fn next(&mut self) -> Result<(ChannelKey, Live), Missed> {
        match self.items.recv().await {
            Ok(item) => Ok(item),
            Err(RecvError::Lagged(missed)) => Err(Missed(missed)),
            // The sender is dropped with the last watcher, never before.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut watched = self.hub.0.watched.lock();
        // This watcher's own receiver still counts.
        if watched.get(&self.key).is_some_and(|watched| watched.items.receiver_count() <= 1) {
            watched.remove(&self.key);
        }
        self.hub.0.count.store(watched.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
