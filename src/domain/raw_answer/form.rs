//! Reads answers that are JSON in place of a statement: a transcript's lines, a decision, a call of a tool.

use serde_json::{Deserializer, Map, Value};

use super::Trimmed;
use crate::domain::text::first_bytes;
use crate::domain::vote_fields::{begins_with_field, is_field};

/// The fields that name a tool, and those that give it its arguments.
const TOOL_NAMES: [&str; 6] = ["name", "tool", "tool_name", "function", "action", "recipient"];
const TOOL_ARGUMENTS: [&str; 7] = ["arguments", "parameters", "args", "input", "tool_input", "action_input", "params"];
const TOOL_CALLS: [&str; 4] = ["tool_calls", "tool_call", "function_call", "tool_uses"];
/// The fields that hold the words of an object that holds nothing else, besides `text`.
const WORDS: [&str; 9] = ["message", "reply", "response", "answer", "content", "statement", "say", "summary", "description"];
/// The fields that say who speaks.
const ABOUT_SPEAKER: [&str; 4] = ["role", "speaker", "name", "from"];
/// Words of a line that announces a reply.
const REPLIES: [&str; 7] = ["reply", "response", "answer", "message", "statement", "json", "output"];
/// What a line that announces a reply begins with, and what may stand before that.
const INTRODUCTIONS: [&str; 14] = [
    "here is ",
    "here's ",
    "here’s ",
    "here are ",
    "my reply",
    "my response",
    "my answer",
    "the reply",
    "the response",
    "the json",
    "reply:",
    "response:",
    "answer:",
    "json:",
];
const ASSENTS: [&str; 6] = ["sure", "certainly", "of course", "okay", "ok", "alright"];
/// A line of the transcript is recognised by so many bytes.
const MAX_BEGINNING: usize = 80;
/// The longest line that announces a reply, in bytes.
const MAX_INTRODUCTION: usize = 100;

/// What an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// These are its words, of which this was in the way.
    Words(String, Trimmed),
    /// It has no words.
    Nothing(Trimmed),
    /// It is none of these forms.
    Other,
}

/// One JSON value of an answer.
enum Part {
    Words { from: Option<String>, text: String, is_line: bool },
    Vote,
    Call,
    Nothing,
    Other,
}

/// Whether an answer may have one of these forms, by its beginning.
pub(super) fn may_be(text: &str) -> bool {
    without_introduction(text).is_some()
}

/// What a line that begins with a JSON object is, in an answer that has words before it. `None`: words.
pub(super) fn of_line(object: &str) -> Option<Trimmed> {
    match part(&values(object).0.into_iter().next()?) {
        Part::Vote => Some(Trimmed::Decision),
        Part::Call => Some(Trimmed::ToolCall),
        Part::Words { is_line: true, .. } => Some(Trimmed::OtherSpeaker),
        _ => None,
    }
}

/// Reads a whole answer. `is_own` says whether a name is the companion's.
pub(super) fn read(text: &str, is_own: impl Fn(&str) -> bool) -> Form {
    let text = text.trim();
    let Some((introduction, body)) = without_introduction(text) else { return Form::Other };
    let is_fenced = body.starts_with("```");
    let (body, after) = without_fence(body);
    let (values, rest) = values(body);
    let after = [rest, after].map(str::trim).join("\n").trim().to_owned();
    let is_announced = introduction.is_empty() || is_of_reply(introduction);
    let Some(first) = values.first() else {
        return match introduction.is_empty() {
            true if body.strip_prefix('{').is_some_and(begins_with_field) => Form::Nothing(Trimmed::Decision),
            true if begins_transcript(body) => Form::Nothing(Trimmed::OtherSpeaker),
            _ => Form::Other,
        };
    };
    match part(first) {
        Part::Other if begins_transcript(body) => Form::Nothing(Trimmed::OtherSpeaker),
        Part::Vote if is_announced => rest_or_nothing(after, Trimmed::Decision),
        Part::Call if is_announced => rest_or_nothing(after, Trimmed::ToolCall),
        Part::Nothing if introduction.is_empty() => rest_or_nothing(after, Trimmed::Form),
        // JSON in a block, with words about it after that, was asked for.
        Part::Words { is_line: false, .. } if is_fenced && !after.is_empty() => Form::Other,
        Part::Words { is_line, .. } if is_line || is_announced => {
            let mut words: Vec<String> = Vec::new();
            for value in &values {
                match part(value) {
                    Part::Words { from, text, .. } if from.as_deref().is_none_or(&is_own) => words.push(text),
                    Part::Words { .. } if words.is_empty() => {}
                    _ => break,
                }
            }
            if words.is_empty() { Form::Nothing(Trimmed::OtherSpeaker) } else { Form::Words(words.join("\n"), Trimmed::Form) }
        }
        _ => Form::Other,
    }
}

fn rest_or_nothing(after: String, kind: Trimmed) -> Form {
    if after.is_empty() { Form::Nothing(kind) } else { Form::Words(after, kind) }
}

/// A line that announces JSON, if there is one, and the JSON or the block of code that begins after it.
fn without_introduction(text: &str) -> Option<(&str, &str)> {
    let begins = |text: &str| {
        let inside = match text.strip_prefix("```") {
            Some(block) => block.split_once('\n').map_or("", |(_, inside)| inside).trim_start(),
            None => text,
        };
        inside.starts_with('{') || inside.strip_prefix('[').is_some_and(|inside| inside.trim_start().starts_with('{'))
    };
    let text = text.trim();
    if begins(text) {
        return Some(("", text));
    }
    let (introduction, body) = text.split_once('\n')?;
    (is_introduction(introduction) && begins(body.trim_start())).then(|| (introduction, body.trim_start()))
}

/// Whether an answer that begins so may turn out to have one of these forms.
pub(super) fn may_become(text: &str) -> bool {
    let may_begin = |text: &str| {
        let is_block = text.starts_with("```") && text.split_once('\n').is_none_or(|(_, inside)| inside.trim().is_empty());
        is_block || text.trim_end() == "[" || "```".starts_with(text)
    };
    match text.split_once('\n') {
        Some((line, rest)) if is_introduction(line) => may_begin(rest.trim()),
        None if may_introduce(text) => true,
        _ => may_begin(text) && !text.is_empty(),
    }
}

/// A text without the line before it that announces it.
pub(super) fn without_announcement(text: &str) -> &str {
    let text = text.trim();
    match text.split_once('\n') {
        Some((line, rest)) if is_introduction(line) && !rest.trim().is_empty() => rest.trim_start(),
        _ => text,
    }
}

/// Whether a line announces something, in words that models use for that.
fn is_introduction(line: &str) -> bool {
    may_introduce(line) && line.trim_end().trim_end_matches(['*', '_']).ends_with([':', '：'])
}

/// Whether a line begins, or may begin, like that.
fn may_introduce(line: &str) -> bool {
    let line = line.to_lowercase();
    let begins =
        |line: &str, beginnings: &[&str]| beginnings.iter().any(|begin| line.starts_with(begin) || begin.starts_with(line));
    let after_assent =
        ASSENTS.iter().find_map(|assent| line.strip_prefix(assent)).map(|rest| rest.trim_start_matches(['!', ',', '.', ' ']));
    line.len() <= MAX_INTRODUCTION
        && (begins(&line, &INTRODUCTIONS)
            || after_assent
                .map_or_else(|| ASSENTS.iter().any(|assent| assent.starts_with(&*line)), |rest| begins(rest, &INTRODUCTIONS)))
}

fn is_of_reply(introduction: &str) -> bool {
    let words = introduction.to_lowercase();
    REPLIES.iter().any(|reply| words.contains(reply))
}

/// The content of the block of code that a text begins with, and what follows it.
fn without_fence(text: &str) -> (&str, &str) {
    let Some((_, inside)) = text.strip_prefix("```").and_then(|block| block.split_once('\n')) else { return (text, "") };
    inside.split_once("\n```").unwrap_or((inside, ""))
}

/// The JSON values that a text begins with, and the rest. Of one that was cut off, what is there.
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

fn part(value: &Value) -> Part {
    let Value::Object(object) = value else { return Part::Other };
    let has = |names: &[&str]| names.iter().any(|name| object.contains_key(*name));
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    if object.is_empty() {
        return Part::Nothing;
    }
    if let Some(words) = text("text") {
        let from = text("from").or_else(|| text("name")).or_else(|| text("who").filter(|who| !who.starts_with('#')));
        let is_own = text("role") == Some("you");
        let from = from.filter(|_| !is_own).map(str::to_owned);
        return Part::Words { from, text: words.to_owned(), is_line: has(&["from", "role", "who", "n"]) };
    }
    if has(&["decision"]) || object.keys().all(|name| is_field(name)) {
        return Part::Vote;
    }
    if has(&TOOL_CALLS) || has(&TOOL_NAMES) && has(&TOOL_ARGUMENTS) {
        return Part::Call;
    }
    match only_words(object) {
        Some(inner @ Value::Object(_)) => part(inner),
        Some(Value::String(words)) => {
            let is_own = matches!(text("role"), Some("assistant" | "you"));
            let from = text("speaker").or_else(|| text("name")).or_else(|| text("from")).or_else(|| text("role"));
            Part::Words { from: from.filter(|_| !is_own).map(str::to_owned), text: words.clone(), is_line: false }
        }
        _ => Part::Other,
    }
}

/// What holds the words in an object that holds nothing else, except who says them.
fn only_words(object: &Map<String, Value>) -> Option<&Value> {
    let mut others = object.iter().filter(|(name, _)| !ABOUT_SPEAKER.contains(&&***name));
    let (name, value) = others.next().filter(|_| object.len() <= 1 + ABOUT_SPEAKER.len())?;
    Some(value).filter(|_| WORDS.contains(&&**name) && others.next().is_none())
}

/// Whether a text begins like a line of the transcript that a prompt shows, even if it is no JSON.
pub(super) fn begins_transcript(text: &str) -> bool {
    let begin: String = first_bytes(text, MAX_BEGINNING).split_whitespace().collect();
    let is_role = |role: &str| begin.starts_with(&format!("{{\"role\":\"{role}\""));
    begin.starts_with("{\"who\":\"#") || begin.contains(",\"who\":\"#") || ["person", "companion", "you"].into_iter().any(is_role)
}
