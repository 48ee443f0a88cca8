//! Section `repetition`: detection of companions that repeat themselves or each other.

use serde::{Deserialize, Serialize};

use super::Problem;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Repetition {
    /// Whether repetition is measured.
    pub enabled: bool,
    /// How it is measured.
    pub judge: Judge,
}

/// What measures how much the last statements of companions repeat each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// The similarity of the words and of what they do. It costs no calls.
    Lexical,
    /// The side model, after each statement. The next round waits for it.
    Model,
    /// The similarity of the words first. If it suspects repetition, the side model confirms or rejects it.
    Both,
}

impl Repetition {
    /// Always succeeds, because no value can be out of range.
    ///
    /// # Errors
    /// None.
    pub fn check(&self) -> Result<(), Problem> {
        Ok(())
    }
}
