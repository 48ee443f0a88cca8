//! Reads values into structs without conversions: a number is not a text, `true` is not a number, and 7.9 is not 8. A list is no
//! struct.
//!
//! Every error has the path to its value. Environment variables and queries have no types, so their texts are parsed as the
//! expected type.

use std::fmt;

use config::{Map, Value, ValueKind};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde_path_to_error::Segment;

use super::mismatch::{Kind, Mismatch, Path, Step};

/// The origin that the crate `config` assigns to values from the environment. Texts with this origin have no type.
const UNTYPED: &str = "the environment";

/// An invalid value from outside, in terms of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The path of the value. `None`: the whole input.
    pub field: Option<String>,
    pub detail: String,
    /// Whether the value has the wrong type.
    pub is_mistyped: bool,
}

/// Reads a JSON text.
///
/// # Errors
/// The outer error: the text is not JSON. The inner error: a value is invalid.
pub fn json<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<Result<T, Wrong>> {
    let mut json = serde_json::Deserializer::from_slice(text);
    match serde_path_to_error::deserialize(&mut json) {
        Ok(Tree(tree)) => json.end().map(|()| read(&tree).map_err(|mismatch| wrong(&mismatch, &tree))),
        // A tree has values of all types, so a duplicate key is the only possible error.
        Err(error) if error.inner().is_data() => Ok(Err(twice(error.path().to_string()))),
        Err(error) => Err(error.into_inner()),
    }
}

/// Reads keys with their texts, such as those of a query.
///
/// # Errors
/// Returns an error if a key appears twice, or if a value is invalid.
pub fn texts<T: DeserializeOwned>(pairs: Vec<(String, String)>) -> Result<T, Wrong> {
    let mut table = Map::new();
    for (key, text) in pairs {
        if table.insert(key.clone(), Value::new(Some(&UNTYPED.to_owned()), text)).is_some() {
            return Err(twice(key));
        }
    }
    let table = Value::new(None, table);
    read(&table).map_err(|mismatch| wrong(&mismatch, &table))
}

fn twice(key: String) -> Wrong {
    Wrong { detail: format!("{key} appears twice"), field: Some(key), is_mistyped: false }
}

fn wrong(mismatch: &Mismatch, tree: &Value) -> Wrong {
    let field = mismatch.place().to_string();
    let is_mistyped = matches!(mismatch.kind, Kind::Not(_));
    let detail = mismatch.in_json(mismatch.path.value_in(tree));
    Wrong { field: (!field.is_empty()).then_some(field), detail, is_mistyped }
}

pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Mismatch> {
    serde_path_to_error::deserialize(Strict(value)).map_err(|error| {
        let steps = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key } | Segment::Enum { variant: key } => Some(Step::Key(key.clone())),
            Segment::Unknown => None,
        });
        let mut path = Path(steps.collect());
        let Mismatch { kind, .. } = error.into_inner();
        // Only some readers include the key in the path.
        if let Kind::UnknownKey(key, _) = &kind
            && path.0.last() != Some(&Step::Key(key.clone()))
        {
            path.0.push(Step::Key(key.clone()));
        }
        Mismatch { path, kind }
    })
}

/// Any TOML or JSON value without duplicate keys.
pub(super) struct Tree(pub(super) Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

macro_rules! visit {
    ($($visit:ident: $type:ty,)+) => {
        $(fn $visit<E>(self, value: $type) -> Result<Value, E> {
            Ok(Value::new(None, value))
        })+
    };
}

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    visit! {
        visit_bool: bool,
        visit_i64: i64,
        visit_u64: u64,
        visit_f64: f64,
        visit_str: &str,
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::new(None, ValueKind::Nil))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::new(None, list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if table.contains_key(&key) {
                entries.next_value_seed(Twice)?;
            }
            let Tree(value) = entries.next_value()?;
            table.insert(key, value);
        }
        Ok(Value::new(None, table))
    }
}

/// Rejects the value of a duplicate key.
struct Twice;

impl<'de> DeserializeSeed<'de> for Twice {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
        Err(D::Error::custom("appears twice"))
    }
}

#[derive(Clone, Copy)]
struct Strict<'a>(&'a Value);

impl<'a> Strict<'a> {
    /// The text, if the value has no type.
    fn untyped(&self) -> Option<&'a str> {
        match &self.0.kind {
            ValueKind::String(text) if self.0.origin() == Some(UNTYPED) => Some(text),
            _ => None,
        }
    }

    /// A list or table that is written as TOML in a variable.
    fn inline_toml(&self) -> Option<Value> {
        let text = self.untyped()?.trim();
        let Tree(mut document) = toml::from_str(&format!("value = {text}")).ok()?;
        let ValueKind::Table(table) = &mut document.kind else { return None };
        table.remove("value").filter(|value| matches!(value.kind, ValueKind::Array(_) | ValueKind::Table(_)))
    }

    fn mismatch(&self, expected: &dyn Expected) -> Mismatch {
        Mismatch::invalid_type(Unexpected::Other("something else"), expected)
    }
}

impl IntoDeserializer<'_, Mismatch> for Strict<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The entries of a table in the order of their keys, so that errors have a stable order.
fn entries<'de, 'a>(
    table: &'a Map<String, Value>,
) -> MapDeserializer<'de, impl Iterator<Item = (&'a str, Strict<'a>)>, Mismatch> {
    let mut entries: Vec<_> = table.iter().map(|(key, value)| (key.as_str(), Strict(value))).collect();
    entries.sort_by_key(|(key, _)| *key);
    MapDeserializer::new(entries.into_iter())
}

/// Parses a text without a type as the expected type, and reads every other value with its own type.
macro_rules! read_as {
    ($($method:ident, $visit:ident, $number:ty;)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            match self.untyped().map(|text| text.trim().parse::<$number>()) {
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
            ValueKind::Table(table) => visitor.visit_map(entries(table)),
            ValueKind::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Strict))),
        }
    }

    read_as! {
        deserialize_bool, visit_bool, bool;
        deserialize_u8, visit_u64, u64;
        deserialize_u16, visit_u64, u64;
        deserialize_u32, visit_u64, u64;
        deserialize_u64, visit_u64, u64;
        deserialize_f64, visit_f64, f64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0.kind {
            ValueKind::Nil => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
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
            ValueKind::Table(table) => visitor.visit_enum(MapAccessDeserializer::new(entries(table))),
            _ => Err(Mismatch::of(Kind::NotOneOf(variants))),
        }
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char str string bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
