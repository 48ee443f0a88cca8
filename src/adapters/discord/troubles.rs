//! Where something could not be said lately, for whoever asks; and once for the log.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::snowflake::Snowflake;
use crate::domain::moment::Moment;

/// Channels that are remembered; of more, the oldest trouble is forgotten.
const MOST_CHANNELS: usize = 10_000;

/// The last trouble of each channel in which nothing was posted since. Lost with the process: whoever speaks next finds it again.
#[derive(Debug, Default)]
pub struct Troubles(Mutex<BTreeMap<Snowflake, Trouble>>);

/// What went wrong, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// When it did.
    pub at: Moment,
    /// In plain words, with what to click.
    pub why: String,
}

impl Troubles {
    /// Something could not be said in a channel. Whether that is news: it did not fail there for the same reason before.
    pub fn note(&self, channel: Snowflake, why: &str, at: Moment) -> bool {
        let mut troubles = self.lock();
        let before = troubles.insert(channel, Trouble { at, why: why.to_owned() });
        if troubles.len() > MOST_CHANNELS {
            let oldest = troubles.iter().min_by_key(|(_, trouble)| trouble.at).map(|(channel, _)| *channel);
            oldest.and_then(|oldest| troubles.remove(&oldest));
        }
        before.is_none_or(|before| before.why != why)
    }

    /// Something was said in a channel, or it is gone. Whether there had been trouble.
    pub fn over(&self, channel: Snowflake) -> bool {
        self.lock().remove(&channel).is_some()
    }

    /// The last trouble in a channel, if nothing was said in it since.
    pub fn last(&self, channel: Snowflake) -> Option<Trouble> {
        self.lock().get(&channel).cloned()
    }

    // Nothing in here is half done when somebody panics.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Snowflake, Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_lasts_until_something_is_said() {
        let (troubles, channel) = (Troubles::default(), id(1));

        assert!(troubles.note(channel, "one", at(1)));
        assert!(troubles.note(channel, "two", at(2)));
        assert!(!troubles.note(channel, "two", at(3)));

        assert_eq!(troubles.last(channel), Some(Trouble { at: at(3), why: "two".to_owned() }));
        assert_eq!(troubles.last(id(2)), None);
        assert!(troubles.over(channel));
        assert_eq!(troubles.last(channel), None);
        assert!(!troubles.over(channel));
        assert!(troubles.note(channel, "two", at(4)));
    }

    #[test]
    fn no_more_is_remembered_than_can_be() {
        let troubles = Troubles::default();

        for number in 1..=MOST_CHANNELS as u64 + 5 {
            troubles.note(id(number), "x", at(number));
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
