//! Codes of errors, for programs that show them in another language.

use serde::Serialize;
use serde_json::{Map, Value};

/// The reason of a refusal: a code and its values, such as `{"code": "room_exists", "room": "Kitchen"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ErrorCode(Box<Map<String, Value>>);

impl ErrorCode {
    /// The prefix of the keys of their texts (`src/texts`).
    pub const SECTION: &'static str = "refusals.";

    /// A code with its values. `key` is the key of its text.
    pub fn new(key: &str, values: Value) -> Self {
        let mut object = if let Value::Object(values) = values { values } else { Map::new() };
        object.insert("code".to_owned(), key.strip_prefix(Self::SECTION).unwrap_or(key).into());
        Self(Box::new(object))
    }

    /// The key of the text for users.
    pub fn key(&self) -> String {
        format!("{}{}", Self::SECTION, self.0["code"].as_str().unwrap_or_default())
    }

    /// The values with their names.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().filter(|(name, _)| *name != "code").map(|(name, value)| (name.as_str(), value))
    }
}
