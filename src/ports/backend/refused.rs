//! Why the core rejects a request.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::ops::Deref;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::error_code::ErrorCode;
use crate::store::StoreError;
use crate::store::maintenance::MaintenanceError;
use crate::texts::Language;

/// The error and how to fix it, in English. The code lets programs word it in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    text: String,
    /// `None`: the text exists only in English.
    pub code: Option<ErrorCode>,
}

impl Detail {
    /// The text with this key, in the section of [`ErrorCode`]. `values` is a JSON object with named values.
    pub fn of(key: &str, values: Value) -> Self {
        let code = ErrorCode::new(key, values);
        Self { text: said(&code, Language::English), code: Some(code) }
    }

    /// The text in a language, or in English if it has no code.
    pub fn said_in(&self, language: Language) -> String {
        self.code.as_ref().map_or_else(|| self.text.clone(), |code| said(code, language))
    }

    /// The text with this key, without values.
    pub fn key(key: &str) -> Self {
        Self::of(key, json!({}))
    }

    /// Adds a code to a text that says more in English than programs do in other languages.
    pub fn coded(self, key: &str, values: Value) -> Self {
        self.with(Some(ErrorCode::new(key, values)))
    }

    pub fn with(self, code: Option<ErrorCode>) -> Self {
        Self { code, ..self }
    }

    /// The code and its values. A text that exists only in English has the code `other`.
    pub fn why(&self) -> Why {
        Why(self.code.as_ref().map_or_else(|| json!({ "code": Why::OTHER, "text": self.text }), |code| json!(code)))
    }
}

fn said(code: &ErrorCode, language: Language) -> String {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values: Vec<_> = code.values().map(|(name, value)| (name, shown(value))).collect();
    let values: Vec<_> = values.iter().map(|(name, value)| (*name, value as &dyn Display)).collect();
    language.say(&code.key(), &values)
}

/// A sentence for programs that word it themselves, in another language: a code and values, such as `{"code": "not_stored"}`. With the code `other`, `text`
/// is the sentence, in English.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Why(Value);

impl Why {
    const OTHER: &str = "other";

    /// Names the field that the sentence is about, because it begins with a verb.
    #[must_use]
    pub fn about(mut self, field: &str) -> Self {
        self.0["field"] = field.into();
        self
    }
}

impl JsonSchema for Why {
    fn schema_name() -> Cow<'static, str> {
        "Why".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: BTreeSet<_> = Language::keys(ErrorCode::SECTION).into_iter().chain([Self::OTHER]).collect();
        json_schema!({
            "description": "A sentence for programs that word it themselves, in another language: a code and values.",
            "type": "object",
            "required": ["code"],
            "properties": { "code": { "type": "string", "enum": codes } },
        })
    }
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

/// Why the core rejects a request. Each variant corresponds to the caller's next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The requested item does not exist. (404)
    #[error("{0}")]
    NotFound(Detail),
    /// The request conflicts with existing data. (409)
    #[error("{0}")]
    Conflict(Detail),
    /// A value cannot be accepted, now or later. (422)
    #[error("{field}: {detail}")]
    Invalid {
        /// The field, as a path: `companions.aria.interjection`.
        field: String,
        /// The error, and the allowed values.
        detail: Detail,
    },
    /// The request is larger than the accepted maximum. (413)
    #[error("{0}")]
    TooLarge(Detail),
    /// The caller sends requests too often. (429)
    #[error("{detail}")]
    TooMany {
        /// The limit, and its value.
        detail: Detail,
        /// The delay before the next attempt.
        retry_after: Duration,
    },
    /// The request cannot be served now. The outcome of a write may be unknown, so repeat it with the same `id`. (503)
    #[error("{detail}")]
    Unavailable {
        /// The cause.
        detail: Detail,
        /// The delay before the next attempt, if it is known.
        retry_after: Option<Duration>,
    },
    /// Stored data can no longer be read. The message says what to do. (500)
    #[error("{0}")]
    Damaged(Detail),
    /// An internal error, which has been logged. (500)
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

    /// The request cannot be served now. The delay before the next attempt is unknown.
    pub fn unavailable(detail: impl Into<Detail>) -> Self {
        Self::Unavailable { detail: detail.into(), retry_after: None }
    }

    pub fn broken(detail: impl Into<Detail>) -> Self {
        Self::Broken(detail.into())
    }

    /// The record cannot be read or copied. Logs the error.
    pub fn unreadable(detail: &str) -> Self {
        tracing::error!(detail, "the record cannot be read or copied");
        Self::broken(Detail::key("refusals.record_unreadable"))
    }

    /// Stored data cannot be read. Logs the error.
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
