//! One lock per channel for rewriting its stored events. Rewrites of different channels do not block each other.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::journal::channel_key::ChannelKey;

/// The locks of all channels. Cheap to clone; all clones share their state. A lock has an entry only while it is held or waited
/// for.
#[derive(Clone, Debug, Default)]
pub struct RewriteLocks(Arc<Mutex<Locks>>);

/// The locks that are held or waited for.
type Locks = HashMap<ChannelKey, Arc<AsyncMutex<()>>>;

/// Guard of the lock of one channel.
#[derive(Debug)]
pub struct RewriteLock {
    // Field order is drop order: the lock must be released before the waiter removes the entry.
    _held: OwnedMutexGuard<()>,
    _waiter: Waiter,
}

/// A task that holds a lock or waits for it.
#[derive(Debug)]
struct Waiter {
    locks: RewriteLocks,
    channel_key: ChannelKey,
    lock: Option<Arc<AsyncMutex<()>>>,
}

impl RewriteLocks {
    /// Waits for the lock of a channel.
    pub async fn lock(&self, channel_key: &ChannelKey) -> RewriteLock {
        let lock = self.0.lock().entry(channel_key.clone()).or_default().clone();
        let waiter = Waiter { locks: self.clone(), channel_key: channel_key.clone(), lock: Some(lock.clone()) };
        RewriteLock { _held: lock.lock_owned().await, _waiter: waiter }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut entries = self.locks.0.lock();
        self.lock = None;
        // A count of 1 means that only the map refers to the lock. Other waiters have references too, and clone or drop them only
        // while they hold the map.
        if entries.get(&self.channel_key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            entries.remove(&self.channel_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::samples::channel_key;
    use futures_util::FutureExt;
    use tokio::task::unconstrained;

    use super::*;

    fn channel(number: u32) -> ChannelKey {
        channel_key(&format!("console:{number}"))
    }

    #[tokio::test]
    async fn a_rewrite_does_not_wait_for_other_channels() {
        let locks = RewriteLocks::default();
        let _held = locks.lock(&channel(0)).await;

        let others = (1..1_000).map(channel);
        let blocked = others.filter(|other| unconstrained(locks.lock(other)).now_or_never().is_none()).count();

        assert_eq!(blocked, 0);
    }

    #[tokio::test]
    async fn the_lock_of_a_channel_has_one_holder_at_a_time_and_no_entry_afterwards() {
        let (locks, lobby) = (RewriteLocks::default(), channel(0));
        let first = locks.lock(&lobby).await;
        let (mut second, mut third) = (Box::pin(locks.lock(&lobby)), Box::pin(locks.lock(&lobby)));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        assert_eq!(locks.0.lock().len(), 1);

        drop(first);
        let second = second.now_or_never().expect("it has the lock");
        assert!((&mut third).now_or_never().is_none());
        assert!(locks.lock(&lobby).now_or_never().is_none(), "later waiters wait longer");
        drop(second);
        let third = third.now_or_never().expect("it has the lock");
        drop(third);

        assert_eq!(locks.0.lock().len(), 0);
    }

    #[tokio::test]
    async fn a_cancelled_waiter_leaves_no_entry() {
        let (locks, lobby) = (RewriteLocks::default(), channel(0));
        let held = locks.lock(&lobby).await;
        let mut waiting = Box::pin(locks.lock(&lobby));
        assert!((&mut waiting).now_or_never().is_none());

        drop(held);
        drop(waiting);

        assert_eq!(locks.0.lock().len(), 0);
        assert!(locks.lock(&lobby).now_or_never().is_some());
    }
}
