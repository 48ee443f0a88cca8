//! Where something could not be said lately, for whoever asks; and once for the log.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::snowflake::Snowflake;
use crate::domain::moment::Moment;

/// Channels that are remembered; of more, the oldest trouble is forgotten.
const MOST_CHANNELS: usize = 10_000;

/// The last trouble of each channel in which nothing was posted since. Lost with the process: whoever speaks next finds it again.
#[derive(Debug, Default)]
pub struct DeliveryErrors(Mutex<BTreeMap<Snowflake, Noted>>);

/// What went wrong, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryError {
    /// When it did.
    pub at: Moment,
    /// In plain words, with what to click.
    pub why: String,
    /// Any words would be refused, and no others are tried before about this moment.
    pub tried_again_at: Option<Moment>,
}

/// A trouble, and how long it bars its channel by a clock that nobody sets.
#[derive(Debug)]
struct Noted {
    trouble: DeliveryError,
    barred_until: Option<Instant>,
}

impl DeliveryErrors {
    /// Something could not be said in a channel; if nothing could be, it is tried again after this pause. Whether that is news: it did not
    /// fail there for the same reason before.
    pub fn note(&self, channel: Snowflake, why: &str, at: Moment, pause: Option<Duration>) -> bool {
        let mut troubles = self.lock();
        let trouble = DeliveryError { at, why: why.to_owned(), tried_again_at: pause.map(|pause| at + pause) };
        let barred_until = pause.map(|pause| Instant::now() + pause);
        let before = troubles.insert(channel, Noted { trouble, barred_until });
        if troubles.len() > MOST_CHANNELS {
            let oldest = troubles.iter().min_by_key(|(_, noted)| noted.trouble.at).map(|(channel, _)| *channel);
            oldest.and_then(|oldest| troubles.remove(&oldest));
        }
        before.is_none_or(|before| before.trouble.why != why)
    }

    /// Something was said in a channel, or it is gone. Whether there had been trouble.
    pub fn over(&self, channel: Snowflake) -> bool {
        self.lock().remove(&channel).is_some()
    }

    /// Whether any words in a channel are known to be refused, and it is not the time to try again.
    pub fn bar(&self, channel: Snowflake) -> bool {
        self.lock().get(&channel).and_then(|noted| noted.barred_until).is_some_and(|until| Instant::now() < until)
    }

    /// Something changed for these channels: it is tried with the next words.
    pub fn try_again(&self, concerns: impl Fn(Snowflake) -> bool) {
        for (_, noted) in self.lock().iter_mut().filter(|(channel, _)| concerns(**channel)) {
            noted.barred_until = None;
            noted.trouble.tried_again_at = None;
        }
    }

    /// Whether there is no trouble anywhere.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The last trouble in a channel, if nothing was said in it since.
    pub fn last(&self, channel: Snowflake) -> Option<DeliveryError> {
        self.lock().get(&channel).map(|noted| noted.trouble.clone())
    }

    // Nothing in here is half done when somebody panics.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Snowflake, Noted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_lasts_until_something_is_said() {
        let (troubles, channel) = (DeliveryErrors::default(), id(1));

        assert!(troubles.note(channel, "one", at(1), None));
        assert!(troubles.note(channel, "two", at(2), None));
        assert!(!troubles.note(channel, "two", at(3), None));

        assert_eq!(troubles.last(channel), Some(DeliveryError { at: at(3), why: "two".to_owned(), tried_again_at: None }));
        assert_eq!(troubles.last(id(2)), None);
        assert!(troubles.over(channel));
        assert_eq!(troubles.last(channel), None);
        assert!(!troubles.over(channel));
        assert!(troubles.note(channel, "two", at(4), None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_bars_all_words_does_so_until_it_is_tried_again_something_changes_or_is_said() {
        let troubles = DeliveryErrors::default();
        let note = |channel| troubles.note(id(channel), "x", at(1), Some(Duration::from_secs(10)));
        let bars = || [1, 2, 3, 4, 5].map(|channel| troubles.bar(id(channel)));

        for channel in 1..=3 {
            note(channel);
        }
        troubles.note(id(4), "x", at(1), None);
        assert_eq!(bars(), [true, true, true, false, false]);
        troubles.try_again(|channel| channel == id(2));
        troubles.over(id(3));
        assert_eq!(bars(), [true, false, false, false, false]);
        assert!(troubles.last(id(2)).is_some(), "it is told until something is said");
        tokio::time::advance(Duration::from_secs(9)).await;
        note(2);
        assert_eq!(bars(), [true, true, false, false, false]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(bars(), [false, true, false, false, false]);
    }

    #[test]
    fn no_more_is_remembered_than_can_be() {
        let troubles = DeliveryErrors::default();

        for number in 1..=MOST_CHANNELS as u64 + 5 {
            troubles.note(id(number), "x", at(number), None);
        }

        assert_eq!(troubles.lock().len(), MOST_CHANNELS);
        assert_eq!(troubles.last(id(5)), None);
        assert!(troubles.last(id(6)).is_some());
    }

    fn id(number: u64) -> Snowflake {
        Snowflake::new(number).unwrap()
    }

    fn at(micros: u64) -> Moment {
        Moment::from_micros(micros)
    }
}
