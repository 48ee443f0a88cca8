//! Lets shards that share a place go one after the other, the lowest number first.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Who waits for which place, and who has it.
#[derive(Default)]
pub(super) struct Turns {
    places: Mutex<BTreeMap<u32, Place>>,
    changed: Notify,
}

#[derive(Default)]
struct Place {
    waiting: BTreeSet<u32>,
    is_taken: bool,
}

/// A shard's turn. Dropped, it is the next one's.
pub struct Turn<'a> {
    turns: &'a Turns,
    place: u32,
}

/// A shard that waits. Dropped, it does not any more.
struct Waiting<'a> {
    turns: &'a Turns,
    place: u32,
    shard: u32,
}

impl Turns {
    /// Waits for a shard's turn: shards with the same remainder share a place (Discord's documentation, "Gateway", "Max Concurrency").
    pub async fn take(&self, shard: u32, max_concurrency: NonZeroU32) -> Turn<'_> {
        let place = shard % max_concurrency;
        self.lock().entry(place).or_default().waiting.insert(shard);
        let waiting = Waiting { turns: self, place, shard };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if waiting.goes() {
                return Turn { turns: self, place };
            }
            changed.await;
        }
    }

    // Whoever panics in between leaves a place taken, at worst.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting<'_> {
    fn goes(&self) -> bool {
        let mut places = self.turns.lock();
        let place = places.entry(self.place).or_default();
        let is_next = !place.is_taken && place.waiting.first() == Some(&self.shard);
        place.is_taken |= is_next;
        is_next
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.turns.lock().entry(self.place).or_default().waiting.remove(&self.shard);
        self.turns.changed.notify_waiters();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().entry(self.place).or_default().is_taken = false;
        self.turns.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn the_lowest_number_that_waits_goes_next() {
        let turns = Turns::default();
        let one = NonZeroU32::MIN;
        let first = now(pin!(turns.take(5, one))).unwrap();
        let (mut seven, mut six) = (Box::pin(turns.take(7, one)), Box::pin(turns.take(6, one)));
        assert!(now(seven.as_mut()).is_none());
        assert!(now(six.as_mut()).is_none());

        drop(first);

        assert!(now(seven.as_mut()).is_none());
        let second = now(six.as_mut()).unwrap();
        drop(second);
        assert!(now(seven.as_mut()).is_some());
    }

    #[test]
    fn each_place_has_its_own_turns_and_who_goes_away_waits_no_more() {
        let turns = Turns::default();
        let two = NonZeroU32::new(2).unwrap();
        let zero = now(pin!(turns.take(0, two))).unwrap();
        let one = now(pin!(turns.take(1, two))).unwrap();
        let (mut two_waits, mut four) = (Box::pin(turns.take(2, two)), Box::pin(turns.take(4, two)));
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
