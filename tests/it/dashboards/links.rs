//! The links of panels: the queries that they open in Grafana's Explore.

use serde_json::Value;

/// The query of a link: the kind of the data source, and the text.
#[derive(Debug)]
pub struct LinkQuery {
    pub datasource: String,
    pub query: String,
}

/// A condition on a span: `span.decision.reason`, `=`, `budget`.
#[derive(Debug, PartialEq)]
pub struct Condition {
    pub field: String,
    pub operator: String,
    pub value: String,
}

/// Parses a link. It must have one pane, one query and the panel's time range, and everything except variables must be percent-encoded.
///
/// # Errors
/// Describes the first fault of the link.
pub fn parse_link(url: &str) -> Result<LinkQuery, String> {
    let panes = url.strip_prefix("/explore?schemaVersion=1&panes=").ok_or("it does not lead to Explore")?;
    let panes: Value = serde_json::from_str(&decoded(panes)?).map_err(|error| error.to_string())?;
    let pane =
        panes.as_object().filter(|panes| panes.len() == 1).and_then(|panes| panes.values().next()).ok_or("not one pane")?;
    if pane["range"] != serde_json::json!({ "from": "${__from}", "to": "${__to}" }) {
        return Err("it has another time range".to_owned());
    }
    let [query] = &pane["queries"].as_array().ok_or("no queries")?[..] else { return Err("not one query".to_owned()) };
    let datasource = query["datasource"]["type"].as_str().ok_or("no data source")?.to_owned();
    let (variable, text) = match datasource.as_str() {
        "tempo" => ("${tempo}", &query["query"]),
        "loki" => ("${loki}", &query["expr"]),
        _ => return Err(format!("links to {datasource} are not allowed")),
    };
    if pane["datasource"] != variable || query["datasource"]["uid"] != variable {
        return Err(format!("its data source is not {variable}"));
    }
    Ok(LinkQuery { datasource, query: text.as_str().ok_or("no query")?.to_owned() })
}

/// Parses `{ a = "b" && c > 1s }`.
///
/// # Errors
/// Names the part that cannot be parsed.
pub fn conditions(traceql: &str) -> Result<Vec<Condition>, String> {
    let inner = traceql.strip_prefix("{ ").and_then(|rest| rest.strip_suffix(" }")).ok_or("not one set of spans")?;
    let condition = |text: &str| {
        let [field, operator, value] = &text.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            return Err(format!("{text} is no condition"));
        };
        if !matches!(*operator, "=" | "!=" | ">" | "<") {
            return Err(format!("{text}: unknown operator {operator}"));
        }
        Ok(Condition { field: (*field).into(), operator: (*operator).into(), value: (*value).into() })
    };
    inner.split(" && ").map(condition).collect()
}

/// Decodes percent-encoding. Variables of Grafana stay as they are.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '%' => {
                let digits = rest.get(1..3).ok_or("a percent sign at the end")?;
                bytes.push(u8::from_str_radix(digits, 16).map_err(|error| format!("%{digits}: {error}"))?);
                3
            }
            '$' => {
                let length = 1 + rest.find('}').ok_or("a variable without an end")?;
                bytes.extend(rest[..length].bytes());
                length
            }
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | '-' | '~' => {
                bytes.push(first as u8);
                1
            }
            _ => return Err(format!("{first} is not encoded")),
        };
        rest = &rest[length..];
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

#[test]
fn traceql_conditions_are_parsed() {
    let read = conditions(r#"{ name = "a b" && duration > 5s }"#).expect("it can be parsed");

    let condition = |field: &str, operator: &str, value: &str| Condition {
        field: field.into(),
        operator: operator.into(),
        value: value.into(),
    };
    assert_eq!(read, [condition("name", "=", "\"a b\""), condition("duration", ">", "5s")]);
}
