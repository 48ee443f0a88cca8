//! Whose turn it is to change the words of a channel: one after the other, and nobody waits for another channel's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Waited, OwnedMutexGuard};

use crate::journal::channel_key::ChannelKey;

/// Whose turn it is to change the words of a channel. Cheap to clone; all clones are one. Keeps nothing of a channel in which nobody has the
/// turn or waits for it.
#[derive(Clone, Debug, Default)]
pub struct RewriteLocks(Arc<Mutex<Queues>>);

/// Of each channel in which somebody has the turn, or waits for it, the line.
type Queues = HashMap<ChannelKey, Arc<Waited<()>>>;

/// The turn to change the words of a channel, until it is dropped.
#[derive(Debug)]
pub struct RewriteLock {
    // In this order: who leaves the line has given the turn back.
    _held: OwnedMutexGuard<()>,
    _waiter: Waiter,
}

/// Somebody's place in a line: whoever has the turn, or waits.
#[derive(Debug)]
struct Waiter {
    locks: RewriteLocks,
    channel_key: ChannelKey,
    queue: Option<Arc<Waited<()>>>,
}

impl RewriteLocks {
    /// Waits for the turn to change the words of a channel, and has it until what is returned is dropped.
    pub async fn of(&self, channel_key: &ChannelKey) -> RewriteLock {
        let queue = self.queues().entry(channel_key.clone()).or_default().clone();
        let waiter = Waiter { locks: self.clone(), channel_key: channel_key.clone(), queue: Some(queue.clone()) };
        RewriteLock { _held: queue.lock_owned().await, _waiter: waiter }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut queues = self.locks.queues();
        self.queue = None;
        // That of the list: whoever else is in line has one, too, and joins or leaves it only while the list is held.
        if queues.get(&self.channel_key).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            queues.remove(&self.channel_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::task::unconstrained;

    use super::*;

    fn channel(number: u32) -> ChannelKey {
        ChannelKey::new(&"home".into(), &format!("console:{number}").as_str().into())
    }

    #[tokio::test]
    async fn a_change_of_words_waits_for_nobody_elses_channel() {
        let locks = RewriteLocks::default();
        let _held = locks.of(&channel(0)).await;

        let others = (1..1_000).map(channel);
        let held_up = others.filter(|other| unconstrained(locks.of(other)).now_or_never().is_none()).count();

        assert_eq!(held_up, 0);
    }

    #[tokio::test]
    async fn of_one_channel_one_after_the_other_has_the_turn_and_nothing_is_kept_afterwards() {
        let (locks, lobby) = (RewriteLocks::default(), channel(0));
        let first = locks.of(&lobby).await;
        let (mut second, mut third) = (Box::pin(locks.of(&lobby)), Box::pin(locks.of(&lobby)));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        assert_eq!(locks.queues().len(), 1);

        drop(first);
        let second = second.now_or_never().expect("it has the turn");
        assert!((&mut third).now_or_never().is_none());
        assert!(locks.of(&lobby).now_or_never().is_none(), "whoever comes later waits longer");
        drop(second);
        let third = third.now_or_never().expect("it has the turn");
        drop(third);

        assert_eq!(locks.queues().len(), 0);
    }

    #[tokio::test]
    async fn whoever_stops_waiting_leaves_nothing_behind() {
        let (locks, lobby) = (RewriteLocks::default(), channel(0));
        let held = locks.of(&lobby).await;
        let mut waiting = Box::pin(locks.of(&lobby));
        assert!((&mut waiting).now_or_never().is_none());

        drop(held);
        drop(waiting);

        assert_eq!(locks.queues().len(), 0);
        assert!(locks.of(&lobby).now_or_never().is_some());
    }
}
