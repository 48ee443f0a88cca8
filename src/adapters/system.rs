//! The machine's own clock and randomness: the one file that reads the one and makes the other.

use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt as _;

use crate::domain::gate::MOST_JITTER;
use crate::domain::moment::Moment;
use crate::ports::clock::Clock;
use crate::ports::rng::Rng;

/// The machine's time of day.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    fn now(&self) -> Moment {
        // A machine whose clock stands before 1970 stands at 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::ZERO + since
    }
}

/// The operating system's randomness, stretched by a generator fit for secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRng;

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
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
