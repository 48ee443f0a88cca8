//! Tells whoever watches a channel what happens there, as it happens.

mod last_message_times;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

pub use self::last_message_times::LastMessageTimes;
use crate::domain::event::Recorded;
use crate::domain::vote::State;
use crate::journal::channel_key::ChannelKey;

/// How far somebody who watches may fall behind, in items of one channel, before items are missed.
pub const BACKLOG: usize = 256;

/// Something that happens in a channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    /// An event, committed.
    Recorded(Arc<Recorded>),
    /// Something without a number, as JSON: text in the making, a typing sign.
    Note(Arc<str>),
}

/// How many items somebody missed who was too slow. What was recorded can be read from the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} items were missed")]
pub struct Missed(pub u64);

/// Where watchers and channels meet. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Hub {
    live: Arc<Topic<Live>>,
    states: Arc<Topic<State>>,
    last_message_times: Arc<LastMessageTimes>,
}

#[derive(Debug)]
struct Topic<T> {
    watched: Mutex<HashMap<ChannelKey, Watched<T>>>,
    /// How many ever came to watch.
    joined: AtomicU64,
    // Read without the lock, so that publishing costs one load while nobody watches anything.
    count: AtomicUsize,
}

/// A channel that is watched.
#[derive(Debug)]
struct Watched<T> {
    items: broadcast::Sender<T>,
    /// The number of the watcher that came last.
    newest: u64,
}

/// Somebody who watches one channel: all that happens there, or the States of its rounds.
#[derive(Debug)]
pub struct Watcher<T = Live> {
    channel_key: ChannelKey,
    items: broadcast::Receiver<T>,
    topic: Arc<Topic<T>>,
}

impl Hub {
    /// A hub that nobody watches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches a channel: everything published from now on. Read the journal after this, not before, and nothing is missed.
    pub fn watch(&self, channel_key: &ChannelKey) -> Watcher {
        Topic::watch(&self.live, channel_key)
    }

    /// Watches the `states` topic of a channel: every State of its rounds from now on. One may come twice, when whoever published it had to
    /// be replaced.
    pub fn watch_states(&self, channel_key: &ChannelKey) -> Watcher<State> {
        Topic::watch(&self.states, channel_key)
    }

    /// Tells whoever watches this channel.
    pub fn publish(&self, channel_key: &ChannelKey, item: Live) {
        self.last_message_times.outdated(channel_key);
        self.live.publish(channel_key, item);
    }

    /// Tells whoever watches the `states` topic of this channel.
    pub fn publish_state(&self, channel_key: &ChannelKey, state: State) {
        self.states.publish(channel_key, state);
    }

    /// When something was last said, by channel.
    pub fn last_message_times(&self) -> &LastMessageTimes {
        &self.last_message_times
    }

    /// Whether somebody watches this channel: whether making a note is worth the while.
    pub fn is_watched(&self, channel_key: &ChannelKey) -> bool {
        self.live.count.load(Ordering::Acquire) > 0 && self.live.lock().contains_key(channel_key)
    }

    /// A number that grows with everybody who comes to watch this channel; none if nobody watches it.
    pub fn newest_watcher(&self, channel_key: &ChannelKey) -> Option<u64> {
        if self.live.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.live.lock().get(channel_key).map(|watched| watched.newest)
    }

    /// How many channels are watched.
    pub fn watched_count(&self) -> usize {
        self.live.count.load(Ordering::Acquire)
    }
}

impl<T: Clone> Watcher<T> {
    /// The next item, once there is one.
    ///
    /// # Errors
    /// [`Missed`] when this watcher fell more than [`BACKLOG`] items behind; the next call goes on with the oldest item kept.
    pub async fn next(&mut self) -> Result<T, Missed> {
        match self.items.recv().await {
            Ok(item) => Ok(item),
            Err(RecvError::Lagged(missed)) => Err(Missed(missed)),
            // The sender is dropped with the last watcher, never before.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl<T> Drop for Watcher<T> {
    fn drop(&mut self) {
        let mut watched = self.topic.lock();
        // This watcher's own receiver still counts.
        if watched.get(&self.channel_key).is_some_and(|watched| watched.items.receiver_count() <= 1) {
            watched.remove(&self.channel_key);
        }
        self.topic.count.store(watched.len(), Ordering::Release);
    }
}

impl<T> Topic<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<ChannelKey, Watched<T>>> {
        // No code that holds the lock can panic halfway through a change.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Topic<T> {
    fn watch(topic: &Arc<Self>, channel_key: &ChannelKey) -> Watcher<T> {
        let mut watched = topic.lock();
        let newest = topic.joined.fetch_add(1, Ordering::Relaxed);
        let channel = || Watched { items: broadcast::channel(BACKLOG).0, newest };
        let of_place = watched.entry(channel_key.clone()).or_insert_with(channel);
        of_place.newest = newest;
        let items = of_place.items.subscribe();
        topic.count.store(watched.len(), Ordering::Release);
        Watcher { channel_key: channel_key.clone(), items, topic: topic.clone() }
    }

    fn publish(&self, channel_key: &ChannelKey, item: T) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(watched) = self.lock().get(channel_key) {
            // Nobody to receive it is no error.
            let _ = watched.items.send(item);
        }
    }
}

impl<T> Default for Topic<T> {
    fn default() -> Self {
        Self { watched: Mutex::default(), joined: AtomicU64::new(0), count: AtomicUsize::new(0) }
    }
}

#[cfg(test)]
mod tests;
