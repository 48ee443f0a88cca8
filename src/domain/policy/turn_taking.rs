//! Section `turn_taking`: the selection of the next speaker among companions.

use serde::{Deserialize, Serialize};

use super::{Problem, seconds, within};

/// The maximum value of `max_turns`.
pub const MAX_TURNS: u32 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TurnTaking {
    /// How the companions of a round are asked whether they want to speak.
    pub voting: Voting,
    /// Seconds that the selected companion waits before it speaks (0 to 600).
    pub turn_delay_secs: f64,
    /// Seconds that a round waits for the States of its companions (0.001 to 3,600). Must exceed the side model's timeout.
    pub state_timeout_secs: f64,
    /// The maximum number of consecutive statements by companions without a message by a person (1 to 1,000).
    pub max_companion_streak: u32,
    /// The number of statements by companions after which a conversation ends (1 to 1,000,000). `None`: no limit.
    pub max_turns: Option<u32>,
    /// Seconds from the start of its call after which a companion loses the floor to others (1 to 3,600). It continues to write
    /// without the floor.
    pub floor_timeout_secs: f64,
    /// Seconds that an external companion has to post its statement (0.1 to 3,600).
    pub external_statement_timeout_secs: f64,
}

/// How the companions of a round are asked whether they want to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Voting {
    /// One call for each companion.
    Each,
    /// One call for all companions with the same side model.
    Together,
}

seconds! {
    TurnTaking {
        turn_delay = turn_delay_secs,
        state_timeout = state_timeout_secs,
        floor_timeout = floor_timeout_secs,
        external_statement_timeout = external_statement_timeout_secs,
    }
}

impl TurnTaking {
    pub fn check(&self) -> Result<(), Problem> {
        within("turn_delay_secs", self.turn_delay_secs, 0.0..=600.0)?;
        within("state_timeout_secs", self.state_timeout_secs, 0.001..=3_600.0)?;
        within("max_companion_streak", self.max_companion_streak, 1..=1_000)?;
        within("max_turns", self.max_turns.unwrap_or(1), 1..=MAX_TURNS)?;
        within("floor_timeout_secs", self.floor_timeout_secs, 1.0..=3_600.0)?;
        within("external_statement_timeout_secs", self.external_statement_timeout_secs, 0.1..=3_600.0)
    }
}
