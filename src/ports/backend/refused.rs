//! Why the core rejects a request.

use std::time::Duration;

/// Why the core rejects a request. Each variant is named for what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The named thing does not exist. (404)
    #[error("{0}")]
    NotFound(String),
    /// It conflicts with existing data. (409)
    #[error("{0}")]
    Conflict(String),
    /// A value cannot be accepted, now or later. (422)
    #[error("{field}: {detail}")]
    Invalid {
        /// The field, as a path: `companions.aria.interjection`.
        field: String,
        /// What is wrong, and what is allowed.
        detail: String,
    },
    /// It is larger than what is accepted at once. (413)
    #[error("{0}")]
    TooLarge(String),
    /// The caller sends requests too often. (429)
    #[error("{detail}")]
    TooMany {
        /// What is limited, and to how much.
        detail: String,
        /// The delay before the next attempt.
        retry_after: Duration,
    },
    /// It cannot be done now. The outcome of a write may be unknown, so repeat it with the same `id`. (503)
    #[error("{detail}")]
    Unavailable {
        /// What prevents it.
        detail: String,
        /// The delay before the next attempt, if it is known.
        retry_after: Option<Duration>,
    },
    /// Stored data can no longer be read. The message says what to do. (500)
    #[error("{0}")]
    Damaged(String),
    /// Something on our side is broken. It was logged where it broke. (500)
    #[error("{0}")]
    Broken(String),
}
