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

/// The judge that measures how much the last statements of companions repeat each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// Compares the words of the statements and their dialogue acts. It needs no calls.
    Lexical,
    /// Asks the side model after each statement. The next round waits for the answer.
    Model,
    /// Compares the words first. If that indicates repetition, the side model confirms or rejects it.
    Both,
}

impl Repetition {
    /// Always succeeds, because no value can be out of range.
    ///
    /// # Errors
    /// Never returns an error.
    pub fn check(&self) -> Result<(), Problem> {
        Ok(())
    }
}
