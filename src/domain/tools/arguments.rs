//! The arguments of calls, as models write them.

use serde_json::{Map, Value};

use super::super::text::first_hidden;

/// A JSON object.
pub type JsonObject = Map<String, Value>;

/// Reads arguments. `None`: they are no JSON object, a key is in an object twice, or there are hidden characters, which nobody could see who confirms the
/// call.
pub fn read(text: &str) -> Option<JsonObject> {
    let value: Value = serde_json::from_str(text).ok()?;
    let written = value.to_string();
    let is_unseen = |c: char| c.is_control() || matches!(c, '\u{2800}' | '\u{16fe4}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    let has_hidden = first_hidden(&written).is_some() || written.contains(is_unseen);
    // Parsers differ in which value of a duplicate key they use.
    let is_unique = written_entries(text) == entries(&value);
    match value {
        Value::Object(object) if is_unique && !has_hidden => Some(object),
        _ => None,
    }
}

/// Whether arguments are the same. Numbers are compared by value, so that 1 is 1.0.
pub fn are_same(a: &JsonObject, b: &JsonObject) -> bool {
    a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| is_same(value, other)))
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => one.as_f64() == other.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => are_same(a, b),
        _ => a == b,
    }
}

/// The number of entries that are written in the objects of a JSON text: each has a colon outside of texts.
fn written_entries(json: &str) -> usize {
    let (mut count, mut is_in_text, mut is_escaped) = (0, false, false);
    for c in json.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_in_text = !is_in_text,
            ':' if !is_in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// The number of entries in the objects of a value.
fn entries(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(entries).sum(),
        Value::Object(object) => object.len() + object.values().map(entries).sum::<usize>(),
        _ => 0,
    }
}
