//! Compares a server's answers before and after its store was damaged.

use serde_json::Value;

use super::sample_store::ROOMS;

/// The lines of an answer, without fields that depend on the time.
pub fn lines(answer: Value) -> Vec<String> {
    match answer {
        Value::String(text) => text.lines().filter(|line| line.contains("\"event\"")).map(str::to_owned).collect(),
        Value::Object(fields) => {
            let constant = fields.into_iter().filter(|(name, _)| !matches!(name.as_str(), "to" | "from" | "at" | "now"));
            constant.flat_map(|(name, value)| entries(&name, value)).collect()
        }
        other => vec![other.to_string()],
    }
}

fn entries(name: &str, value: Value) -> Vec<String> {
    match value {
        Value::Array(entries) => entries.into_iter().map(|entry| format!("{name}: {entry}")).collect(),
        value => vec![format!("{name}: {value}")],
    }
}

/// The first remaining message that was not there before, was at another position, or is there twice.
pub fn first_invented(before: &[Vec<String>], left: &[Vec<String>]) -> Option<String> {
    before.iter().zip(left).zip(ROOMS).find_map(|((before, left), room)| {
        let mut rest = before.iter();
        let invented = left.iter().find(|message| !rest.any(|original| original == *message))?;
        Some(format!("{room}: a message that was not on record like this: {}", shortened(invented)))
    })
}

/// The first line that is missing from the answers now.
pub fn first_difference(before: &[(String, Vec<String>)], after: &[(String, Vec<String>)]) -> Option<String> {
    before.iter().zip(after).find_map(|((path, before), (_, after))| {
        let missing: Vec<_> = before.iter().filter(|line| !after.contains(line)).collect();
        let first = missing.first()?;
        let (was, is) = after
            .iter()
            .map(|line| without_common_prefix(first, line))
            .min_by_key(|(was, _)| was.len())
            .unwrap_or((first, "nothing"));
        let (first, was, is) = (shortened(first), shortened(was), shortened(is));
        Some(format!("{path}: {} of {} are missing, the first: {first}: {was} is now {is}", missing.len(), before.len()))
    })
}

/// Two lines without their common prefix.
fn without_common_prefix<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str) {
    let difference = one.char_indices().zip(other.chars()).find(|((_, one), other)| one != other);
    let at = difference.map_or(one.len().min(other.len()), |((at, _), _)| at);
    (&one[at..], &other[at..])
}

pub fn shortened(line: &str) -> String {
    line.chars().take(300).collect()
}
