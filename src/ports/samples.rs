//! A fake random source for the tests of this crate and others (feature `samples`).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::rng::Rng;

/// A random source without jitter, with a constant fraction, and with ids that count from 1.
pub struct Draws {
    fraction: f64,
    ids: AtomicU64,
    panics: AtomicU64,
}

impl Draws {
    pub const fn of(fraction: f64) -> Self {
        Self { fraction, ids: AtomicU64::new(0), panics: AtomicU64::new(0) }
    }

    /// Makes this many of the next jitter draws panic.
    pub fn panics(&self, draws: u64) {
        self.panics.store(draws, Ordering::Relaxed);
    }
}

impl Default for Draws {
    fn default() -> Self {
        Self::of(0.5)
    }
}

impl Rng for Draws {
    fn jitter(&self) -> i8 {
        assert!(!take_one(&self.panics), "as the test planned");
        0
    }

    fn fraction(&self) -> f64 {
        self.fraction
    }

    fn id(&self) -> u128 {
        u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

/// Takes one from a counter, and returns whether any was left.
pub fn take_one(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}
