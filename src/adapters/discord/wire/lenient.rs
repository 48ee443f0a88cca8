//! Deserializers that tolerate values of undocumented types, and numbers that are not yet documented.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The limit of items read from a list. Discord's own limits are lower.
const MAX_ITEMS: usize = 5_000;

/// Parses a value. Returns the default if it is null or invalid.
pub fn maybe<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str::<Option<T>>(raw.get()).unwrap_or_default().unwrap_or_default())
}

/// The valid items of a list. Empty if the value is not a list.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let raws: Vec<&RawValue> = maybe(deserializer)?;
    Ok(raws.into_iter().take(MAX_ITEMS).filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect())
}

/// Parses a number that identifies a kind. Numbers above 255 become 255, which is also unknown.
pub(super) fn kind<'de, D: Deserializer<'de>, T: From<u8>>(deserializer: D) -> Result<T, D::Error> {
    Ok(kind_of(u64::deserialize(deserializer)?))
}

/// Like [`kind`], but `None` if the value is not a number.
pub(super) fn maybe_kind<'de, D: Deserializer<'de>, T: From<u8>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(maybe::<_, Option<u64>>(deserializer)?.map(kind_of))
}

fn kind_of<T: From<u8>>(number: u64) -> T {
    u8::try_from(number).unwrap_or(u8::MAX).into()
}
