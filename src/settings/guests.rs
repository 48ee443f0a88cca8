//! Section `guests`: the daily limits of guests who joined by an invitation.

use super::{Problem, within};
use crate::domain::guests::Bounds;

#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guests {
    /// The limits of each guest.
    pub each: Bounds,
    /// The limits of all guests of one invitation together, so that a new name resets nothing.
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
