//! An invalid value of a setting, and the error message about it.

use std::fmt;

use config::{Value, ValueKind};
use serde::de::{self, Expected, Unexpected};

use super::companion::shortened;

/// The path to a value: `console.rooms[0].id`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path(pub Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a table.
    Key(String),
    /// Into a list.
    Index(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mismatch {
    pub path: Path,
    pub kind: Kind,
}

/// Why a value is invalid.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// The key is not a known one. The list has the known keys.
    UnknownKey(String, &'static [&'static str]),
    /// This key is missing in the table.
    Missing(&'static str),
    /// The value is not one of these names.
    NotOneOf(&'static [&'static str]),
    /// The value does not have this type, in serde's words.
    Not(String),
    /// A section's own check failed. The text follows the path.
    Other(String),
}

/// Keys that were removed, and the replacement for each.
const REMOVED: [(&str, &str); 1] = [(
    "reply.replan_within_secs",
    "what people add while a statement is being made begins it again, however late; remove the key, or set reply.max_replans = 0 to turn that off",
)];

/// The replacement for a removed key.
fn removed(path: &Path) -> Option<&'static str> {
    REMOVED.iter().find_map(|(key, instead)| (Path::of(key) == *path).then_some(*instead))
}

impl Path {
    /// Parses a path such as `console.rooms[0].id`.
    pub fn of(text: &str) -> Self {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let mut pieces = part.split('[');
            steps.extend(pieces.next().filter(|key| !key.is_empty()).map(|key| Step::Key(key.to_owned())));
            steps.extend(pieces.filter_map(|index| index.trim_end_matches(']').parse().ok()).map(Step::Index));
        }
        Self(steps)
    }

    /// The path without its last step. `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.split_last().map(|(_, rest)| Self(rest.to_vec()))
    }

    /// The longest prefix of the path that exists in a tree, and the value there.
    pub fn follow<'a>(&self, root: &'a Value) -> (Self, &'a Value) {
        let (mut depth, mut value) = (0, root);
        for step in &self.0 {
            let inner = match (step, &value.kind) {
                (Step::Key(key), ValueKind::Table(table)) => table.get(key),
                (Step::Index(index), ValueKind::Array(items)) => items.get(*index),
                _ => None,
            };
            let Some(inner) = inner else { break };
            (depth, value) = (depth + 1, inner);
        }
        (Self(self.0[..depth].to_vec()), value)
    }

    pub fn value_in<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        let (path, value) = self.follow(root);
        (path == *self).then_some(value)
    }

    /// Whether this path equals the other one or is below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether the value may be a secret. If so, it must not be shown.
    pub fn is_secret(&self) -> bool {
        let words = ["key", "token", "secret", "password", "credential"];
        let names_secret = |key: &str| words.iter().any(|word| key.contains(word));
        self.0.iter().any(|step| matches!(step, Step::Key(key) if names_secret(&key.to_lowercase())))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl Mismatch {
    /// A mismatch at the root path.
    pub fn of(kind: Kind) -> Self {
        Self { path: Path::default(), kind }
    }

    /// A mismatch at this path, with the message of a section's check.
    pub fn at(path: &str, message: impl Into<String>) -> Self {
        Self { path: Path::of(path), kind: Kind::Other(message.into()) }
    }

    /// The message without the path.
    pub fn message_without_path(&self) -> String {
        let message = self.message(None);
        let path = self.path.to_string();
        message.strip_prefix(&path).map_or(message.as_str(), str::trim_start).to_owned()
    }

    /// The path of the invalid or missing key or value.
    pub fn place(&self) -> Path {
        let mut path = self.path.clone();
        if let Kind::Missing(key) = &self.kind {
            path.0.push(Step::Key((*key).to_owned()));
        }
        path
    }

    /// The problem and its remedy. `shown` is the value as written. A value that may be a secret is left out.
    pub fn message(&self, shown: Option<&str>) -> String {
        let path = &self.path;
        let value = match shown {
            Some(text) if !path.is_secret() => format!("{path} = {text}"),
            _ => path.to_string(),
        };
        match &self.kind {
            Kind::UnknownKey(key, known) => match removed(path) {
                Some(instead) => format!("{path} was removed: {instead}"),
                None => format!("{path} is not a known key; {}", suggestion(key, known)),
            },
            Kind::Missing(_) => format!("{} is missing", self.place()),
            Kind::NotOneOf(known) => {
                let is_right = known.contains(&"operators") && shown.is_some_and(|shown| shown.contains("guest"));
                let hint = if is_right { "; guests of the page count under everyone" } else { "" };
                format!("{value} is not one of {}{hint}", known.join(", "))
            }
            Kind::Not(expected) => {
                format!("{value} is not {}", expected_text(expected, ["a text in quotes", "a list in brackets", "a table"]))
            }
            Kind::Other(message) => format!("{path} {message}").trim_start().to_owned(),
        }
    }

    /// The problem of a value in a JSON text, and its remedy.
    pub fn in_json(&self, value: Option<&Value>) -> String {
        let place = Some(self.place().to_string()).filter(|place| !place.is_empty());
        let place = place.as_deref().unwrap_or("the body");
        let found = match value.map(|value| &value.kind) {
            Some(ValueKind::Table(_)) => "an object".to_owned(),
            Some(ValueKind::Array(_)) => "a list".to_owned(),
            _ => value.and_then(plain).unwrap_or_default(),
        };
        match &self.kind {
            Kind::UnknownKey(key, known) => format!("{place} is not known; {}", suggestion(key, known)),
            Kind::Missing(_) => format!("{place} is missing"),
            Kind::NotOneOf(known) => format!("{place} is {found}, must be one of {}", known.join(", ")),
            Kind::Not(expected) => {
                format!("{place} is {found}, must be {}", expected_text(expected, ["a text", "a list", "an object"]))
            }
            Kind::Other(message) => message.clone(),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(None))
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::of(Kind::Other(message.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::of(Kind::Not(expected.to_string()))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::of(Kind::Not(expected.to_string()))
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::of(Kind::NotOneOf(known))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::of(Kind::UnknownKey(key.to_owned(), known))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::of(Kind::Missing(key))
    }
}

/// Suggests the most similar known key, or lists the known keys.
fn suggestion(key: &str, known: &[&str]) -> String {
    let similarity = |candidate: &str| strsim::normalized_damerau_levenshtein(&key.to_lowercase(), candidate);
    match known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b))) {
        Some(nearest) if similarity(nearest) > 0.6 => format!("did you mean {nearest}?"),
        _ => format!("known keys: {}", known.join(", ")),
    }
}

/// A single value in the syntax of a script.
pub(super) fn plain(value: &Value) -> Option<String> {
    match &value.kind {
        ValueKind::Nil => Some("null".to_owned()),
        ValueKind::String(text) => Some(format!("{:?}", shortened(text))),
        ValueKind::Table(_) | ValueKind::Array(_) => None,
        _ => Some(value.to_string()),
    }
}

/// A readable term for the type that serde expects.
fn expected_text(expected: &str, [text, list, table]: [&str; 3]) -> String {
    match expected {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number from 0 up".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" | "path string" => text.to_owned(),
        "a sequence" => list.to_owned(),
        "a map" => table.to_owned(),
        other if other.starts_with("struct ") => table.to_owned(),
        other => other.to_owned(),
    }
}
