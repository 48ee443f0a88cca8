//! The JSON that goes out and comes back, as far as it matters here.
//!
//! Only what is needed of an answer is built. The rest is skipped without being kept, so that reading an answer takes no more memory than
//! the answer itself, whatever it holds.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::dialect::Spoken;
use super::failure::{Broken, message_of, status_of};
use crate::ports::language_model::{Request, Usage};

/// A request's body.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Said<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat>,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct ResponseFormat {
    r#type: &'static str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> Body<'a> {
    pub fn new(model: &'a str, temperature: Option<f64>, request: &'a Request, spoken: Spoken) -> Self {
        let messages = [("system", &request.system), ("user", &request.user)];
        let limit = Some(request.max_tokens);
        Self {
            model,
            messages: messages
                .into_iter()
                .filter(|(_, content)| !content.is_empty())
                .map(|(role, content)| Said { role, content })
                .collect(),
            stream: true,
            stream_options: spoken.stream_options.then_some(StreamOptions { include_usage: true }),
            max_tokens: limit.filter(|_| !spoken.completion_tokens),
            max_completion_tokens: limit.filter(|_| spoken.completion_tokens),
            temperature: temperature.filter(|_| spoken.temperature),
            response_format: spoken.json.then_some(ResponseFormat { r#type: "json_object" }),
        }
    }
}

/// A streamed piece, or a whole answer: they differ in `delta` and `message` alone.
pub(super) struct Piece {
    pub id: Option<String>,
    pub model: Option<String>,
    /// The first choice: only one answer was asked for.
    pub choice: Option<Choice>,
    pub tokens: Option<Tokens>,
}

/// What the model said and how it ended.
pub(super) struct Choice {
    pub text: String,
    /// The model says or thinks something here; the first piece often names a role alone.
    pub is_a_word: bool,
    pub finish_reason: Option<String>,
}

/// The tokens that the endpoint counted, as far as it did.
#[derive(Clone, Copy)]
pub(super) struct Tokens {
    prompt: Option<u64>,
    completion: Option<u64>,
}

impl Piece {
    /// Reads a piece, or the error that stands in its place.
    pub fn read(json: &[u8]) -> Result<Self, Broken> {
        let sent: Sent<'_> = serde_json::from_slice(json).map_err(|error| Broken::garbled(error.to_string(), json))?;
        if let Some(error) = sent.error {
            return Err(Broken::Failed(status_of(error), message_of(error)));
        }
        Ok(Self {
            id: sent.id.and_then(text_in),
            model: sent.model.and_then(text_in),
            choice: sent.choices.and_then(|first| first.0).map(Choice::from),
            tokens: sent.usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).map(|counts: Counts<'_>| Tokens {
                prompt: counts.prompt_tokens.and_then(count),
                completion: counts.completion_tokens.and_then(count),
            }),
        })
    }
}

impl Tokens {
    /// What was counted, and the estimate where nothing was.
    pub fn or(self, estimate: Usage) -> Usage {
        Usage {
            input_tokens: self.prompt.unwrap_or(estimate.input_tokens),
            output_tokens: self.completion.unwrap_or(estimate.output_tokens),
        }
    }
}

/// The text that a value is; none if it is no text.
pub(super) fn text_in(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// A count, which some servers give as a fraction.
fn count(value: &RawValue) -> Option<u64> {
    let count: f64 = value.get().parse().ok()?;
    (count.is_finite() && count >= 0.0).then_some(count.round() as u64)
}

/// A piece as it is sent. A value that may be of any kind stays as it is written until it is known to be needed.
#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<First<SentChoice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SentChoice<'a> {
    #[serde(borrow)]
    delta: Option<SentWords<'a>>,
    #[serde(borrow)]
    message: Option<SentWords<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SentWords<'a> {
    content: Option<String>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Counts<'a> {
    #[serde(borrow)]
    prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_tokens: Option<&'a RawValue>,
}

impl From<SentChoice<'_>> for Choice {
    fn from(sent: SentChoice<'_>) -> Self {
        let finish_reason = sent.finish_reason.and_then(text_in);
        let Some(words) = sent.delta.or(sent.message) else {
            return Self { text: String::new(), is_a_word: false, finish_reason };
        };
        let text = words.content.unwrap_or_default();
        // A text is a word unless it is empty: `""`.
        let is_thought = |value: &RawValue| value.get().starts_with('"') && value.get().len() > 2;
        let thinks = [words.reasoning, words.reasoning_content].into_iter().flatten().any(is_thought);
        Self { is_a_word: thinks || !text.is_empty(), text, finish_reason }
    }
}

/// The first element of an array. The others are skipped.
struct First<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = First<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<First<T>, A::Error> {
                let first = elements.next_element()?;
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }

        deserializer.deserialize_seq(Elements(PhantomData))
    }
}
