//! Section `closing`: when a conversation ends, and what reopens it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Problem, duration, within};

/// Section `closing`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Human messages after which a companion that has ended the conversation may speak again (1 to 10,000).
    pub reopen_after: u32,
    /// Seconds of silence after which the next message begins a new episode (1 to 604,800).
    pub episode_idle_secs: f64,
}

impl Closing {
    /// `episode_idle_secs` as a duration.
    pub fn episode_idle(&self) -> Duration {
        duration(self.episode_idle_secs)
    }

    /// Checks all ranges.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), Problem> {
        within("reopen_after", self.reopen_after, 1..=10_000)?;
        within("episode_idle_secs", self.episode_idle_secs, 1.0..=604_800.0)
    }
}
