//! Chance for tests, of other crates too (feature `samples`).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::rng::Rng;

/// Chance that draws no jitter, the same fraction each time, and ids from 1 on.
pub struct Draws {
    fraction: f64,
    ids: AtomicU64,
    panics: AtomicU64,
}

impl Draws {
    pub const fn of(fraction: f64) -> Self {
        Self { fraction, ids: AtomicU64::new(0), panics: AtomicU64::new(0) }
    }

    /// This many of the next draws of a jitter panic.
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

/// Takes one if any is left.
pub fn take_one(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}
