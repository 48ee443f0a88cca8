//! The two roles of models.

use super::named::named;

named! {
    pub enum ModelRole {
        /// The cheap, fast model that answers decisions and writes summaries.
        Side = "side",
        /// The model that writes statements.
        Main = "main",
    }
}

impl ModelRole {
    /// The other of the two roles.
    pub const fn other(self) -> Self {
        match self {
            Self::Side => Self::Main,
            Self::Main => Self::Side,
        }
    }

    /// The setting that limits the tokens of its answers.
    pub const fn limit_setting(self) -> &'static str {
        match self {
            Self::Side => "prompt.max_side_answer_tokens",
            Self::Main => "prompt.max_main_answer_tokens",
        }
    }
}
