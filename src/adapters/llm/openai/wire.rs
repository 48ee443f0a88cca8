//! The JSON of answers, as far as it is needed.
//!
//! Only the needed parts of an answer are built. The rest is skipped while parsing, so that parsing takes no more memory than the answer
//! itself, whatever it contains.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::text::Units;
use crate::adapters::endpoint::failure::{Broken, text_in};
use crate::adapters::endpoint::first::First;
use crate::adapters::endpoint::told::Told;
use crate::domain::answer_end::AnswerEnd;
use crate::ports::language_model::Usage;

/// The most tool calls that are read from one answer.
pub(super) const MAX_TOOL_CALLS: usize = 64;

/// The most parts of a content that are read from one piece.
const MAX_PARTS: usize = 1_024;

/// A piece of a stream, or a whole answer: they differ only in `delta` and `message`.
pub(super) struct Piece {
    pub id: Option<String>,
    pub model: Option<String>,
    /// The first choice: only one answer is requested.
    pub choice: Option<Choice>,
    pub tokens: Option<Tokens>,
}

/// The model's output, and why it ended.
#[derive(Default)]
pub(super) struct Choice {
    pub text: Units,
    pub tool_calls: Vec<CallPiece>,
    /// Why the model declines to answer, in its words.
    pub refusal: Units,
    /// Whether this contains a thought, which is not shown.
    pub thinks: bool,
    /// Whether it is a whole message and no piece of one.
    pub is_message: bool,
    pub finish_reason: Option<String>,
}

impl Choice {
    /// Whether this contains output: text, a thought, or a tool call. The first piece often contains only a role.
    pub fn has_output(&self) -> bool {
        self.thinks || self.has_words()
    }

    /// Whether this contains output that is no thought.
    pub fn has_words(&self) -> bool {
        !self.text.is_empty() || !self.refusal.is_empty() || !self.tool_calls.is_empty()
    }
}

/// A tool call, or a piece of one.
pub(super) struct CallPiece {
    /// The index of the call in the answer.
    pub index: Option<u64>,
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// The token counts that the endpoint reported.
#[derive(Clone, Copy)]
pub(super) struct Tokens {
    prompt: Option<u64>,
    completion: Option<u64>,
}

impl Piece {
    /// Parses a piece, or the error in its place.
    pub fn read(json: &[u8]) -> Result<Self, Broken> {
        // Words may hold bytes that are no text, where a server cut a character in two.
        let text = String::from_utf8_lossy(json);
        let text = text.trim_start_matches('\u{feff}');
        let sent: Sent<'_> = serde_json::from_str(text).map_err(|error| match serde_json::from_str::<&RawValue>(text) {
            // An error in an array.
            Ok(value) if value.get().starts_with('[') => told(value),
            _ => Broken::garbled(error.to_string(), json),
        })?;
        if let Some(error) = sent.error.filter(|error| is_something(error)) {
            // Its code and its words may be beside it.
            let outer = serde_json::from_str::<&RawValue>(text);
            return Err(told(outer.ok().filter(|outer| outer.get().len() <= MAX_ERROR_BYTES).unwrap_or(error)));
        }
        let Sent { choices, .. } = sent;
        let is_error = |kind: Option<&RawValue>| kind.and_then(text_in).is_some_and(|kind| kind == "error");
        let has_words = || [sent.message, sent.msg, sent.detail].into_iter().flatten().any(is_something);
        if is_error(sent.object) || is_error(sent.r#type) || choices.is_none() && sent.usage.is_none() && has_words() {
            return Err(serde_json::from_str(text).map_or_else(|error| Broken::garbled(error.to_string(), json), told));
        }
        let first = choices.and_then(|first| first.0.into_iter().next());
        Ok(Self {
            id: sent.id.and_then(name_in),
            model: sent.model.and_then(name_in),
            choice: first.map(Choice::read).transpose()?,
            tokens: sent.usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).map(|counts: Counts<'_>| Tokens {
                prompt: counts.prompt_tokens.and_then(count),
                completion: counts.completion_tokens.and_then(count),
            }),
        })
    }

    /// The error that an event is by its name.
    pub fn error(json: &[u8]) -> Broken {
        Broken::Told(Box::new(Told::of(json)))
    }
}

/// The longest answer whose error is read together with what is beside it.
const MAX_ERROR_BYTES: usize = 64 * 1024;

fn told(value: &RawValue) -> Broken {
    Broken::Told(Box::new(Told::in_json(value)))
}

/// A name, which some servers send as a number.
fn name_in(value: &RawValue) -> Option<String> {
    text_in(value).or_else(|| value.get().parse::<f64>().ok().map(|_| value.get().to_owned()))
}

/// Some servers send an empty error, or `false`, with every answer.
fn is_something(value: &RawValue) -> bool {
    !matches!(value.get(), "{}" | "[]" | "\"\"" | "false" | "0" | "null")
}

impl Tokens {
    /// The reported counts, or the estimate for those that are missing.
    pub fn or(self, estimate: Usage) -> Usage {
        Usage {
            input_tokens: self.prompt.unwrap_or(estimate.input_tokens),
            output_tokens: self.completion.unwrap_or(estimate.output_tokens),
        }
    }
}

/// Parses a count, which some servers send as a fraction or as a string.
fn count(value: &RawValue) -> Option<u64> {
    let count: f64 = value.get().trim_matches('"').parse().ok()?;
    (count.is_finite() && count >= 0.0).then_some(count.round() as u64)
}

/// A piece as it is sent. A value of any type stays unparsed until it is needed.
#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<First<SentChoice<'a>, 1>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    msg: Option<&'a RawValue>,
    #[serde(borrow)]
    detail: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SentChoice<'a> {
    #[serde(borrow)]
    delta: Option<SentWords<'a>>,
    #[serde(borrow)]
    message: Option<SentWords<'a>>,
    /// The words, on servers that complete texts.
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct SentWords<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking_blocks: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
}

/// A part of a content.
#[derive(Deserialize)]
struct SentPart<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SentCall<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<SentFunction<'a>>,
}

#[derive(Deserialize)]
struct SentFunction<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Counts<'a> {
    #[serde(borrow)]
    prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_tokens: Option<&'a RawValue>,
}

impl Choice {
    fn read(sent: SentChoice<'_>) -> Result<Self, Broken> {
        if let Some(error) = sent.error.filter(|error| is_something(error)) {
            return Err(told(error));
        }
        let finish_reason = sent.finish_reason.and_then(text_in).filter(|reason| !matches!(reason.as_str(), "" | "null"));
        if let Some(reason) = finish_reason.as_deref().filter(|reason| AnswerEnd::of(reason) == AnswerEnd::Failed) {
            return Err(Broken::failed(None, format!("the answer ended with the reason {reason:?}")));
        }
        let piece = sent.delta.map(Self::of).unwrap_or_default();
        let choice = match (piece.has_output(), sent.message) {
            (false, Some(message)) => Self { is_message: true, ..Self::of(message) },
            _ => piece,
        };
        let text = if choice.has_output() { choice.text } else { sent.text.map(Units::of).unwrap_or_default() };
        Ok(Self { text, finish_reason, ..choice })
    }

    fn of(words: SentWords<'_>) -> Self {
        let mut choice = Self::default();
        if let Some(content) = words.content {
            choice.read_content(content);
        }
        choice.refusal.append(words.refusal.map(Units::of).unwrap_or_default());
        // A value that is not a list of calls is ignored, like everything else that is not needed.
        let calls = words.tool_calls.and_then(|calls| serde_json::from_str(calls.get()).ok());
        let calls = calls.map(|calls: First<SentCall<'_>, { MAX_TOOL_CALLS + 1 }>| calls.0).unwrap_or_default();
        choice.tool_calls = calls.into_iter().map(CallPiece::from).collect();
        let SentWords { reasoning, reasoning_content, reasoning_details, thinking, thinking_blocks, .. } = words;
        let thoughts = [reasoning, reasoning_content, reasoning_details, thinking, thinking_blocks];
        choice.thinks |= thoughts.into_iter().flatten().any(is_something);
        choice
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
        let is_part = serde_json::from_str(content.get())
            .is_ok_and(|SentPart { r#type, text, refusal }| [r#type, text, refusal].into_iter().any(|field| field.is_some()));
        match is_part {
            true => self.read_part(content),
            // JSON that was asked for, and that the server has parsed.
            false => self.text.append(Units::of_json(content)),
        }
    }

    fn read_part(&mut self, part: &RawValue) {
        if part.get().starts_with('"') {
            return self.text.append(Units::of(part));
        }
        let Ok(part) = serde_json::from_str::<SentPart<'_>>(part.get()) else { return };
        match part.r#type.and_then(text_in).as_deref() {
            None | Some("text" | "output_text") => self.text.append(part.text.map(Units::of).unwrap_or_default()),
            Some("refusal") => self.refusal.append(part.refusal.map(Units::of).unwrap_or_default()),
            Some("thinking" | "redacted_thinking" | "reasoning") => self.thinks = true,
            Some(_) => {}
        }
    }
}

impl From<SentCall<'_>> for CallPiece {
    fn from(SentCall { index, id, function }: SentCall<'_>) -> Self {
        let (name, arguments) = function.map_or((None, None), |function| (function.name, function.arguments));
        let text = |value: Option<&RawValue>| value.and_then(text_in).unwrap_or_default();
        let id = id.and_then(name_in);
        // Some servers send the arguments as an object instead of a string.
        let object = arguments.map(RawValue::get).filter(|json| json.starts_with('{'));
        Self {
            index: index.and_then(count),
            id: id.unwrap_or_default(),
            name: text(name),
            arguments: object.map_or_else(|| text(arguments), str::to_owned),
        }
    }
}
