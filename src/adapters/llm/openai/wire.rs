//! Parses the JSON of answers.
//!
//! Only the needed parts of an answer are built. The rest is skipped while parsing, so that parsing takes no more memory than the
//! answer itself, whatever it contains.

use serde_json::value::RawValue;

use super::counts::{Counts, count};
use super::text::Units;
use crate::adapters::endpoint::failure::{Broken, text_in};
use crate::adapters::endpoint::fields::fields;
use crate::adapters::endpoint::first::First;
use crate::adapters::endpoint::told::Told;
use crate::domain::answer_end::AnswerEnd;

/// The most tool calls that are read from one answer.
pub(super) const MAX_TOOL_CALLS: usize = 64;

/// The most content parts that are read from one chunk.
const MAX_PARTS: usize = 1_024;

/// The fields of a content part.
const PART: [&str; 3] = ["type", "text", "refusal"];

/// A chunk of a stream, or a whole answer: they differ only in `delta` and `message`.
pub(super) struct Piece {
    pub id: Option<String>,
    pub model: Option<String>,
    /// The choice with the lowest index: only one answer is requested.
    pub choice: Option<Choice>,
    /// Whether it has a list of choices, which may be empty, or is a completion without one.
    pub has_choices: bool,
    /// Why a filter blocked the prompt, as reported by Google.
    pub blocked: Option<String>,
    pub counts: Option<Counts>,
}

/// The model's output, and its finish reason.
#[derive(Default)]
pub(super) struct Choice {
    /// The index of its answer.
    pub index: u64,
    pub text: Units,
    pub tool_calls: Vec<CallPiece>,
    /// The model's text of a refusal.
    pub refusal: Units,
    /// Whether this contains a thought, which is not shown.
    pub thinks: bool,
    /// The text of the thought, if there is one.
    pub thoughts: Units,
    /// Whether it is a whole message, not a delta.
    pub is_message: bool,
    pub finish_reason: Option<String>,
}

impl Choice {
    /// Whether this contains output: text, a thought, or a tool call. The first piece often contains only a role.
    pub fn has_output(&self) -> bool {
        self.thinks || self.has_words()
    }

    /// Whether this contains output other than a thought.
    pub fn has_words(&self) -> bool {
        !self.text.is_empty() || !self.refusal.is_empty() || !self.tool_calls.is_empty()
    }
}

/// A tool call, or a chunk of one.
pub(super) struct CallPiece {
    /// The index of the call in the answer.
    pub index: Option<u64>,
    pub id: String,
    pub name: String,
    pub arguments: String,
}

impl Piece {
    /// Parses a chunk, or the error in its place.
    pub fn read(json: &[u8]) -> Result<Self, Broken> {
        // Text may contain invalid UTF-8 where a server split a character.
        let text = String::from_utf8_lossy(json);
        let text = text.trim_start_matches('\u{feff}');
        let garbled = |error: serde_json::Error| Broken::garbled(error.to_string(), json);
        let names = [
            "id",
            "model",
            "choices",
            "usage",
            "usageMetadata",
            "promptFeedback",
            "error",
            "object",
            "type",
            "message",
            "msg",
            "detail",
        ];
        let [id, model, choices, usage, usage_of_google, feedback, error, object, kind, words @ ..] = fields(text, names)
            .map_err(|error| match serde_json::from_str::<&RawValue>(text) {
                // An error in an array.
                Ok(value) if value.get().starts_with('[') => reported_error(value),
                _ => garbled(error),
            })?;
        let is_completion = object.and_then(text_in).is_some_and(|object| object.starts_with("chat.completion"));
        let has_choices = choices.is_some() || is_completion;
        let choices = choices.filter(|choices| choices.get() != "null");
        let choices: Option<First<&RawValue, MAX_CHOICES>> =
            choices.map(|choices| serde_json::from_str(choices.get())).transpose().map_err(garbled)?;
        if let Some(error) = error.filter(|error| is_something(error)) {
            // The code and the text of the error may be in fields beside it.
            let outer = serde_json::from_str::<&RawValue>(text);
            return Err(reported_error(outer.ok().filter(|outer| outer.get().len() <= MAX_ERROR_BYTES).unwrap_or(error)));
        }
        let is_error = [object, kind].into_iter().flatten().filter_map(text_in).any(|kind| kind == "error");
        if is_error || choices.is_none() && usage.is_none() && words.into_iter().flatten().any(is_something) {
            return Err(serde_json::from_str(text).map_or_else(garbled, reported_error));
        }
        let blocked = feedback.and_then(|feedback| fields(feedback.get(), ["blockReason"]).ok());
        let choice = choices.and_then(|first| first.0.into_iter().min_by_key(|choice| index(choice)));
        Ok(Self {
            id: id.and_then(name_in),
            model: model.and_then(name_in),
            choice: choice.map(|choice| Choice::read(choice, garbled)).transpose()?,
            has_choices,
            blocked: blocked.and_then(|[reason]| reason.and_then(text_in)),
            counts: usage.or(usage_of_google).and_then(Counts::read),
        })
    }

    /// The error in an event whose name declares it as an error.
    pub fn error(json: &[u8]) -> Broken {
        Broken::Told(Box::new(Told::of(json)))
    }
}

/// The most choices that are read from a chunk.
const MAX_CHOICES: usize = 16;

/// The index of the answer to which a choice belongs.
fn index(choice: &RawValue) -> u64 {
    let index = fields(choice.get(), ["index"]).ok().and_then(|[index]| index.and_then(count));
    index.unwrap_or_default()
}

/// The longest answer whose error is read together with the fields beside it.
const MAX_ERROR_BYTES: usize = 64 * 1024;

fn reported_error(value: &RawValue) -> Broken {
    Broken::Told(Box::new(Told::in_json(value)))
}

/// A name, which some servers send as a number.
fn name_in(value: &RawValue) -> Option<String> {
    text_in(value).or_else(|| value.get().parse::<f64>().ok().map(|_| value.get().to_owned()))
}

/// Whether an error is present. Some servers send an empty error, or `false`, with every answer.
fn is_something(value: &RawValue) -> bool {
    !matches!(value.get(), "{}" | "[]" | "\"\"" | "false" | "0" | "null")
}

impl Choice {
    fn read(sent: &RawValue, garbled: impl Fn(serde_json::Error) -> Broken) -> Result<Self, Broken> {
        // `text` contains the text on servers for text completion.
        let [delta, message, text, finish_reason, error] =
            fields(sent.get(), ["delta", "message", "text", "finish_reason", "error"]).map_err(&garbled)?;
        if let Some(error) = error.filter(|error| is_something(error)) {
            return Err(reported_error(error));
        }
        let finish_reason = finish_reason.and_then(text_in).filter(|reason| !matches!(reason.as_str(), "" | "null"));
        if let Some(reason) = finish_reason.as_deref().filter(|reason| AnswerEnd::of(reason) == AnswerEnd::Failed) {
            return Err(Broken::failed(None, format!("the answer ended with the reason {reason:?}")));
        }
        let [piece, message] = [delta, message].map(|words| words.map(Self::of).transpose().map_err(&garbled));
        let (piece, message) = (piece?.unwrap_or_default(), message?);
        let choice = match (piece.has_output(), message) {
            (false, Some(message)) => Self { is_message: true, ..message },
            _ => piece,
        };
        let text = if choice.has_output() { choice.text } else { text.map(Units::of).unwrap_or_default() };
        Ok(Self { index: index(sent), text, finish_reason, ..choice })
    }

    fn of(words: &RawValue) -> Result<Self, serde_json::Error> {
        let names = [
            "content",
            "refusal",
            "tool_calls",
            "reasoning",
            "reasoning_content",
            "reasoning_details",
            "thinking",
            "thinking_blocks",
        ];
        let [content, refusal, calls, thoughts @ ..] = fields(words.get(), names)?;
        let mut choice = Self::default();
        if let Some(content) = content {
            choice.read_content(content);
        }
        choice.refusal.append(refusal.map(Units::of).unwrap_or_default());
        // A value that is not a list of calls is ignored, like all other fields that are not needed.
        let calls = calls.and_then(|calls| serde_json::from_str(calls.get()).ok());
        let calls = calls.map(|calls: First<&RawValue, { MAX_TOOL_CALLS + 1 }>| calls.0).unwrap_or_default();
        choice.tool_calls = calls.into_iter().map(CallPiece::read).collect::<Result<_, _>>().unwrap_or_default();
        choice.thinks |= thoughts.into_iter().flatten().any(is_something);
        // Some servers send a thought in two fields.
        choice.thoughts = thoughts.into_iter().flatten().map(Units::of).find(|words| !words.is_empty()).unwrap_or_default();
        Ok(choice)
    }

    /// Adds a content: a text, or a list of parts.
    fn read_content(&mut self, content: &RawValue) {
        if content.get().starts_with('"') {
            return self.text.append(Units::of(content));
        }
        if content.get().starts_with('[') {
            let parts: Option<First<&RawValue, MAX_PARTS>> = serde_json::from_str(content.get()).ok();
            return parts.into_iter().flat_map(|parts| parts.0).for_each(|part| self.read_part(part));
        }
        let is_part = fields(content.get(), PART).is_ok_and(|part| part.into_iter().any(|field| field.is_some()));
        match is_part {
            true => self.read_part(content),
            // Requested JSON that the server has parsed.
            false => self.text.append(Units::of_json(content)),
        }
    }

    fn read_part(&mut self, part: &RawValue) {
        if part.get().starts_with('"') {
            return self.text.append(Units::of(part));
        }
        let Ok([kind, text, refusal]) = fields(part.get(), PART) else { return };
        match kind.and_then(text_in).as_deref() {
            None | Some("text" | "output_text") => self.text.append(text.map(Units::of).unwrap_or_default()),
            Some("refusal") => self.refusal.append(refusal.map(Units::of).unwrap_or_default()),
            Some("thinking" | "redacted_thinking" | "reasoning") => self.thinks = true,
            Some(_) => {}
        }
    }
}

impl CallPiece {
    fn read(sent: &RawValue) -> Result<Self, serde_json::Error> {
        let [index, id, function] = fields(sent.get(), ["index", "id", "function"])?;
        let function = function.map(|function| fields(function.get(), ["name", "arguments"])).transpose()?;
        let [name, arguments] = function.unwrap_or_default();
        let text = |value: Option<&RawValue>| value.and_then(text_in).unwrap_or_default();
        // Some servers send the arguments as an object instead of a string.
        let object = arguments.map(RawValue::get).filter(|json| json.starts_with('{'));
        Ok(Self {
            index: index.and_then(count),
            id: id.and_then(name_in).unwrap_or_default(),
            name: text(name),
            arguments: object.map_or_else(|| text(arguments), str::to_owned),
        })
    }
}
