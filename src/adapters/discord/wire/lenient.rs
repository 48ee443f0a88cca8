//! Deserializers that tolerate values of another type than documented, and numbers that are not documented yet.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The most items of a list that are read. Discord's own limits are lower.
const MAX_ITEMS: usize = 5_000;

/// The value, or its default if it is null or cannot be parsed.
pub fn maybe<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str::<Option<T>>(raw.get()).unwrap_or_default().unwrap_or_default())
}

/// The items of a list that can be parsed; empty if it is not a list.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let raws: Vec<&RawValue> = maybe(deserializer)?;
    Ok(raws.into_iter().take(MAX_ITEMS).filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect())
}

/// A number that stands for a kind of something. All larger numbers are as unknown as the largest one.
pub(super) fn kind<'de, D: Deserializer<'de>, T: From<u8>>(deserializer: D) -> Result<T, D::Error> {
    Ok(kind_of(u64::deserialize(deserializer)?))
}

/// The same; none if it is not a number.
pub(super) fn maybe_kind<'de, D: Deserializer<'de>, T: From<u8>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(maybe::<_, Option<u64>>(deserializer)?.map(kind_of))
}

fn kind_of<T: From<u8>>(number: u64) -> T {
    u8::try_from(number).unwrap_or(u8::MAX).into()
}
