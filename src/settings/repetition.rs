//! Section `repetition`: noticing that companions go in circles.

use serde::{Deserialize, Serialize};

use super::Problem;

/// Noticing that companions go in circles.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Repetition {
    /// Whether it is looked at.
    pub enabled: bool,
    /// Who judges.
    pub judge: Judge,
}

/// Who judges how much the last messages repeat each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// The likeness of the words; costs nothing.
    Lexical,
    /// The side model, after each statement; the next round waits for it.
    Model,
    /// The words first; what they suspect the side model confirms.
    Both,
}

impl Repetition {
    /// Nothing here can be out of range.
    ///
    /// # Errors
    /// None.
    pub fn check(&self) -> Result<(), Problem> {
        Ok(())
    }
}
