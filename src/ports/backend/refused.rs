//! Why the core rejects a request.

use std::fmt::{self, Display};
use std::ops::Deref;
use std::time::Duration;

use serde_json::{Value, json};

use crate::domain::error_code::ErrorCode;
use crate::store::StoreError;
use crate::store::maintenance::MaintenanceError;
use crate::texts::Language;

/// What is wrong and what to do, in English. By the code, programs word it in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    text: String,
    /// `None`: it is in English only.
    pub code: Option<ErrorCode>,
}

impl Detail {
    /// The text with this key, in the section of [`ErrorCode`]. A value is named in JSON.
    pub fn of(key: &str, values: Value) -> Self {
        let code = ErrorCode::new(key, values);
        Self { text: said(&code, Language::English), code: Some(code) }
    }

    /// The sentence in a language, or in English where it has no code.
    pub fn said_in(&self, language: Language) -> String {
        self.code.as_ref().map_or_else(|| self.text.clone(), |code| said(code, language))
    }

    /// The text with this key, which has no values.
    pub fn key(key: &str) -> Self {
        Self::of(key, json!({}))
    }

    /// The same with a code, where the text has more in English than programs word.
    pub fn coded(self, key: &str, values: Value) -> Self {
        self.with(Some(ErrorCode::new(key, values)))
    }

    pub fn with(self, code: Option<ErrorCode>) -> Self {
        Self { code, ..self }
    }
}

fn said(code: &ErrorCode, language: Language) -> String {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values: Vec<_> = code.values().map(|(name, value)| (name, shown(value))).collect();
    let values: Vec<_> = values.iter().map(|(name, value)| (*name, value as &dyn Display)).collect();
    language.say(&code.key(), &values)
}

impl<T: Into<String>> From<T> for Detail {
    fn from(text: T) -> Self {
        Self { text: text.into(), code: None }
    }
}

impl Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Deref for Detail {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// Why the core rejects a request. Each variant is named for what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The named thing does not exist. (404)
    #[error("{0}")]
    NotFound(Detail),
    /// It conflicts with existing data. (409)
    #[error("{0}")]
    Conflict(Detail),
    /// A value cannot be accepted, now or later. (422)
    #[error("{field}: {detail}")]
    Invalid {
        /// The field, as a path: `companions.aria.interjection`.
        field: String,
        /// What is wrong, and what is allowed.
        detail: Detail,
    },
    /// It is larger than what is accepted at once. (413)
    #[error("{0}")]
    TooLarge(Detail),
    /// The caller sends requests too often. (429)
    #[error("{detail}")]
    TooMany {
        /// What is limited, and to how much.
        detail: Detail,
        /// The delay before the next attempt.
        retry_after: Duration,
    },
    /// It cannot be done now. The outcome of a write may be unknown, so repeat it with the same `id`. (503)
    #[error("{detail}")]
    Unavailable {
        /// What prevents it.
        detail: Detail,
        /// The delay before the next attempt, if it is known.
        retry_after: Option<Duration>,
    },
    /// Stored data can no longer be read. The message says what to do. (500)
    #[error("{0}")]
    Damaged(Detail),
    /// Something on our side is broken. It was logged where it broke. (500)
    #[error("{0}")]
    Broken(Detail),
}

impl Refused {
    pub fn not_found(detail: impl Into<Detail>) -> Self {
        Self::NotFound(detail.into())
    }

    pub fn conflict(detail: impl Into<Detail>) -> Self {
        Self::Conflict(detail.into())
    }

    pub fn invalid(field: impl Into<String>, detail: impl Into<Detail>) -> Self {
        Self::Invalid { field: field.into(), detail: detail.into() }
    }

    /// Not now, and nobody knows for how long.
    pub fn unavailable(detail: impl Into<Detail>) -> Self {
        Self::Unavailable { detail: detail.into(), retry_after: None }
    }

    pub fn broken(detail: impl Into<Detail>) -> Self {
        Self::Broken(detail.into())
    }

    /// The record cannot be read or copied. Logs it.
    pub fn unreadable(detail: &str) -> Self {
        tracing::error!(detail, "the record cannot be read or copied");
        Self::broken(Detail::key("refusals.record_unreadable"))
    }

    /// Stored data cannot be read. Logs it.
    pub fn damaged(detail: String) -> Self {
        tracing::error!(detail, "the record cannot be read");
        Self::Damaged(Detail::from(detail).coded("refusals.data_damaged", json!({})))
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unknown(_) | StoreError::Failed(_) => Self::unreadable(&error.to_string()),
            StoreError::Damaged(_) => Self::damaged(error.to_string()),
        }
    }
}

impl From<MaintenanceError> for Refused {
    fn from(error: MaintenanceError) -> Self {
        match error {
            MaintenanceError::Exists(detail) | MaintenanceError::Elsewhere(detail) => Self::conflict(detail),
            MaintenanceError::Target(detail) => Self::invalid("to", detail),
            MaintenanceError::Damaged(detail) => Self::damaged(detail),
            MaintenanceError::Failed(detail) => Self::unreadable(&detail),
        }
    }
}
