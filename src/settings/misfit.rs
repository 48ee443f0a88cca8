//! Rewrites serde's messages about invalid JSON in terms of JSON.

use super::mismatch::suggestion;
use crate::domain::text::shortened;

/// How many characters of a value are shown.
const SHOWN: usize = 40;

/// Says what is wrong with a value and what it must be, without its place: `is null, must be an object`.
///
/// `message` is serde_json's message without line and column. Returns `None` for other messages, such as those of our own checks.
pub fn misfit(message: &str) -> Option<String> {
    let (kind, rest) = message.split_once(' ')?;
    let (what, rest) = rest.split_once(' ')?;
    match (kind, what.trim_end_matches(':')) {
        ("invalid", "type" | "value") => {
            let (found, expected) = rest.rsplit_once(", expected ")?;
            Some(format!("is {}, must be {}", found_text(found), expected_text(expected)))
        }
        ("invalid", "length") => {
            let (found, expected) = rest.split_once(", expected ")?;
            Some(format!("is a list of {found}, must be {}", expected_text(expected)))
        }
        ("missing", "field") => Some("is missing".to_owned()),
        ("duplicate", "field") => Some("appears twice".to_owned()),
        ("unknown", "field") => {
            let (key, known) = name_and_known(rest)?;
            Some(format!("is not known; {}", suggestion(key, &known)))
        }
        ("unknown", "variant") => {
            let (name, known) = name_and_known(rest)?;
            Some(format!("is {:?}, must be one of {}", shortened(name, SHOWN), known.join(", ")))
        }
        _ => None,
    }
}

/// Removes the place at the end of a message, such as ` at line 1 column 26`.
pub fn without_place(message: &str) -> &str {
    match message.rsplit_once(" at line ") {
        Some((before, place)) if place.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) => before,
        _ => message,
    }
}

/// The unknown name and the known names in `` `nope`, expected one of `a`, `b` ``.
fn name_and_known(rest: &str) -> Option<(&str, Vec<&str>)> {
    let rest = rest.strip_prefix('`')?;
    // The name can contain anything, so search from the end.
    let (name, known) = rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, there are no fields"))?;
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

fn found_text(found: &str) -> String {
    let quoted = |kind: &str| found.strip_prefix(kind)?.strip_prefix(" `")?.strip_suffix('`');
    let plain = ["integer", "floating point", "boolean", "character"].iter().find_map(|kind| quoted(kind));
    match (found, plain) {
        ("unit value", _) => "null".to_owned(),
        ("map", _) => "an object".to_owned(),
        ("sequence", _) => "a list".to_owned(),
        (_, Some(value)) => value.to_owned(),
        _ => shortened(found.strip_prefix("string ").unwrap_or(found), SHOWN).into_owned(),
    }
}

/// The JSON term for the type that serde expects.
fn expected_text(expected: &str) -> String {
    let text = match expected {
        "u64" | "usize" => "a whole number from 0 up",
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" => "a text",
        "a sequence" => "a list",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other => other,
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code)]
    struct Sample {
        paused: bool,
        count: u64,
        share: f64,
        names: Vec<String>,
        level: Level,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Level {
        Low,
        High,
    }

    fn message<T: DeserializeOwned>(json: &str) -> String {
        let error = serde_json::from_str::<T>(json).map(drop).unwrap_err().to_string();
        misfit(without_place(&error)).unwrap_or(error)
    }

    #[test]
    fn the_value_and_the_expected_type_are_named_in_terms_of_json() {
        assert_eq!(message::<Sample>("null"), "is null, must be an object");
        assert_eq!(message::<bool>("5"), "is 5, must be true or false");
        assert_eq!(message::<u64>("-1"), "is -1, must be a whole number from 0 up");
        assert_eq!(message::<u64>("1.5"), "is 1.5, must be a whole number from 0 up");
        assert_eq!(message::<f64>("\"a, expected b\""), "is \"a, expected b\", must be a number");
        assert_eq!(message::<Vec<String>>("{}"), "is an object, must be a list");
        assert_eq!(message::<String>("[]"), "is a list, must be a text");
        assert_eq!(message::<String>("true"), "is true, must be a text");
        assert_eq!(message::<Level>("\"mid\""), "is \"mid\", must be one of low, high");
    }

    #[test]
    fn missing_duplicate_and_unknown_keys_are_named() {
        assert_eq!(message::<Sample>("{}"), "is missing");
        assert_eq!(message::<Sample>(r#"{"count": 1, "count": 2}"#), "appears twice");
        assert_eq!(message::<Sample>(r#"{"pausd": true}"#), "is not known; did you mean paused?");
        assert_eq!(message::<Sample>(r#"{"zzz": true}"#), "is not known; known keys: paused, count, share, names, level");
    }

    #[test]
    fn a_long_value_is_cut_and_other_messages_stay() {
        let long = message::<u64>(&format!("\"{}\"", "ü".repeat(100)));

        assert!(long.contains('…') && long.chars().count() < 100, "{long}");
        assert_eq!(misfit("importance is 11, must be a number from 0 to 10"), None);
        assert_eq!(misfit(""), None);
        assert_eq!(without_place("it lies at line 1 column 2"), "it lies");
        assert_eq!(without_place("it stands at line up"), "it stands at line up");
    }
}
