//! Stores the last delivery error of each channel, for status replies and to log each error only once.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::snowflake::Snowflake;
use crate::domain::moment::Moment;

/// The limit of stored channels. Beyond it, the oldest error is dropped.
const MAX_CHANNELS: usize = 10_000;

/// The last delivery error of each channel, until a message is posted there.
///
/// It is kept only in memory. After a restart, the next failing statement records it again.
#[derive(Debug, Default)]
pub struct DeliveryErrors(Mutex<BTreeMap<Snowflake, Entry>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryError {
    pub at: Moment,
    /// The reason, with its fix in Discord, as a text for users.
    pub why: String,
    /// Set if every message would be refused. Until about this moment, nothing is sent to the channel.
    pub retry_at: Option<Moment>,
}

/// An error, and until when it blocks its channel. The time is monotonic, so setting the clock does not affect it.
#[derive(Debug)]
struct Entry {
    error: DeliveryError,
    blocked_until: Option<Instant>,
}

impl DeliveryErrors {
    /// Records that a message could not be delivered to a channel. `pause` is set if every message would be refused; it blocks the channel for that
    /// time. Returns whether the reason differs from the last one for the channel.
    pub fn record(&self, channel: Snowflake, why: &str, at: Moment, pause: Option<Duration>) -> bool {
        let mut entries = self.0.lock();
        let error = DeliveryError { at, why: why.to_owned(), retry_at: pause.map(|pause| at + pause) };
        let blocked_until = pause.map(|pause| Instant::now() + pause);
        let before = entries.insert(channel, Entry { error, blocked_until });
        if entries.len() > MAX_CHANNELS {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.error.at).map(|(channel, _)| *channel);
            oldest.and_then(|oldest| entries.remove(&oldest));
        }
        before.is_none_or(|before| before.error.why != why)
    }

    /// Clears a channel's error, because a message was posted or the channel is gone. Returns whether there was one.
    pub fn clear(&self, channel: Snowflake) -> bool {
        self.0.lock().remove(&channel).is_some()
    }

    /// Whether a channel is paused because every message would be refused.
    pub fn is_blocked(&self, channel: Snowflake) -> bool {
        self.0.lock().get(&channel).and_then(|entry| entry.blocked_until).is_some_and(|until| Instant::now() < until)
    }

    /// Ends the pause of channels where something changed. The next message is tried.
    pub fn unblock(&self, concerns: impl Fn(Snowflake) -> bool) {
        for (_, entry) in self.0.lock().iter_mut().filter(|(channel, _)| concerns(**channel)) {
            entry.blocked_until = None;
            entry.error.retry_at = None;
        }
    }

    /// Whether no channel has an error.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The last error of a channel, unless a message was posted since.
    pub fn last(&self, channel: Snowflake) -> Option<DeliveryError> {
        self.0.lock().get(&channel).map(|entry| entry.error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::snowflake::id;
    use super::*;

    #[test]
    fn an_error_lasts_until_a_message_is_posted() {
        let (errors, channel) = (DeliveryErrors::default(), id(1));

        assert!(errors.record(channel, "one", at(1), None));
        assert!(errors.record(channel, "two", at(2), None));
        assert!(!errors.record(channel, "two", at(3), None));

        assert_eq!(errors.last(channel), Some(DeliveryError { at: at(3), why: "two".to_owned(), retry_at: None }));
        assert_eq!(errors.last(id(2)), None);
        assert!(errors.clear(channel));
        assert_eq!(errors.last(channel), None);
        assert!(!errors.clear(channel));
        assert!(errors.record(channel, "two", at(4), None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_is_blocked_until_the_pause_ends_something_changes_or_a_message_is_posted() {
        let errors = DeliveryErrors::default();
        let record = |channel| errors.record(id(channel), "x", at(1), Some(Duration::from_secs(10)));
        let blocked = || [1, 2, 3, 4, 5].map(|channel| errors.is_blocked(id(channel)));

        for channel in 1..=3 {
            record(channel);
        }
        errors.record(id(4), "x", at(1), None);
        assert_eq!(blocked(), [true, true, true, false, false]);
        errors.unblock(|channel| channel == id(2));
        errors.clear(id(3));
        assert_eq!(blocked(), [true, false, false, false, false]);
        assert!(errors.last(id(2)).is_some(), "the error stays until a message is posted");
        tokio::time::advance(Duration::from_secs(9)).await;
        record(2);
        assert_eq!(blocked(), [true, true, false, false, false]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(blocked(), [false, true, false, false, false]);
    }

    #[test]
    fn the_number_of_remembered_channels_is_bounded() {
        let errors = DeliveryErrors::default();

        for number in 1..=MAX_CHANNELS as u64 + 5 {
            errors.record(id(number), "x", at(number), None);
        }

        assert_eq!(errors.0.lock().len(), MAX_CHANNELS);
        assert_eq!(errors.last(id(5)), None);
        assert!(errors.last(id(6)).is_some());
    }

    fn at(micros: u64) -> Moment {
        Moment::from_micros(micros)
    }
}
