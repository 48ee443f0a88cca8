//! Tells whoever watches a channel what happens there, as it happens.

mod last_said;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

pub use self::last_said::LastSaid;
use crate::domain::event::Recorded;
use crate::domain::vote::State;
use crate::journal::place::Place;

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
    last_said: Arc<LastSaid>,
}

#[derive(Debug)]
struct Topic<T> {
    watched: Mutex<HashMap<Place, Watched<T>>>,
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
    place: Place,
    items: broadcast::Receiver<T>,
    topic: Arc<Topic<T>>,
}

impl Hub {
    /// A hub that nobody watches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches a channel: everything published from now on. Read the journal after this, not before, and nothing is missed.
    pub fn watch(&self, place: &Place) -> Watcher {
        Topic::watch(&self.live, place)
    }

    /// Watches the `states` topic of a channel: every State of its rounds from now on. One may come twice, when whoever published it had to
    /// be replaced.
    pub fn watch_states(&self, place: &Place) -> Watcher<State> {
        Topic::watch(&self.states, place)
    }

    /// Tells whoever watches this channel.
    pub fn publish(&self, place: &Place, item: Live) {
        self.last_said.outdated(place);
        self.live.publish(place, item);
    }

    /// Tells whoever watches the `states` topic of this channel.
    pub fn publish_state(&self, place: &Place, state: State) {
        self.states.publish(place, state);
    }

    /// When something was last said, by channel.
    pub fn last_said(&self) -> &LastSaid {
        &self.last_said
    }

    /// Whether somebody watches this channel: whether making a note is worth the while.
    pub fn is_watched(&self, place: &Place) -> bool {
        self.live.count.load(Ordering::Acquire) > 0 && self.live.lock().contains_key(place)
    }

    /// A number that grows with everybody who comes to watch this channel; none if nobody watches it.
    pub fn newest_watcher(&self, place: &Place) -> Option<u64> {
        if self.live.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.live.lock().get(place).map(|watched| watched.newest)
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
        if watched.get(&self.place).is_some_and(|watched| watched.items.receiver_count() <= 1) {
            watched.remove(&self.place);
        }
        self.topic.count.store(watched.len(), Ordering::Release);
    }
}

impl<T> Topic<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Watched<T>>> {
        // No code that holds the lock can panic halfway through a change.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Topic<T> {
    fn watch(topic: &Arc<Self>, place: &Place) -> Watcher<T> {
        let mut watched = topic.lock();
        let newest = topic.joined.fetch_add(1, Ordering::Relaxed);
        let channel = || Watched { items: broadcast::channel(BACKLOG).0, newest };
        let of_place = watched.entry(place.clone()).or_insert_with(channel);
        of_place.newest = newest;
        let items = of_place.items.subscribe();
        topic.count.store(watched.len(), Ordering::Release);
        Watcher { place: place.clone(), items, topic: topic.clone() }
    }

    fn publish(&self, place: &Place, item: T) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(watched) = self.lock().get(place) {
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
