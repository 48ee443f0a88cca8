//! Section `closing`: when a conversation ends, and when it is reopened.

use serde::{Deserialize, Serialize};

use super::{Problem, seconds, within};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Number of human messages after which a companion that has ended the conversation may speak again (1 to 10,000).
    pub reopen_after: u32,
    /// Seconds of silence after which the next message begins a new episode (1 to 604,800).
    pub episode_idle_secs: f64,
}

seconds! {
    Closing { episode_idle = episode_idle_secs, }
}

impl Closing {
    pub fn check(&self) -> Result<(), Problem> {
        within("reopen_after", self.reopen_after, 1..=10_000)?;
        within("episode_idle_secs", self.episode_idle_secs, 1.0..=604_800.0)
    }
}
