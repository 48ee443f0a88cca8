//! Reads answers that are JSON instead of a statement: transcript lines, a decision, a tool call.

use serde_json::{Deserializer, Map, Value};

use super::Trimmed;
use super::code::fence;
use super::cursor::{Cursor, Found, More, first};
use crate::text::first_bytes;
use crate::vote_fields::{begins_with_field, is_field};

/// The fields that name a tool, the fields for its arguments, and the fields that contain whole tool calls.
const TOOL_NAMES: [&str; 6] = ["name", "tool", "tool_name", "function", "action", "recipient"];
const TOOL_ARGUMENTS: [&str; 7] = ["arguments", "parameters", "args", "input", "tool_input", "action_input", "params"];
const TOOL_CALLS: [&str; 4] = ["tool_calls", "tool_call", "function_call", "tool_uses"];
/// The fields, besides `text`, that hold the words if all other fields of the object are about the speaker.
const WORDS: [&str; 9] = ["message", "reply", "response", "answer", "content", "statement", "say", "summary", "description"];
/// The fields that name the speaker.
const ABOUT_SPEAKER: [&str; 5] = ["from", "speaker", "name", "who", "role"];
/// The beginnings of a line that announces the reply, and the assents that may come before them.
const INTRODUCTIONS: [&str; 7] = ["here is ", "here's ", "here’s ", "here are ", "my reply", "my response", "my answer"];
const ASSENTS: [&str; 6] = ["sure", "certainly", "of course", "okay", "ok", "alright"];
/// The nouns in such a line that stand for a reply.
const REPLIES: [&str; 7] = ["reply", "response", "answer", "message", "statement", "json", "output"];
/// The maximum length of an announcing line, and the number of bytes by which a transcript line is recognised.
const MAX_LINE: usize = 100;

/// One JSON value of an answer.
enum Part {
    /// Words of a speaker. `from` is `None` for the companion itself; `is_line` marks a transcript line.
    Words { from: Option<String>, text: String, is_line: bool },
    /// An object without words.
    Nothing(Trimmed),
}

/// Whether an answer may be JSON, judged by its beginning.
pub(super) fn may_be(text: Cursor<'_>) -> Result<bool, More> {
    let body = introduction(text)?.unwrap_or(text);
    let body = fence(body)?.map_or(Ok(body), |(_, inside)| inside.past_blank())?;
    Ok(match body.next()? {
        Some('[') => body.moved(1).past_blank()?.next()? == Some('{'),
        first => first == Some('{'),
    })
}

/// The position after a line that announces the reply, such as “Here is my reply:”.
fn introduction(text: Cursor<'_>) -> Found<'_> {
    let assent = first(ASSENTS, |assent| text.after_any_case(assent))?.unwrap_or(text);
    let begin = assent.past(|c| matches!(c, '!' | ',' | '.' | ' '), MAX_LINE)?;
    if first(INTRODUCTIONS, |introduction| begin.after_any_case(introduction))?.is_none() {
        return Ok(None);
    }
    let line = text.line(MAX_LINE)?.unwrap_or_default();
    let is_introduction = line.trim_end().trim_end_matches(['*', '_']).ends_with([':', '：']);
    if is_introduction { text.moved(line.len()).past_blank().map(Some) } else { Ok(None) }
}

/// Removes the line that announces the text.
pub(super) fn without_announcement(text: &str) -> &str {
    let announced = introduction(Cursor::new(text.trim(), 0, true)).ok().flatten();
    announced.map(Cursor::rest).filter(|rest| !rest.is_empty()).unwrap_or(text.trim())
}

/// Classifies a line that begins with a JSON object, in an answer that already has words. `None` if the line is part of the
/// words.
pub(super) fn of_line(object: &str) -> Option<Trimmed> {
    match part(values(object).0.first()?)? {
        Part::Nothing(kind @ (Trimmed::Decision | Trimmed::ToolCall)) => Some(kind),
        Part::Words { is_line: true, .. } => Some(Trimmed::OtherSpeaker),
        _ => None,
    }
}

/// The words of an answer that is JSON as a whole, possibly empty, and what was cut. `None` if the answer is not JSON.
pub(super) fn read(text: &str, is_own: impl Fn(&str) -> bool) -> Option<(String, Trimmed)> {
    let text = text.trim();
    let body = without_announcement(text);
    let introduction = &text[..text.len() - body.len()].to_lowercase();
    let is_announced = introduction.is_empty() || REPLIES.iter().any(|reply| introduction.contains(reply));
    let block = body.strip_prefix("```").and_then(|block| block.split_once('\n')).map(|(_, inside)| inside);
    let (json, after) = block.map_or((body, ""), |inside| inside.split_once("\n```").unwrap_or((inside, "")));
    let (values, rest) = values(json);
    let after = [rest, after].map(str::trim).join("\n").trim().to_owned();
    let is_vote = || values.is_empty() && json.strip_prefix('{').is_some_and(begins_with_field);
    match values.first().and_then(part) {
        None if begins_transcript(json) => Some((String::new(), Trimmed::OtherSpeaker)),
        None if is_vote() => Some((String::new(), Trimmed::Decision)),
        Some(Part::Nothing(kind)) if is_announced => Some((after, kind)),
        // A JSON block with words after it was requested by a person, so it is part of the words.
        Some(Part::Words { is_line: false, .. }) if block.is_some() && !after.is_empty() => None,
        Some(Part::Words { is_line, .. }) if is_line || is_announced => {
            let parts = values.iter().map_while(|value| match part(value)? {
                Part::Words { from, text, .. } => Some((from.is_none_or(|from| is_own(&from)), text)),
                Part::Nothing(_) => None,
            });
            let own = parts.skip_while(|(is_own, _)| !is_own).take_while(|(is_own, _)| *is_own);
            let words = own.map(|(_, text)| text).collect::<Vec<_>>().join("\n");
            let kind = if words.is_empty() { Trimmed::OtherSpeaker } else { Trimmed::Form };
            Some((words, kind))
        }
        _ => None,
    }
}

/// The JSON values at the beginning of the text, and the rest. If the first value is truncated, it is repaired as far as
/// possible.
fn values(text: &str) -> (Vec<Value>, &str) {
    let mut values = Vec::new();
    let mut stream = Deserializer::from_str(text).into_iter::<Value>();
    let mut end = 0;
    while let Some(Ok(value)) = stream.next() {
        match value {
            Value::Array(inner) if inner.iter().all(Value::is_object) => values.extend(inner),
            value @ Value::Object(_) => values.push(value),
            _ => break,
        }
        end = stream.byte_offset();
    }
    if values.is_empty() {
        let mended = ["\"}", "}", "\"}]", "}]"].iter().find_map(|ending| serde_json::from_str(&[text, ending].concat()).ok());
        if let Some(value @ Value::Object(_)) = mended {
            return (vec![value], "");
        }
    }
    (values, &text[end.min(text.len())..])
}

/// The content of an object. `None` if it is neither words nor known.
fn part(value: &Value) -> Option<Part> {
    let object = value.as_object()?;
    let has = |names: &[&str]| names.iter().any(|name| object.contains_key(*name));
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    if object.is_empty() {
        return Some(Part::Nothing(Trimmed::Form));
    }
    let is_line = has(&["text"]) && has(&["from", "role", "who", "n"]);
    if !has(&["text"]) && (has(&["decision"]) || object.keys().all(|name| is_field(name))) {
        return Some(Part::Nothing(Trimmed::Decision));
    }
    if has(&TOOL_CALLS) || has(&TOOL_NAMES) && has(&TOOL_ARGUMENTS) {
        return Some(Part::Nothing(Trimmed::ToolCall));
    }
    match object.get("text").or_else(|| only_words(object)) {
        Some(inner @ Value::Object(_)) => part(inner),
        Some(Value::String(words)) => {
            let is_own = matches!(text("role"), Some("assistant" | "you"));
            let from = ABOUT_SPEAKER.iter().find_map(|name| text(name)).filter(|from| !is_own && !from.starts_with('#'));
            Some(Part::Words { from: from.map(str::to_owned), text: words.clone(), is_line })
        }
        _ => None,
    }
}

/// The field with the words, if all other fields of the object are about the speaker.
fn only_words(object: &Map<String, Value>) -> Option<&Value> {
    let mut others = object.iter().filter(|(name, _)| !ABOUT_SPEAKER.contains(&&***name));
    let (name, value) = others.next().filter(|_| object.len() <= 1 + ABOUT_SPEAKER.len())?;
    Some(value).filter(|_| WORDS.contains(&&**name) && others.next().is_none())
}

/// Whether a text begins like a transcript line of the prompt, even if it is not valid JSON.
pub(super) fn begins_transcript(text: &str) -> bool {
    let begin: String = first_bytes(text, MAX_LINE).split_whitespace().collect();
    let is_role = |role: &str| begin.starts_with(&format!("{{\"role\":\"{role}\""));
    begin.starts_with("{\"who\":\"#") || begin.contains(",\"who\":\"#") || ["person", "companion", "you"].into_iter().any(is_role)
}
