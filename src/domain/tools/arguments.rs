//! The arguments of calls, as models write them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::super::text::first_hidden;

/// A JSON object.
pub type JsonObject = Map<String, Value>;

/// Reads arguments. `None`: they are no JSON object, a key is in an object twice, or there are hidden characters, which nobody could see who confirms the
/// call.
pub fn read(text: &str) -> Option<JsonObject> {
    let Ok(Unique(Value::Object(object))) = serde_json::from_str(text) else { return None };
    let written = Value::from(object.clone()).to_string();
    let is_unseen = |c: char| c.is_control() || matches!(c, '\u{2800}' | '\u{16fe4}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    let has_hidden = first_hidden(&written).is_some() || written.contains(is_unseen);
    (!has_hidden).then_some(object)
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

/// A JSON value in which no object has a key twice. Parsers differ in which of the two they take.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeys).map(Unique)
    }
}

struct UniqueKeys;

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Unique(value))) = entries.next_entry::<String, Unique>()? {
            if object.insert(key, value).is_some() {
                return Err(de::Error::custom("a key is there twice"));
            }
        }
        Ok(object.into())
    }
}
