//! The two roles of models.

use serde::{Deserialize, Serialize};

/// The role of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// The cheap, fast model that answers decisions and writes summaries.
    Side,
    /// The model that writes statements.
    Main,
}

impl ModelRole {
    /// The other of the two roles.
    pub const fn other(self) -> Self {
        match self {
            Self::Side => Self::Main,
            Self::Main => Self::Side,
        }
    }

    /// The name used in settings, records, spans and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Side => "side",
            Self::Main => "main",
        }
    }
}
