//! Deserializers that tolerate values of another type than documented.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::super::snowflake::Snowflake;

/// The most items of a list that are read. Discord's own limits are lower.
const MAX_ITEMS: usize = 5_000;

/// An id, as a string or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(pub Snowflake);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Discord id")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
        // Do not quote the value: it may be a text that a person wrote.
        text.parse().map(Id).map_err(|_| E::invalid_type(Unexpected::Other("a text"), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
        Snowflake::new(number).map(Id).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

/// The value, or none if it cannot be parsed.
pub fn maybe<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str::<Option<T>>(raw.get()).unwrap_or_default())
}

/// The items of a list that can be parsed; empty if it is not a list.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    let raws: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(raws.into_iter().take(MAX_ITEMS).filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect())
}

/// Whether the value is exactly `true`.
pub(super) fn is_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(maybe(deserializer)?.unwrap_or(false))
}
