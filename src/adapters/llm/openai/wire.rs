//! The JSON that goes out and comes back, as far as it matters here.

use serde::{Deserialize, Serialize};

use super::dialect::Spoken;
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
#[derive(Deserialize)]
pub(super) struct Piece {
    pub id: Option<String>,
    pub model: Option<String>,
    #[serde(default)]
    pub choices: Option<Vec<Choice>>,
    pub usage: Option<Tokens>,
    pub error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    pub delta: Option<Words>,
    pub message: Option<Words>,
    pub finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Words {
    pub content: Option<String>,
    reasoning: Option<serde_json::Value>,
    reasoning_content: Option<serde_json::Value>,
}

impl Words {
    /// Whether the model says or thinks something here; the first piece often names a role alone.
    pub fn is_a_word(&self) -> bool {
        let thoughts = [&self.reasoning, &self.reasoning_content].into_iter().flatten().filter_map(|thought| thought.as_str());
        self.content.as_deref().into_iter().chain(thoughts).any(|text| !text.is_empty())
    }
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct Tokens {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self { input_tokens: tokens.prompt_tokens, output_tokens: tokens.completion_tokens }
    }
}
