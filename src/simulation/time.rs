//! The simulation's clock, which may be set while everything runs, and its random numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::dice::Dice;
use crate::domain::moment::Moment;
use crate::ports::clock::Clock;
use crate::ports::rng::Rng;
use crate::samples::{NOON, take_one};

/// Time continues over the lives of a process. The wall clock may be set.
#[derive(Default)]
pub(super) struct SimClock {
    /// When this life began in the time of the whole run, and in the time of its runtime while that exists.
    began: Mutex<(Duration, Option<Instant>)>,
    /// By how many microseconds the wall clock was set.
    offset: AtomicI64,
}

impl SimClock {
    /// The process starts at this time of the run.
    pub(super) fn begin(&self, at: Duration) {
        *self.began.lock() = (at, Some(Instant::now()));
    }

    /// The process ended. Time stands still until the next one starts.
    pub(super) fn stop(&self) -> Duration {
        let now = self.elapsed();
        *self.began.lock() = (now, None);
        now
    }

    /// The time of the run, which never jumps.
    pub(super) fn elapsed(&self) -> Duration {
        let (at, since) = *self.began.lock();
        at + since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Sets the wall clock by this number of seconds.
    pub(super) fn jump(&self, secs: i64) {
        self.offset.fetch_add(secs * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Moment {
        let now = NOON + self.elapsed();
        Moment::from_micros(now.as_micros().saturating_add_signed(self.offset.load(Ordering::Relaxed)))
    }
}

/// All random numbers that the server needs, from a seed. On request, a handler panics while it draws a jitter.
pub(super) struct SimRng {
    dice: Mutex<Dice>,
    ids: AtomicU64,
    /// How many of the next draws of a jitter panic.
    panics: AtomicU64,
    clock: Arc<SimClock>,
    /// When draws panicked.
    panicked: Mutex<Vec<Duration>>,
}

impl SimRng {
    pub(super) fn new(seed: u64, clock: Arc<SimClock>) -> Self {
        let dice = Mutex::new(Dice::new(seed, "chance"));
        Self { dice, ids: AtomicU64::new(0), panics: AtomicU64::new(0), clock, panicked: Mutex::default() }
    }

    pub(super) fn panicked(&self) -> Vec<Duration> {
        self.panicked.lock().clone()
    }

    pub(super) fn panics(&self, times: u64) {
        self.panics.store(times, Ordering::Relaxed);
    }

    fn draw<T>(&self, from: impl FnOnce(&mut Dice) -> T) -> T {
        from(&mut self.dice.lock())
    }
}

impl Rng for SimRng {
    fn jitter(&self) -> i8 {
        let is_to_panic = take_one(&self.panics);
        if is_to_panic {
            self.panicked.lock().push(self.clock.elapsed());
            std::panic::resume_unwind(Box::new("a handler panics, as the simulation planned".to_owned()));
        }
        self.draw(|dice| dice.below(5) as i8 - 2)
    }

    fn fraction(&self) -> f64 {
        self.draw(Dice::fraction)
    }

    fn id(&self) -> u128 {
        u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1
    }
}
