//! Section `closing`: when a conversation is over.

use std::time::Duration;

use serde::Deserialize;

use super::{Problem, duration, within};

/// When a conversation is over.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Seconds of quiet after which the next message begins a new episode (1 to 604,800).
    pub episode_idle_secs: f64,
}

impl Closing {
    /// `episode_idle_secs` as a duration.
    pub fn episode_idle(&self) -> Duration {
        duration(self.episode_idle_secs)
    }

    /// Holds every value to its range.
    ///
    /// # Errors
    /// The first value that is out of it.
    pub fn check(&self) -> Result<(), Problem> {
        within("episode_idle_secs", self.episode_idle_secs, 1.0..=604_800.0)
    }
}
