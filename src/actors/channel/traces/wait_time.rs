//! The time that a turn waited for others: models, external companions, platforms, and intended delays.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::domain::moment::Moment;

/// The wait time of a turn. Only the turn's channel writes it, so the two fields need not be consistent at every moment.
#[derive(Debug, Default)]
pub(super) struct WaitTime {
    waited_us: AtomicU64,
    /// The end of the counted time. Overlapping waits count once.
    counted_until: AtomicU64,
}

impl WaitTime {
    /// Adds the time between these moments. Must be called in the order of the ends.
    pub(super) fn waited(&self, from: Moment, until: Moment) {
        let counted = Moment::from_micros(self.counted_until.load(Ordering::Relaxed));
        let waited = until.since(from.max(counted));
        self.waited_us.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.counted_until.fetch_max(until.as_micros(), Ordering::Relaxed);
    }

    /// A span minus the wait time.
    pub(super) fn without_wait_time(&self, span: Duration) -> Duration {
        span.saturating_sub(Duration::from_micros(self.waited_us.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_waits_count_once() {
        let wait_time = WaitTime::default();

        wait_time.waited(Moment::from_micros(100), Moment::from_micros(300));
        wait_time.waited(Moment::from_micros(200), Moment::from_micros(500));
        wait_time.waited(Moment::from_micros(250), Moment::from_micros(450));
        wait_time.waited(Moment::from_micros(600), Moment::from_micros(700));

        assert_eq!(wait_time.without_wait_time(Duration::from_micros(1_000)), Duration::from_micros(500));
        assert_eq!(wait_time.without_wait_time(Duration::from_micros(400)), Duration::ZERO);
    }
}
