//! Reads values into structs without conversions: a number is not a text, `true` is not a number, and 7.9 is not 8.
//!
//! Every error has the path to its value. Environment variables have no types, so their texts are parsed as the type that is expected.

use config::{Map, Value, ValueKind};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};

use super::mismatch::{Kind, Mismatch, Step};

/// The origin that the crate `config` gives to values from the environment.
const ENVIRONMENT: &str = "the environment";

pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Mismatch> {
    T::deserialize(Strict(value))
}

/// Converts a TOML value to one of the crate `config`.
pub(super) fn from_toml(value: toml::Value) -> Value {
    let kind = match value {
        toml::Value::String(text) => ValueKind::String(text),
        toml::Value::Integer(number) => ValueKind::I64(number),
        toml::Value::Float(number) => ValueKind::Float(number),
        toml::Value::Boolean(truth) => ValueKind::Boolean(truth),
        // No setting is a date, and `Nil` is rejected everywhere.
        toml::Value::Datetime(_) => ValueKind::Nil,
        toml::Value::Array(items) => ValueKind::Array(items.into_iter().map(from_toml).collect()),
        toml::Value::Table(table) => ValueKind::Table(table.into_iter().map(|(key, value)| (key, from_toml(value))).collect()),
    };
    Value::new(None, kind)
}

/// Converts a JSON value to one of the crate `config`. Keys with the value `null` count as absent.
pub(super) fn from_json(value: serde_json::Value) -> Value {
    let kind = match value {
        serde_json::Value::Null => ValueKind::Nil,
        serde_json::Value::Bool(truth) => ValueKind::Boolean(truth),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => ValueKind::I64(number),
            (None, Some(number)) => ValueKind::U64(number),
            (None, None) => ValueKind::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => ValueKind::String(text),
        serde_json::Value::Array(items) => ValueKind::Array(items.into_iter().map(from_json).collect()),
        serde_json::Value::Object(object) => {
            let present = object.into_iter().filter(|(_, value)| !value.is_null());
            ValueKind::Table(present.map(|(key, value)| (key, from_json(value))).collect())
        }
    };
    Value::new(None, kind)
}

struct Strict<'a>(&'a Value);

impl<'a> Strict<'a> {
    /// The text, if the value is from an environment variable.
    fn variable(&self) -> Option<&'a str> {
        match &self.0.kind {
            ValueKind::String(text) if self.0.origin() == Some(ENVIRONMENT) => Some(text),
            _ => None,
        }
    }

    /// A list or table that is written as TOML in a variable.
    fn inline_toml(&self) -> Option<Value> {
        let text = self.variable()?.trim();
        let mut document: toml::Table = format!("value = {text}").parse().ok()?;
        document.remove("value").filter(|value| value.is_array() || value.is_table()).map(from_toml)
    }

    fn mismatch(&self, expected: &dyn Expected) -> Mismatch {
        de::Error::invalid_type(Unexpected::Other("something else"), expected)
    }
}

/// Parses a variable's text as the expected type, and reads every other value as the type it has.
macro_rules! read_as {
    ($($method:ident, $visit:ident, $number:ty;)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            match self.variable().map(|text| text.trim().parse::<$number>()) {
                None => self.deserialize_any(visitor),
                Some(Ok(value)) => visitor.$visit(value),
                Some(Err(_)) => Err(self.mismatch(&visitor)),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Strict<'_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match &self.0.kind {
            ValueKind::Nil => visitor.visit_unit(),
            ValueKind::Boolean(truth) => visitor.visit_bool(*truth),
            ValueKind::I64(number) => visitor.visit_i64(*number),
            ValueKind::I128(number) => visitor.visit_i128(*number),
            ValueKind::U64(number) => visitor.visit_u64(*number),
            ValueKind::U128(number) => visitor.visit_u128(*number),
            ValueKind::Float(number) => visitor.visit_f64(*number),
            ValueKind::String(text) => visitor.visit_str(text),
            ValueKind::Table(table) => visitor.visit_map(Entries::of(table)),
            ValueKind::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
        }
    }

    read_as! {
        deserialize_bool, visit_bool, bool;
        deserialize_i8, visit_i64, i64;
        deserialize_i16, visit_i64, i64;
        deserialize_i32, visit_i64, i64;
        deserialize_i64, visit_i64, i64;
        deserialize_u8, visit_u64, u64;
        deserialize_u16, visit_u64, u64;
        deserialize_u32, visit_u64, u64;
        deserialize_u64, visit_u64, u64;
        deserialize_f32, visit_f64, f64;
        deserialize_f64, visit_f64, f64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.inline_toml() {
            Some(value) => Strict(&value).deserialize_any(visitor),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        if let ValueKind::Array(_) = self.0.kind {
            return Err(self.mismatch(&visitor));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match &self.0.kind {
            ValueKind::String(text) => visitor.visit_enum(StrDeserializer::new(text)),
            ValueKind::Table(table) => visitor.visit_enum(MapAccessDeserializer::new(Entries::of(table))),
            _ => Err(Mismatch::of(Kind::NotOneOf(variants))),
        }
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The entries of a table in the order of their keys, so that errors come in a stable order.
struct Entries<'a> {
    rest: std::vec::IntoIter<(&'a String, &'a Value)>,
    current: Option<(&'a String, &'a Value)>,
}

impl<'a> Entries<'a> {
    fn of(table: &'a Map<String, Value>) -> Self {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        Self { rest: entries.into_iter(), current: None }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mismatch> {
        self.current = self.rest.next();
        let Some((key, _)) = self.current else { return Ok(None) };
        seed.deserialize(key.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        let (key, value) = self.current.take().ok_or_else(|| Mismatch::of(Kind::Other("a value without a key".to_owned())))?;
        seed.deserialize(Strict(value)).map_err(|mismatch| mismatch.under(Step::Key(key.clone())))
    }
}

struct Items<'a> {
    items: &'a [Value],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mismatch> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Strict(item)).map(Some).map_err(|mismatch| mismatch.under(Step::Index(index)))
    }
}
