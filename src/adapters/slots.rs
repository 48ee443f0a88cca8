//! A limited number of slots. One client can take only some of them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

pub struct Slots<C> {
    pub total: usize,
    pub per_client: usize,
    taken: Mutex<HashMap<C, usize>>,
}

/// A taken slot. Dropping it frees the slot.
pub struct Slot<C: Eq + Hash> {
    slots: Arc<Slots<C>>,
    client: C,
}

/// Why no slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSlot {
    /// All slots are taken.
    Full,
    /// This client has as many slots as one client may have.
    FullForClient,
}

impl<C: Clone + Eq + Hash> Slots<C> {
    pub fn new(total: usize, per_client: usize) -> Arc<Self> {
        Arc::new(Self { total, per_client, taken: Mutex::default() })
    }

    pub fn acquire(self: &Arc<Self>, client: C) -> Result<Slot<C>, NoSlot> {
        self.acquire_within(client, self.per_client, self.total)
    }

    /// Takes a slot within other limits.
    pub fn acquire_within(self: &Arc<Self>, client: C, per_client: usize, total: usize) -> Result<Slot<C>, NoSlot> {
        let mut taken = self.taken.lock();
        if taken.values().sum::<usize>() >= total {
            return Err(NoSlot::Full);
        }
        if taken.get(&client).copied().unwrap_or_default() >= per_client {
            return Err(NoSlot::FullForClient);
        }
        *taken.entry(client.clone()).or_default() += 1;
        Ok(Slot { slots: Arc::clone(self), client })
    }
}

impl<C: Eq + Hash> Drop for Slot<C> {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock();
        if let Some(count) = taken.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_room_for_others() {
        let slots = Slots::new(3, 2);

        let (first, second) = (slots.acquire("home"), slots.acquire("home"));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(slots.acquire("home").err(), Some(NoSlot::FullForClient));
        let other = slots.acquire("away");
        assert_eq!(slots.acquire("away").err(), Some(NoSlot::Full));

        drop(first);
        assert!(slots.acquire("away").is_ok());
        drop((second, other));
        assert!(slots.taken.lock().is_empty());
    }
}
