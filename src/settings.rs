//! What an operator can set: one file per section, the defaults in `config/default.toml` alone.

pub mod models;

/// What is wrong with a value that parsed, told by the section that knows what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Problem {
    /// The key within its section, for example `max_buffer`.
    pub key: String,
    /// What is wrong and what is allowed, for example `is 0, must be from 1 to 10000`.
    pub message: String,
}
