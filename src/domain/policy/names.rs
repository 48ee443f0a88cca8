//! Section `names`: which names in a text are addresses.

use super::Problem;

/// Section `names`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Where names that are everyday words count as addresses.
    pub common: CommonNames,
}

/// Where names that are everyday words, such as Will and Rose, count as addresses (docs/design/gate.md G-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommonNames {
    /// Only as a vocative: "Will, are you there?"
    Vocative,
    /// Anywhere, like all other names.
    Anywhere,
}

impl Names {
    pub const fn check(&self) -> Result<(), Problem> {
        Ok(())
    }
}
