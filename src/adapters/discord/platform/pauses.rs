//! Pauses of a kind of optional request in channels where Discord refused it: a refusal counts as an invalid request.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::snowflake::Snowflake;

/// The first pause in a channel. It doubles with each refusal.
const FIRST: Duration = Duration::from_secs(600);
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The limit of channels with a pause. Beyond it, the pause that ends first is dropped.
const MOST: usize = 10_000;

#[derive(Default)]
pub(super) struct Pauses(Mutex<BTreeMap<Snowflake, Pause>>);

#[derive(Clone, Copy)]
struct Pause {
    until: Instant,
    length: Duration,
}

impl Pauses {
    /// Whether a channel has a pause.
    pub(super) fn holds(&self, channel: Snowflake) -> bool {
        self.0.lock().get(&channel).is_some_and(|pause| Instant::now() < pause.until)
    }

    /// Starts a pause in a channel, twice as long as the last one.
    pub(super) fn begin(&self, channel: Snowflake) {
        let mut all = self.0.lock();
        let length = all.get(&channel).map_or(FIRST, |before| (before.length * 2).min(LONGEST));
        all.insert(channel, Pause { until: Instant::now() + length, length });
        if all.len() > MOST {
            let soonest = all.iter().min_by_key(|(_, pause)| pause.until).map(|(channel, _)| *channel);
            soonest.and_then(|soonest| all.remove(&soonest));
        }
    }

    /// Ends the pause in a channel, because a request worked there or something changed there.
    pub(super) fn end(&self, channel: Snowflake) {
        self.0.lock().remove(&channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refused_requests_are_retried_less_and_less_often() {
        let (pauses, channel) = (Pauses::default(), Snowflake::new(1).unwrap());
        let mut tries = 0;

        for _ in 0..7 * 24 * 60 {
            if !pauses.holds(channel) {
                tries += 1;
                pauses.begin(channel);
            }
            tokio::time::advance(Duration::from_secs(60)).await;
        }

        assert!((10..=15).contains(&tries), "{tries} in a week");
        pauses.end(channel);
        assert!(!pauses.holds(channel));
    }
}
