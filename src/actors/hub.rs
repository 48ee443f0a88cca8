//! Tells whoever watches a channel what happens there, as it happens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::domain::event::Recorded;
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
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    watched: Mutex<HashMap<Place, broadcast::Sender<Live>>>,
    // Read without the lock, so that publishing costs one load while nobody watches anything.
    count: AtomicUsize,
}

/// Somebody who watches one channel.
#[derive(Debug)]
pub struct Watcher {
    place: Place,
    items: broadcast::Receiver<Live>,
    shared: Arc<Shared>,
}

impl Hub {
    /// A hub that nobody watches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches a channel: everything published from now on. Read the journal after this, not before, and nothing is missed.
    pub fn watch(&self, place: &Place) -> Watcher {
        let mut watched = self.shared.lock();
        let sender = watched.entry(place.clone()).or_insert_with(|| broadcast::channel(BACKLOG).0);
        let items = sender.subscribe();
        self.shared.count.store(watched.len(), Ordering::Release);
        Watcher { place: place.clone(), items, shared: self.shared.clone() }
    }

    /// Tells whoever watches this channel.
    pub fn publish(&self, place: &Place, item: Live) {
        if self.shared.count.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(sender) = self.shared.lock().get(place) {
            // Nobody to receive it is no error.
            let _ = sender.send(item);
        }
    }

    /// Whether somebody watches this channel: whether making a note is worth the while.
    pub fn is_watched(&self, place: &Place) -> bool {
        self.shared.count.load(Ordering::Acquire) > 0 && self.shared.lock().contains_key(place)
    }

    /// How many channels are watched.
    pub fn watched_count(&self) -> usize {
        self.shared.count.load(Ordering::Acquire)
    }
}

impl Watcher {
    /// The next item, once there is one.
    ///
    /// # Errors
    /// [`Missed`] when this watcher fell more than [`BACKLOG`] items behind; the next call goes on with the oldest item kept.
    pub async fn next(&mut self) -> Result<Live, Missed> {
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
        let mut watched = self.shared.lock();
        // This watcher's own receiver still counts.
        if watched.get(&self.place).is_some_and(|sender| sender.receiver_count() <= 1) {
            watched.remove(&self.place);
        }
        self.shared.count.store(watched.len(), Ordering::Release);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Place, broadcast::Sender<Live>>> {
        // No code that holds the lock can panic halfway through a change.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
