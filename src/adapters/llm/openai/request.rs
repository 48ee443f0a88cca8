//! The JSON of requests, in the dialect of the endpoint.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use serde_json::{Map, Value};

use super::dialect::{Form, Parameters};
use super::schema::{Ordered, is_strict};
use crate::adapters::endpoint::failure::Broken;
use crate::ports::language_model::{AnswerFormat, Media, Message, Part, Request, Role, Tool, ToolCall};

const SYSTEM: &str = "system";
const USER: &str = "user";

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
    /// Additional fields for the endpoint.
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
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

/// The content of a message. Many servers accept only one text, so text alone is sent as a plain string.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<SentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentPart<'a> {
    Text { text: Cow<'a, str> },
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
    /// Whether the answer must follow the schema exactly. Endpoints have additional requirements for such a schema.
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
    /// Returns an error if the request contains something that the protocol cannot express.
    pub fn new(
        model: &'a str,
        temperature: Option<f64>,
        extra: &'a Map<String, Value>,
        request: &'a Request,
        parameters: Parameters,
    ) -> Result<Self, Broken> {
        let limit = Some(request.max_tokens.min(parameters.limit));
        let messages: Result<Vec<_>, _> = request.messages.iter().map(|message| SentMessage::of(message, parameters)).collect();
        let messages = messages?.into_iter().filter(|message| !message.is_empty()).collect();
        Ok(Self {
            model,
            messages: turns(messages, parameters.system),
            stream: parameters.stream,
            stream_options: (parameters.stream && parameters.stream_options).then_some(StreamOptions { include_usage: true }),
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
            tools: request.tools.iter().filter(|_| parameters.tools).map(offered_tool).collect(),
            extra,
        })
    }
}

impl<'a> SentMessage<'a> {
    fn of(message: &'a Message, parameters: Parameters) -> Result<Self, Broken> {
        let (role, tool_calls, tool_call_id) = match &message.role {
            Role::System => (SYSTEM, &[][..], None),
            Role::User => (USER, &[][..], None),
            Role::Assistant { tool_calls } if parameters.tools => ("assistant", &tool_calls[..], None),
            Role::Assistant { .. } => ("assistant", &[][..], None),
            Role::Tool { .. } if !parameters.tools => (USER, &[][..], None),
            Role::Tool { call_id } => ("tool", &[][..], Some(call_id.as_str())),
        };
        let content = Content::of(message.parts.iter().filter(|part| parameters.pictures || !matches!(part, Part::Image(_))))?;
        let is_silent = matches!(&content, Content::Text(text) if text.is_empty());
        Ok(Self {
            role,
            // The result of a tool is sent even if it is empty.
            content: (!is_silent || tool_call_id.is_some()).then_some(content),
            tool_calls: tool_calls.iter().map(sent_call).collect(),
            tool_call_id,
        })
    }

    const fn is_empty(&self) -> bool {
        self.content.is_none() && self.tool_calls.is_empty()
    }

    const fn can_be_joined(&self) -> bool {
        self.tool_calls.is_empty() && self.tool_call_id.is_none()
    }

    /// Appends the content of the next message.
    fn join(&mut self, next: Self) {
        self.content = match (self.content.take(), next.content) {
            (Some(Content::Text(one)), Some(Content::Text(other))) => Some(Content::Text(one + "\n\n" + other)),
            (Some(one), Some(other)) => Some(Content::Parts(one.into_parts().into_iter().chain(other.into_parts()).collect())),
            (one, other) => one.or(other),
        };
    }
}

impl<'a> Content<'a> {
    fn of(parts: impl Iterator<Item = &'a Part> + Clone) -> Result<Self, Broken> {
        let text = |part: &'a Part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image(_) | Part::Audio(_) => None,
        };
        if let Some(texts) = parts.clone().map(text).collect::<Option<Vec<_>>>() {
            return Ok(Self::Text(texts.into_iter().fold(Cow::Borrowed(""), |all, text| all + text)));
        }
        parts.map(SentPart::of).collect::<Result<_, _>>().map(Self::Parts)
    }

    fn into_parts(self) -> Vec<SentPart<'a>> {
        match self {
            Self::Text(text) => vec![SentPart::Text { text }],
            Self::Parts(parts) => parts,
        }
    }
}

impl<'a> SentPart<'a> {
    fn of(part: &'a Part) -> Result<Self, Broken> {
        Ok(match part {
            Part::Text(text) => Self::Text { text: text.into() },
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

/// Converts messages to a form that every template accepts: only the first messages keep the role `system`, if the template
/// supports it at all, and consecutive messages of one role are joined.
fn turns(messages: Vec<SentMessage<'_>>, with_system: bool) -> Vec<SentMessage<'_>> {
    let mut turns: Vec<SentMessage<'_>> = Vec::new();
    for mut message in messages {
        let is_first = turns.iter().all(|turn| turn.role == SYSTEM);
        if message.role == SYSTEM && !(with_system && is_first) {
            message.role = USER;
        }
        match turns.last_mut().filter(|last| last.role == message.role && last.can_be_joined() && message.can_be_joined()) {
            Some(last) => last.join(message),
            None => turns.push(message),
        }
    }
    turns
}

fn offered_tool(Tool { name, description, parameters }: &Tool) -> Function<OfferedTool<'_>> {
    Function { r#type: "function", function: OfferedTool { name, description, parameters } }
}

fn sent_call(ToolCall { id, name, arguments }: &ToolCall) -> SentCallOut<'_> {
    SentCallOut { id, call: Function { r#type: "function", function: CalledFunction { name, arguments } } }
}
