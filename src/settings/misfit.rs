//! What serde says of JSON that does not fit, in the words of whoever wrote it.

use super::mismatch::way_out;

/// Characters of a value that are shown.
const SHOWN: usize = 40;

/// What is wrong with a value and what it has to be, without where it is: `is null, must be an object`.
///
/// `told` is what serde_json says without line and column. What is no such sentence, a check of our own for example, comes back as none.
pub fn misfit(told: &str) -> Option<String> {
    let (kind, rest) = told.split_once(' ')?;
    let (what, rest) = rest.split_once(' ')?;
    match (kind, what.trim_end_matches(':')) {
        ("invalid", "type" | "value") => {
            let (found, expected) = rest.rsplit_once(", expected ")?;
            Some(format!("is {}, must be {}", found_as(found), plainly(expected)))
        }
        ("invalid", "length") => {
            let (found, expected) = rest.split_once(", expected ")?;
            Some(format!("is a list of {found}, must be {}", plainly(expected)))
        }
        ("missing", "field") => Some("is missing".to_owned()),
        ("duplicate", "field") => Some("is there twice".to_owned()),
        ("unknown", "field") => {
            let (key, known) = named(rest)?;
            Some(format!("is not known; {}", way_out(key, &known)))
        }
        ("unknown", "variant") => {
            let (name, known) = named(rest)?;
            Some(format!("is {:?}, must be one of {}", cut(name), known.join(", ")))
        }
        _ => None,
    }
}

/// Without ` at line 1 column 26`.
pub fn without_place(told: &str) -> &str {
    match told.rsplit_once(" at line ") {
        Some((told, place)) if place.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) => told,
        _ => told,
    }
}

/// Of `` `nope`, expected one of `a`, `b` ``, the name and those that there are.
fn named(rest: &str) -> Option<(&str, Vec<&str>)> {
    let rest = rest.strip_prefix('`')?;
    // A name may hold anything; what follows does not.
    let (name, known) = rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, there are no fields"))?;
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

fn found_as(found: &str) -> String {
    let quoted = |kind: &str| found.strip_prefix(kind)?.strip_prefix(" `")?.strip_suffix('`');
    let plain = ["integer", "floating point", "boolean", "character"].iter().find_map(|kind| quoted(kind));
    match (found, plain) {
        ("unit value", _) => "null".to_owned(),
        ("map", _) => "an object".to_owned(),
        ("sequence", _) => "a list".to_owned(),
        (_, Some(value)) => value.to_owned(),
        _ => cut(found.strip_prefix("string ").unwrap_or(found)),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What serde expects, in the words of JSON.
fn plainly(expected: &str) -> String {
    let known = match expected {
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
    known.to_owned()
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

    fn said<T: DeserializeOwned>(json: &str) -> String {
        let error = serde_json::from_str::<T>(json).map(drop).unwrap_err().to_string();
        misfit(without_place(&error)).unwrap_or(error)
    }

    #[test]
    fn what_is_there_and_what_it_has_to_be_are_told_in_the_words_of_json() {
        assert_eq!(said::<Sample>("null"), "is null, must be an object");
        assert_eq!(said::<bool>("5"), "is 5, must be true or false");
        assert_eq!(said::<u64>("-1"), "is -1, must be a whole number from 0 up");
        assert_eq!(said::<u64>("1.5"), "is 1.5, must be a whole number from 0 up");
        assert_eq!(said::<f64>("\"a, expected b\""), "is \"a, expected b\", must be a number");
        assert_eq!(said::<Vec<String>>("{}"), "is an object, must be a list");
        assert_eq!(said::<String>("[]"), "is a list, must be a text");
        assert_eq!(said::<String>("true"), "is true, must be a text");
        assert_eq!(said::<Level>("\"mid\""), "is \"mid\", must be one of low, high");
    }

    #[test]
    fn keys_that_are_missing_doubled_or_unknown_are_told_with_the_way_out() {
        assert_eq!(said::<Sample>("{}"), "is missing");
        assert_eq!(said::<Sample>(r#"{"count": 1, "count": 2}"#), "is there twice");
        assert_eq!(said::<Sample>(r#"{"pausd": true}"#), "is not known; did you mean paused?");
        assert_eq!(said::<Sample>(r#"{"zzz": true}"#), "is not known; known here are paused, count, share, names, level");
    }

    #[test]
    fn a_long_value_is_cut_and_what_is_no_misfit_stays() {
        let long = said::<u64>(&format!("\"{}\"", "ü".repeat(100)));

        assert!(long.contains('…') && long.chars().count() < 100, "{long}");
        assert_eq!(misfit("importance is 11, must be a number from 0 to 10"), None);
        assert_eq!(misfit(""), None);
        assert_eq!(without_place("it lies at line 1 column 2"), "it lies");
        assert_eq!(without_place("it stands at line up"), "it stands at line up");
    }
}
