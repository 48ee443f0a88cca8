//! Section `gate`: whether and when companions speak, and their budgets.

use std::collections::BTreeMap;

use super::quiet_hours::QuietHours;
use super::{Problem, seconds, within};
use crate::id::GuildId;

/// Section `gate`. The budgets count over sliding windows. Up to a limit of 1,440, each use expires to the microsecond. Larger limits per hour or day
/// count uses by minute of the clock; a minute expires with its newest use. So no window ever has more uses than its limit.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Whether a lull or turn is decided NO without a model call if all its messages are addressed to somebody else.
    pub skip_when_other_addressed: bool,
    /// How it is decided about a direct address about which one companion alone is asked.
    pub direct_address: DirectAddress,
    /// What is done with a lull, interjection or turn about which the companion would hardly speak.
    pub pre_gate: PreGate,
    /// With `pre_gate = "skip"`: the least logit of a message about which a companion is asked (−10 to 10).
    pub pre_gate_threshold: f64,
    /// When the companions of single guilds speak only when spoken to, by the guild's id.
    pub guild_quiet_hours: BTreeMap<GuildId, QuietHours>,
    /// Which messages of foreign bots are accepted.
    pub foreign_bots: ForeignBots,
    /// The maximum number of a companion's unsettled messages per channel, including those under evaluation (1 to 10,000).
    pub max_buffer: usize,
    /// Seconds after which a message is too old to be answered, after errors, after a restart, or when it arrives that late (0 to a year).
    pub stale_after_secs: f64,
    /// The same for a direct address that has not been evaluated yet (0 to a year).
    pub stale_address_after_secs: f64,
    /// Evaluations for lull, interjection and turn per companion, channel and hour; 0 allows none.
    pub evaluations_per_hour: u32,
    /// Evaluations for lull, interjection and turn per guild and hour; 0 allows none.
    pub guild_evaluations_per_hour: u32,
    /// Direct addresses per person, guild and minute; 0 allows none.
    pub addresses_per_minute: u32,
    /// Statements that acknowledge events, per channel and minute (1 to 60). Further events wait, and are acknowledged together.
    pub acknowledgements_per_minute: u32,
    /// Statements per guild and day; 0 allows none.
    pub guild_statements_per_day: u32,
}

/// What is done with a lull, interjection or turn about which the companion would hardly speak (docs/design/gate.md G-41).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PreGate {
    /// The side model is asked.
    Off,
    /// It is decided NO without a call.
    Skip,
}

/// How it is decided about a direct address about which one companion alone is asked (docs/design/gate.md G-42).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectAddress {
    /// The side model is asked first, and the main model writes the statement.
    AskFirst,
    /// The main model decides and speaks in one call.
    AnswerOrPass,
}

/// Which messages of foreign bots are accepted. Others are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignBots {
    /// No messages.
    Ignore,
    /// Messages that mention or answer a companion.
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
