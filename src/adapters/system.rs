//! The machine's own clock and randomness: the only file that reads the clock and draws random numbers.

use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt as _;

use crate::domain::gate::MOST_JITTER;
use crate::domain::moment::Moment;
use crate::ports::clock::Clock;
use crate::ports::rng::Rng;

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "only this file may do so")]
    fn now(&self) -> Moment {
        // A clock before 1970 counts as 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::ZERO + since
    }
}

/// Randomness from the operating system, extended by a cryptographic generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRng;

#[expect(clippy::disallowed_methods, reason = "only this file may do so")]
impl Rng for SystemRng {
    fn jitter(&self) -> i8 {
        rand::rng().random_range(-MOST_JITTER..=MOST_JITTER)
    }

    fn fraction(&self) -> f64 {
        rand::rng().random()
    }

    fn id(&self) -> u128 {
        rand::rng().random()
    }
}
