//! Section `names`: which names in a text are addresses.

use super::Problem;

/// Section `names`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Where names count that are everyday words.
    pub common: CommonNames,
}

/// Where names count that are everyday words, such as Will and Rose (docs/design/gate.md G-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommonNames {
    /// Where they call somebody: "Will, are you there?"
    Vocative,
    /// Anywhere, like all other names.
    Anywhere,
}

impl Names {
    pub const fn check(&self) -> Result<(), Problem> {
        Ok(())
    }
}
