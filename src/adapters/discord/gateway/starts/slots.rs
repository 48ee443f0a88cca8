//! Permits one identifying shard at a time for each rate limit key, lowest number first.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The waiting shards of each rate limit key, and the keys in use.
#[derive(Default)]
pub(super) struct Slots {
    buckets: Mutex<BTreeMap<u32, Bucket>>,
    changed: Notify,
}

#[derive(Default)]
struct Bucket {
    waiting: BTreeSet<u32>,
    is_in_use: bool,
}

/// The right of a shard to identify. Dropping it passes the right to the next shard.
pub struct Slot<'a> {
    slots: &'a Slots,
    key: u32,
}

/// A waiting shard. It stops waiting when this is dropped.
struct WaitingShard<'a> {
    slots: &'a Slots,
    key: u32,
    shard: u32,
}

impl Slots {
    /// Waits for a shard's slot. Shards with the same number modulo `max_concurrency` share a rate limit key (Discord's documentation, "Gateway",
    /// "Max Concurrency").
    pub async fn acquire_slot(&self, shard: u32, max_concurrency: NonZeroU32) -> Slot<'_> {
        let key = shard % max_concurrency;
        self.buckets.lock().entry(key).or_default().waiting.insert(shard);
        let waiting = WaitingShard { slots: self, key, shard };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if waiting.try_acquire() {
                return Slot { slots: self, key };
            }
            changed.await;
        }
    }
}

impl WaitingShard<'_> {
    fn try_acquire(&self) -> bool {
        let mut buckets = self.slots.buckets.lock();
        let bucket = buckets.entry(self.key).or_default();
        let is_next = !bucket.is_in_use && bucket.waiting.first() == Some(&self.shard);
        bucket.is_in_use |= is_next;
        is_next
    }
}

impl Drop for WaitingShard<'_> {
    fn drop(&mut self) {
        self.slots.buckets.lock().entry(self.key).or_default().waiting.remove(&self.shard);
        self.slots.changed.notify_waiters();
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.slots.buckets.lock().entry(self.key).or_default().is_in_use = false;
        self.slots.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn the_lowest_waiting_number_is_next() {
        let slots = Slots::default();
        let one = NonZeroU32::MIN;
        let first = now(pin!(slots.acquire_slot(5, one))).unwrap();
        let (mut seven, mut six) = (Box::pin(slots.acquire_slot(7, one)), Box::pin(slots.acquire_slot(6, one)));
        assert!(now(seven.as_mut()).is_none());
        assert!(now(six.as_mut()).is_none());

        drop(first);

        assert!(now(seven.as_mut()).is_none());
        let second = now(six.as_mut()).unwrap();
        drop(second);
        assert!(now(seven.as_mut()).is_some());
    }

    #[test]
    fn each_key_has_its_own_slot_and_a_dropped_shard_stops_waiting() {
        let slots = Slots::default();
        let two = NonZeroU32::new(2).unwrap();
        let zero = now(pin!(slots.acquire_slot(0, two))).unwrap();
        let one = now(pin!(slots.acquire_slot(1, two))).unwrap();
        let (mut two_waits, mut four) = (Box::pin(slots.acquire_slot(2, two)), Box::pin(slots.acquire_slot(4, two)));
        assert!(now(two_waits.as_mut()).is_none() && now(four.as_mut()).is_none());

        drop(two_waits);
        drop((zero, one));

        assert!(now(four.as_mut()).is_some());
    }

    fn now<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }
}
