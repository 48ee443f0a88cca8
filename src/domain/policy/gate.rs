//! Section `gate`: whether and when companions speak, and their budgets.

use std::collections::BTreeMap;

use super::quiet_hours::QuietHours;
use super::{Problem, seconds, within};
use crate::id::GuildId;

/// Section `gate`. The budgets count over sliding windows. Up to a limit of 1,440, each use expires with microsecond precision. Larger limits per
/// hour or day count uses by minute of the clock. A minute expires with its newest use, so no window ever has more uses than its limit.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Whether a lull or turn is decided NO without a model call if all its messages address other companions or people.
    pub skip_when_other_addressed: bool,
    /// How to decide about a direct address for which only one companion is asked.
    pub direct_address: DirectAddress,
    /// How to handle a lull, interjection or turn to which the companion is unlikely to respond.
    pub pre_gate: PreGate,
    /// With `pre_gate = "skip"`: the least logit of a message for which a companion is asked (−10 to 10).
    pub pre_gate_threshold: f64,
    /// The hours in which the companions of a guild speak only when spoken to, by the guild's id.
    pub guild_quiet_hours: BTreeMap<GuildId, QuietHours>,
    /// Which messages of foreign bots are accepted.
    pub foreign_bots: ForeignBots,
    /// The maximum number of a companion's unsettled messages per channel, including those under evaluation (1 to 10,000).
    pub max_buffer: usize,
    /// Seconds after which a message is too old to be answered (0 to a year). It may be that old after errors, after a restart, or on arrival.
    pub stale_after_secs: f64,
    /// Like `stale_after_secs`, for a direct address that has not been evaluated yet (0 to a year).
    pub stale_address_after_secs: f64,
    /// Evaluations for lull, interjection, turn and silence per companion, channel and hour; 0 allows none.
    pub evaluations_per_hour: u32,
    /// Evaluations for lull, interjection, turn and silence per guild and hour; 0 allows none.
    pub guild_evaluations_per_hour: u32,
    /// Direct addresses per person, guild and minute; 0 allows none.
    pub addresses_per_minute: u32,
    /// Statements that acknowledge events, per channel and minute (1 to 60). Further events wait, and one statement acknowledges them together.
    pub acknowledgements_per_minute: u32,
    /// Statements per guild and day; 0 allows none.
    pub guild_statements_per_day: u32,
}

/// How to handle a lull, interjection or turn to which the companion is unlikely to respond (docs/design/gate.md G-41).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PreGate {
    /// Ask the side model.
    Off,
    /// Decide NO without a call.
    Skip,
}

/// How to decide about a direct address for which only one companion is asked (docs/design/gate.md G-42).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectAddress {
    /// Ask the side model first. After a YES, the main model writes the statement.
    AskFirst,
    /// The main model decides and writes the statement in one call.
    AnswerOrPass,
}

/// Which messages of foreign bots are accepted. Others are not journaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignBots {
    /// No messages.
    Ignore,
    /// Messages that mention or answer a companion, or address all of them.
    Mentions,
    /// All messages.
    All,
}

seconds! {
    Gate {
        stale_after = stale_after_secs,
        stale_address_after = stale_address_after_secs,
    }
}

impl Gate {
    pub fn check(&self) -> Result<(), Problem> {
        const YEAR: f64 = 31_536_000.0;
        within("pre_gate_threshold", self.pre_gate_threshold, -10.0..=10.0)?;
        within("max_buffer", self.max_buffer, 1..=10_000)?;
        within("stale_after_secs", self.stale_after_secs, 0.0..=YEAR)?;
        within("stale_address_after_secs", self.stale_address_after_secs, 0.0..=YEAR)?;
        within("acknowledgements_per_minute", self.acknowledgements_per_minute, 1..=60)?;
        Ok(())
    }
}
