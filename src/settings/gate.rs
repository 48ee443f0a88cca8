//! Settings of the gate: whether and when companions speak, and what that may cost.

use std::time::Duration;

use super::{Problem, duration, within};

/// Section `gate`. The budgets count over sliding windows: limits of up to 1,440 to the microsecond, larger ones of an hour or a day in minutes of
/// the clock, each over when its newest use is, so that no window holds more than its limit.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Whether a lull or turn is decided NO without a model call when all it is about is addressed to somebody else.
    pub skip_when_other_addressed: bool,
    /// Which messages of foreign bots are taken in.
    pub foreign_bots: ForeignBots,
    /// How many unsettled messages a companion keeps per channel, those under evaluation included (1 to 10,000).
    pub max_buffer: usize,
    /// Seconds after which a message is too old to be answered, after errors, a restart, or when it is heard that late (0 to a year).
    pub stale_after_secs: f64,
    /// The same for a direct address that was not tried yet (0 to a year).
    pub stale_address_after_secs: f64,
    /// Evaluations for lull, interjection and turn per companion, channel and hour; 0 allows none.
    pub evaluations_per_hour: u32,
    /// Evaluations for lull, interjection and turn per guild and hour; 0 allows none.
    pub guild_evaluations_per_hour: u32,
    /// Direct addresses per person, guild and minute; 0 allows none.
    pub addresses_per_minute: u32,
    /// Statements per guild and day; 0 allows none.
    pub guild_statements_per_day: u32,
}

/// Which messages of foreign bots are taken in; one that is not is not recorded at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignBots {
    /// None.
    Ignore,
    /// Those that mention or answer one of the companions.
    Mentions,
    /// All.
    All,
}

impl Gate {
    /// `stale_after_secs` as a duration.
    pub fn stale_after(&self) -> Duration {
        duration(self.stale_after_secs)
    }

    /// `stale_address_after_secs` as a duration.
    pub fn stale_address_after(&self) -> Duration {
        duration(self.stale_address_after_secs)
    }

    /// Holds every value to its range.
    pub fn check(&self) -> Result<(), Problem> {
        const YEAR: f64 = 31_536_000.0;
        within("max_buffer", self.max_buffer, 1..=10_000)?;
        within("stale_after_secs", self.stale_after_secs, 0.0..=YEAR)?;
        within("stale_address_after_secs", self.stale_address_after_secs, 0.0..=YEAR)?;
        Ok(())
    }
}
