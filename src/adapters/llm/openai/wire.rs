//! The JSON of requests and responses, as far as it is needed.
//!
//! Only the needed parts of an answer are built. The rest is skipped while parsing, so that parsing takes no more memory than the answer
//! itself, whatever it contains.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::dialect::{Form, Parameters};
use super::schema::{Ordered, is_strict};
use crate::adapters::endpoint::failure::{Broken, message_of, status_of, text_in};
use crate::ports::language_model::{AnswerFormat, Media, Message, Part, Request, Role, Tool, ToolCall, Usage};

/// The most tool calls that are read from one answer.
pub(super) const MAX_TOOL_CALLS: usize = 64;

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<SentMessage<'a>>,
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
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Function<OfferedTool<'a>>>,
}

#[derive(Serialize)]
struct SentMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<SentCallOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// Many servers accept only one text, so text alone is sent as a plain string.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<SentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Url<'a> },
    InputAudio { input_audio: Recording },
}

#[derive(Serialize)]
struct Url<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct Recording {
    data: String,
    format: &'static str,
}

#[derive(Serialize)]
struct Function<T> {
    r#type: &'static str,
    function: T,
}

#[derive(Serialize)]
struct OfferedTool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
struct SentCallOut<'a> {
    id: &'a str,
    #[serde(flatten)]
    call: Function<CalledFunction<'a>>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: Schema<'a> },
}

#[derive(Serialize)]
struct Schema<'a> {
    name: &'a str,
    /// Whether the answer must follow the schema to the letter. Endpoints ask for more of such a schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
    schema: Ordered<'a>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> Body<'a> {
    /// # Errors
    /// The request contains something that the protocol cannot express.
    pub fn new(model: &'a str, temperature: Option<f64>, request: &'a Request, parameters: Parameters) -> Result<Self, Broken> {
        let limit = Some(request.max_tokens);
        let messages: Result<Vec<_>, _> = request.messages.iter().map(SentMessage::of).collect();
        Ok(Self {
            model,
            messages: messages?.into_iter().filter(|message| !message.is_empty()).collect(),
            stream: true,
            stream_options: parameters.stream_options.then_some(StreamOptions { include_usage: true }),
            max_tokens: limit.filter(|_| !parameters.completion_tokens),
            max_completion_tokens: limit.filter(|_| parameters.completion_tokens),
            temperature: temperature.filter(|_| parameters.temperature),
            response_format: match (parameters.form, &request.format) {
                (Form::Text, _) | (_, AnswerFormat::Text) => None,
                (Form::Schema, AnswerFormat::JsonSchema { name, schema }) => Some(ResponseFormat::JsonSchema {
                    json_schema: Schema { name, strict: is_strict(schema), schema: Ordered(schema) },
                }),
                (Form::Object | Form::Schema, _) => Some(ResponseFormat::JsonObject),
            },
            tools: request.tools.iter().map(offered_tool).collect(),
        })
    }
}

impl<'a> SentMessage<'a> {
    fn of(message: &'a Message) -> Result<Self, Broken> {
        let (role, tool_calls, tool_call_id) = match &message.role {
            Role::System => ("system", &[][..], None),
            Role::User => ("user", &[][..], None),
            Role::Assistant { tool_calls } => ("assistant", &tool_calls[..], None),
            Role::Tool { call_id } => ("tool", &[][..], Some(call_id.as_str())),
        };
        let content = Content::of(&message.parts)?;
        let is_silent = matches!(&content, Content::Text(text) if text.is_empty());
        Ok(Self {
            role,
            // The result of a tool is sent even if it is empty.
            content: (!is_silent || tool_call_id.is_some()).then_some(content),
            tool_calls: tool_calls.iter().map(sent_call).collect(),
            tool_call_id,
        })
    }

    fn is_empty(&self) -> bool {
        self.content.is_none() && self.tool_calls.is_empty()
    }
}

impl<'a> Content<'a> {
    fn of(parts: &'a [Part]) -> Result<Self, Broken> {
        let text = |part: &'a Part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image(_) | Part::Audio(_) => None,
        };
        if let Some(texts) = parts.iter().map(text).collect::<Option<Vec<_>>>() {
            return Ok(Self::Text(texts.into_iter().fold(Cow::Borrowed(""), |all, text| all + text)));
        }
        parts.iter().map(SentPart::of).collect::<Result<_, _>>().map(Self::Parts)
    }
}

impl<'a> SentPart<'a> {
    fn of(part: &'a Part) -> Result<Self, Broken> {
        Ok(match part {
            Part::Text(text) => Self::Text { text },
            Part::Image(Media::Url(url)) => Self::ImageUrl { image_url: Url { url: url.into() } },
            Part::Image(Media::Bytes { media_type, bytes }) => {
                let url = format!("data:{media_type};base64,{}", BASE64.encode(bytes));
                Self::ImageUrl { image_url: Url { url: url.into() } }
            }
            Part::Audio(Media::Bytes { media_type, bytes }) => {
                let format = match media_type.as_str() {
                    "audio/wav" | "audio/x-wav" => "wav",
                    "audio/mpeg" => "mp3",
                    other => {
                        return Err(Broken::Request(format!("a recording has to be audio/wav or audio/mpeg, and is {other}")));
                    }
                };
                Self::InputAudio { input_audio: Recording { data: BASE64.encode(bytes), format } }
            }
            Part::Audio(Media::Url(_)) => {
                return Err(Broken::Request("a recording has to be sent as data, and only its address is given".to_owned()));
            }
        })
    }
}

fn offered_tool(Tool { name, description, parameters }: &Tool) -> Function<OfferedTool<'_>> {
    Function { r#type: "function", function: OfferedTool { name, description, parameters } }
}

fn sent_call(ToolCall { id, name, arguments }: &ToolCall) -> SentCallOut<'_> {
    SentCallOut { id, call: Function { r#type: "function", function: CalledFunction { name, arguments } } }
}

/// A piece of a stream, or a whole answer: they differ only in `delta` and `message`.
pub(super) struct Piece {
    pub id: Option<String>,
    pub model: Option<String>,
    /// The first choice: only one answer is requested.
    pub choice: Option<Choice>,
    pub tokens: Option<Tokens>,
}

/// The model's output, and why it ended.
pub(super) struct Choice {
    pub text: String,
    pub tool_calls: Vec<CallPiece>,
    /// Whether this contains output: text, reasoning or a tool call. The first piece often contains only a role.
    pub has_output: bool,
    pub finish_reason: Option<String>,
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
        let sent: Sent<'_> = serde_json::from_slice(json).map_err(|error| Broken::garbled(error.to_string(), json))?;
        if let Some(error) = sent.error {
            return Err(Broken::Failed(status_of(error), message_of(error)));
        }
        Ok(Self {
            id: sent.id.and_then(text_in),
            model: sent.model.and_then(text_in),
            choice: sent.choices.and_then(|first| first.0.into_iter().next()).map(Choice::from),
            tokens: sent.usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).map(|counts: Counts<'_>| Tokens {
                prompt: counts.prompt_tokens.and_then(count),
                completion: counts.completion_tokens.and_then(count),
            }),
        })
    }
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

/// Parses a count, which some servers send as a fraction.
fn count(value: &RawValue) -> Option<u64> {
    let count: f64 = value.get().parse().ok()?;
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
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
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

impl From<SentChoice<'_>> for Choice {
    fn from(sent: SentChoice<'_>) -> Self {
        let finish_reason = sent.finish_reason.and_then(text_in);
        let Some(words) = sent.delta.or(sent.message) else {
            return Self { text: String::new(), tool_calls: Vec::new(), has_output: false, finish_reason };
        };
        let text = words.content.unwrap_or_default();
        // A value that is not a list of calls is ignored, like everything else that is not needed.
        let calls = words.tool_calls.and_then(|calls| serde_json::from_str(calls.get()).ok());
        let calls = calls.map(|calls: First<SentCall<'_>, { MAX_TOOL_CALLS + 1 }>| calls.0).unwrap_or_default();
        let tool_calls: Vec<_> = calls.into_iter().map(CallPiece::from).collect();
        // A string is output unless it is empty: `""`.
        let is_thought = |value: &RawValue| value.get().starts_with('"') && value.get().len() > 2;
        let thinks = [words.reasoning, words.reasoning_content].into_iter().flatten().any(is_thought);
        Self { has_output: thinks || !text.is_empty() || !tool_calls.is_empty(), text, tool_calls, finish_reason }
    }
}

impl From<SentCall<'_>> for CallPiece {
    fn from(SentCall { index, id, function }: SentCall<'_>) -> Self {
        let (name, arguments) = function.map_or((None, None), |function| (function.name, function.arguments));
        let text = |value: Option<&RawValue>| value.and_then(text_in).unwrap_or_default();
        // Some servers send the arguments as an object instead of a string.
        let object = arguments.map(RawValue::get).filter(|json| json.starts_with('{'));
        Self {
            index: index.and_then(count),
            id: text(id),
            name: text(name),
            arguments: object.map_or_else(|| text(arguments), str::to_owned),
        }
    }
}

/// The first elements of an array, at most `N`. The others are skipped.
struct First<T, const N: usize>(Vec<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for First<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T, const N: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
            type Value = First<T, N>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<First<T, N>, A::Error> {
                let mut first = Vec::new();
                while first.len() < N
                    && let Some(element) = elements.next_element()?
                {
                    first.push(element);
                }
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }

        deserializer.deserialize_seq(Elements(PhantomData))
    }
}
