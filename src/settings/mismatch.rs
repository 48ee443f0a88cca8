//! An invalid value of a setting, and the error message about it.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

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
    /// Its key is not one of these.
    UnknownKey(&'static [&'static str]),
    /// This key is missing in the table.
    Missing(&'static str),
    /// It is not one of these names.
    NotOneOf(&'static [&'static str]),
    /// It does not have this type, in serde's words.
    Not(String),
    /// A section's own check failed. The text follows the path.
    Other(String),
}

/// Keys that were removed, and what to do instead.
const REMOVED: [(&str, &str); 1] = [(
    "reply.replan_within_secs",
    "what people add while a statement is being made begins it again, however late; remove the key, or set reply.max_replans = 0 to turn that off",
)];

/// What to do instead of a key that was removed.
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

    /// Whether this is the other path itself, or a path below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether the value may be a secret. If so it must not be shown.
    pub fn is_secret(&self) -> bool {
        self.0.iter().any(|step| match step {
            Step::Key(key) => {
                let key = key.to_lowercase();
                ["key", "token", "secret", "password", "credential"].iter().any(|word| key.contains(word))
            }
            Step::Index(_) => false,
        })
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

    /// The same mismatch with a step before its path.
    pub fn under(mut self, step: Step) -> Self {
        self.path.0.insert(0, step);
        self
    }

    /// What is wrong and what to do. `shown` is the value as written; a value that may be a secret is left out.
    pub fn message(&self, shown: Option<&str>) -> String {
        let path = &self.path;
        let value = match shown {
            Some(text) if !path.is_secret() => format!("{path} = {text}"),
            _ => path.to_string(),
        };
        match &self.kind {
            Kind::UnknownKey(known) => {
                if let Some(instead) = removed(path) {
                    return format!("{path} was removed: {instead}");
                }
                let key = match path.0.last() {
                    Some(Step::Key(key)) => key,
                    _ => "",
                };
                format!("{path} is not a known key; {}", suggestion(key, known))
            }
            Kind::Missing(key) if path.0.is_empty() => format!("{key} is missing"),
            Kind::Missing(key) => format!("{path}.{key} is missing"),
            Kind::NotOneOf(known) => format!("{value} is not one of {}", known.join(", ")),
            Kind::Not(expected) => format!("{value} is not {}", expected_text(expected)),
            Kind::Other(message) => format!("{path} {message}").trim_start().to_owned(),
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
        Self::of(Kind::UnknownKey(known)).under(Step::Key(key.to_owned()))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::of(Kind::Missing(key))
    }
}

/// Suggests the key that was probably meant, or lists the known keys.
pub(super) fn suggestion(key: &str, known: &[&str]) -> String {
    let similarity = |candidate: &str| strsim::normalized_damerau_levenshtein(&key.to_lowercase(), candidate);
    match known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b))) {
        Some(nearest) if similarity(nearest) > 0.6 => format!("did you mean {nearest}?"),
        _ => format!("known keys: {}", known.join(", ")),
    }
}

/// The operator's term for the type that serde expects.
fn expected_text(expected: &str) -> String {
    match expected {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number from 0 up".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" | "path string" => "a text in quotes".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}
