//! What a turn waited for that is none of the server's own doing: models, programs and platforms, and delays that are meant.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::domain::moment::Moment;

/// What a turn waited for. Only the channel that it belongs to counts, so the parts need not agree at every moment.
#[derive(Debug, Default)]
pub(super) struct WaitTime {
    waited_us: AtomicU64,
    /// Up to when it was counted: what was waited for at the same time counts once.
    counted_until: AtomicU64,
}

impl WaitTime {
    /// Somebody else had to do something from then until then. To be told in the order of the ends.
    pub(super) fn waited(&self, from: Moment, until: Moment) {
        let counted = Moment::from_micros(self.counted_until.load(Ordering::Relaxed));
        let waited = until.since(from.max(counted));
        self.waited_us.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.counted_until.fetch_max(until.as_micros(), Ordering::Relaxed);
    }

    /// What is left of a span without what was waited for.
    pub(super) fn left_of(&self, span: Duration) -> Duration {
        span.saturating_sub(Duration::from_micros(self.waited_us.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_at_the_same_time_counts_once() {
        let wait_time = WaitTime::default();

        wait_time.waited(Moment::from_micros(100), Moment::from_micros(300));
        wait_time.waited(Moment::from_micros(200), Moment::from_micros(500));
        wait_time.waited(Moment::from_micros(250), Moment::from_micros(450));
        wait_time.waited(Moment::from_micros(600), Moment::from_micros(700));

        assert_eq!(wait_time.left_of(Duration::from_micros(1_000)), Duration::from_micros(500));
        assert_eq!(wait_time.left_of(Duration::from_micros(400)), Duration::ZERO);
    }
}
