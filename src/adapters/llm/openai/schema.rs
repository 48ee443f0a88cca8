//! Writes the schema of an answer with its fields in order.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// A JSON schema whose properties are written in the order of its `required`, because endpoints make models write the fields in
/// the order of the properties. A [`Value`] has them in alphabetical order.
pub(super) struct Ordered<'a>(pub(super) &'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(schema) = self.0.as_object() else { return self.0.serialize(serializer) };
        let required = schema.get("required").and_then(Value::as_array);
        let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut map = serializer.serialize_map(Some(schema.len()))?;
        for (key, value) in schema {
            match value.as_object().filter(|_| key == "properties") {
                Some(properties) => map.serialize_entry(key, &Properties { properties, required: &required })?,
                None => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

/// Whether a schema can be followed strictly: it allows no additional properties, and requires all of its properties (OpenAI,
/// Structured Outputs).
pub(super) fn is_strict(schema: &Value) -> bool {
    let names = |key: &str| schema.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let properties = schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    schema.get("additionalProperties") == Some(&Value::Bool(false)) && properties > 0 && names("required") == properties
}

struct Properties<'a> {
    properties: &'a Map<String, Value>,
    required: &'a [&'a str],
}

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let required = self.required.iter().filter_map(|name| self.properties.get_key_value(*name));
        let others = self.properties.iter().filter(|(name, _)| !self.required.contains(&name.as_str()));
        serializer.collect_map(required.chain(others))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_are_written_in_the_order_of_the_required_ones() {
        let schema = json!({ "type": "object", "properties": { "a": {}, "b": {}, "c": {} }, "required": ["c", "a"] });

        let written = serde_json::to_string(&Ordered(&schema)).expect("it is JSON");

        assert_eq!(written, r#"{"properties":{"c":{},"a":{},"b":{}},"required":["c","a"],"type":"object"}"#);
        assert_eq!(serde_json::to_value(Ordered(&json!(true))).expect("it is JSON"), json!(true));
    }

    #[test]
    fn a_schema_is_strict_if_it_requires_all_that_it_knows_and_knows_nothing_else() {
        let schema = |required: &[&str], others: bool| json!({ "type": "object", "properties": { "a": {}, "b": {} }, "required": required, "additionalProperties": others });

        assert!(is_strict(&schema(&["b", "a"], false)));
        for schema in [schema(&["a"], false), schema(&["a", "b"], true), json!({ "type": "object" }), json!(true)] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }
}
