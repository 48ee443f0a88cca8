//! Parses only selected fields of a JSON object.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The values of the fields with these names, in the order of the names. A missing field, or one that is `null`, is `None`. Other fields are skipped.
///
/// # Errors
/// Returns an error if the text is not JSON, or not an object.
pub(in crate::adapters) fn fields<'a, const N: usize>(
    json: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(json);
    let found = json.deserialize_map(Wanted(names))?;
    json.end().map(|()| found)
}

struct Wanted<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for Wanted<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        let mut found = [None; N];
        while let Some(Name(name)) = fields.next_key()? {
            match self.0.iter().position(|wanted| *wanted == name) {
                Some(at) => found[at] = fields.next_value()?,
                None => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_fields_are_found_and_others_are_skipped() {
        let found = |json| fields(json, ["a", "b", "c"]).map(|found| found.map(|value| value.map(RawValue::get))).ok();

        assert_eq!(found(r#"{"b":[1, {}],"x":{"a":7},"\u0061":"1"}"#), Some([Some("\"1\""), Some("[1, {}]"), None]));
        assert_eq!(found(r#"{"a":null,"c":1,"c":2}"#), Some([None, None, Some("2")]));
        assert_eq!(["[]", "7", "", "{", "{} {}", r#"{"a":}"#].map(found), [None; 6]);
    }
}
