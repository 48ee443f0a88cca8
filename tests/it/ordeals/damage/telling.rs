//! What a server told before a store was damaged, and what it tells after.

use serde_json::Value;

use super::model_home::ROOMS;

/// What is told, in lines, without what depends on the time.
pub fn lines(answer: Value) -> Vec<String> {
    match answer {
        Value::String(text) => text.lines().filter(|line| line.contains("\"event\"")).map(str::to_owned).collect(),
        Value::Object(fields) => {
            let lasting = fields.into_iter().filter(|(name, _)| !matches!(name.as_str(), "to" | "from" | "at" | "now"));
            lasting.flat_map(|(name, value)| entries(&name, value)).collect()
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

/// What is left and was not there, was there elsewhere, or is there twice.
pub fn first_invented(before: &[Vec<String>], left: &[Vec<String>]) -> Option<String> {
    before.iter().zip(left).zip(ROOMS).find_map(|((before, left), room)| {
        let mut rest = before.iter();
        let invented = left.iter().find(|said| !rest.any(|known| known == *said))?;
        Some(format!("{room}: it goes on with what was not there so: {}", shortened(invented)))
    })
}

/// What was told and is not told any more.
pub fn first_difference(before: &[(String, Vec<String>)], after: &[(String, Vec<String>)]) -> Option<String> {
    before.iter().zip(after).find_map(|((path, before), (_, after))| {
        let missing: Vec<_> = before.iter().filter(|line| !after.contains(line)).collect();
        let first = missing.first()?;
        let (was, is) =
            after.iter().map(|line| apart(first, line)).min_by_key(|(was, _)| was.len()).unwrap_or((first, "nothing"));
        let (first, was, is) = (shortened(first), shortened(was), shortened(is));
        Some(format!("{path}: {} of {} are missing, the first: {first}: {was} is now {is}", missing.len(), before.len()))
    })
}

/// What is left of two lines after what they begin with alike.
fn apart<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str) {
    let alike = one.char_indices().zip(other.chars()).find(|((_, one), other)| one != other);
    let at = alike.map_or(one.len().min(other.len()), |((at, _), _)| at);
    (&one[at..], &other[at..])
}

pub fn shortened(line: &str) -> String {
    line.chars().take(300).collect()
}
