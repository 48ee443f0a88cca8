//! A channel's own clock. It starts where the record ends, and advances whatever the machine's clock does.

use tokio::time::Instant;

use crate::domain::moment::Moment;

/// A clock that never goes back and never stops. It follows the machine's clock when that is ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelClock {
    from: Moment,
    since: Instant,
}

impl ChannelClock {
    /// A clock that shows this moment now.
    pub(super) fn new(from: Moment) -> Self {
        Self { from, since: Instant::now() }
    }

    /// The time now; `machine` is what the machine's clock shows.
    pub(super) fn now(&mut self, machine: Moment) -> Moment {
        let here = self.from + self.since.elapsed();
        if machine > here {
            *self = Self::new(machine);
            return machine;
        }
        here
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn time_advances_when_the_machines_clock_is_set_back() {
        let noon = Moment::from_micros(43_200_000_000);
        let mut channel_clock = ChannelClock::new(noon);

        tokio::time::advance(MINUTE).await;

        assert_eq!(channel_clock.now(noon - 10 * MINUTE), noon + MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_clock_that_is_ahead_is_followed() {
        let noon = Moment::from_micros(43_200_000_000);
        let mut channel_clock = ChannelClock::new(noon);

        assert_eq!(channel_clock.now(noon + 10 * MINUTE), noon + 10 * MINUTE);
        assert_eq!(channel_clock.now(noon), noon + 10 * MINUTE);
    }
}
