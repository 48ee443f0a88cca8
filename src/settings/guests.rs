//! Section `guests`: how much people who came by an invitation may use on one day.

use super::{Problem, within};
use crate::domain::guests::Bounds;

#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guests {
    /// The bounds of one guest.
    pub each: Bounds,
    /// The bounds of all guests of one invitation together, so that another name resets nothing.
    pub together: Bounds,
}

impl Guests {
    pub(super) fn check(&self) -> Result<(), Problem> {
        for (name, bounds) in [("each", &self.each), ("together", &self.together)] {
            let key = |key: &str| format!("{name}.{key}");
            let Bounds { messages_per_day, voice_minutes_per_day, tokens_per_day } = *bounds;
            for (key, value, range) in [
                (key("messages_per_day"), messages_per_day, 1..=1_000_000),
                (key("voice_minutes_per_day"), voice_minutes_per_day, 0..=100_000),
                (key("tokens_per_day"), tokens_per_day, 1_000..=10_000_000_000),
            ] {
                within(&key, value, range)?;
            }
        }
        Ok(())
    }
}
