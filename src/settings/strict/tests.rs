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

fn message<T: DeserializeOwned>(text: &str) -> String {
    json::<T>(text.as_bytes()).unwrap().map(drop).unwrap_err().detail
}

#[test]
fn the_value_and_the_expected_type_are_named_in_terms_of_json() {
    assert_eq!(message::<Sample>("null"), "the body is null, must be an object");
    assert_eq!(message::<Sample>("[]"), "the body is a list, must be an object");
    assert_eq!(message::<bool>("5"), "the body is 5, must be true or false");
    assert_eq!(message::<u64>("-1"), "the body is -1, must be a whole number from 0 up");
    assert_eq!(message::<u64>("1.5"), "the body is 1.5, must be a whole number from 0 up");
    assert_eq!(message::<f64>("\"a\""), "the body is \"a\", must be a number");
    assert_eq!(message::<Vec<String>>("[{}]"), "[0] is an object, must be a text");
    assert_eq!(message::<Vec<String>>("{}"), "the body is an object, must be a list");
    assert_eq!(message::<Level>("\"mid\""), "the body is \"mid\", must be one of low, high");
    assert_eq!(json::<u64>(u64::MAX.to_string().as_bytes()).unwrap(), Ok(u64::MAX));
}

#[test]
fn missing_duplicate_and_unknown_keys_are_named() {
    assert_eq!(message::<Sample>("{}"), "paused is missing");
    assert_eq!(message::<Sample>(r#"{"count": 1, "count": 2}"#), "count appears twice");
    assert_eq!(message::<Sample>(r#"{"pausd": true}"#), "pausd is not known; did you mean paused?");
    assert_eq!(message::<Sample>(r#"{"zzz": true}"#), "zzz is not known; known keys: paused, count, share, names, level");
}

#[test]
fn a_long_value_is_cut() {
    let long = message::<u64>(&format!("\"{}\"", "ü".repeat(100)));

    assert!(long.contains('…') && long.chars().count() < 130, "{long}");
}
