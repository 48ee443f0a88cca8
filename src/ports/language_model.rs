//! Calls to a language model, independent of its provider.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::inbound_events::StoredFile;
use crate::domain::answer_end::AnswerEnd;
use crate::domain::filter::FILTERED;
use crate::domain::id::{CompanionId, GuildId, ModelName, Seq};
use crate::domain::message::Recalled;
use crate::domain::prompt::{self, Prompt, Turn};

pub use http::Extensions;

pub use self::lazy_request::LazyRequest;
pub use crate::domain::model_role::ModelRole;
pub use crate::domain::token_usage::TokenUsage;

mod lazy_request;

/// The adaptation of a model that gets the descriptions of pictures in their place.
pub const READS_NO_PICTURES: &str = "pictures are described in words, because the model reads none";

/// A model behind one endpoint.
#[async_trait]
pub trait LanguageModel: Send + Sync + 'static {
    /// Makes one call, without queueing and without retry. Dropping the future cancels the request.
    ///
    /// While its receiver exists, `drafts` gets the pieces of the text as they are generated. The returned answer is always complete.
    async fn ask(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer>;

    /// The provider, model name and endpoint.
    fn identity(&self) -> &Identity;

    /// The changes to the request format that the model required, one sentence each.
    fn adaptations(&self) -> Vec<Cow<'static, str>> {
        Vec::new()
    }

    /// Whether the model reads pictures. `None` if that is unknown. If it does not, [`READS_NO_PICTURES`] is one of the adaptations.
    fn reads_pictures(&self) -> Option<bool> {
        None
    }

    /// Fetches the information that is available before the first call.
    async fn prepare(&self) {}

    /// The most tokens of a prompt, as counted by [`Request::tokens`], if the answer has at most `max_tokens`. `None` if the limit is unknown.
    fn prompt_room(&self, _max_tokens: u32) -> Option<usize> {
        None
    }
}

/// A piece of an answer that is still being generated. It is never a whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draft {
    /// The next piece.
    More(String),
    /// The call failed midway and the text starts again. Discard the pieces so far.
    Restart,
}

/// The identity of a model and its endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// `gen_ai.provider.name`: `rehearsal`, `openai`, or the endpoint's host.
    pub provider: Arc<str>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
    /// The key of the circuit breaker and the limits: scheme, host and port of the endpoint, or `rehearsal`.
    pub endpoint: Arc<str>,
}

/// One call to a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kind of call. It determines the time limit and the default model.
    pub role: ModelRole,
    /// The name of the model in the settings.
    pub model: ModelName,
    /// The companion that the call is for. Absent for a summary, a judgement, and the votes of several companions.
    pub companion: Option<Asker>,
    /// The guild. Fairness, limits and accounting are per guild.
    pub guild: GuildId,
    /// The messages of the prompt, in order.
    pub messages: Vec<Message>,
    /// The tools that the model may call instead of answering.
    pub tools: Vec<Tool>,
    /// The form of the answer.
    pub format: AnswerFormat,
    /// The parts of the prompt with their estimated tokens. Nothing else of the prompt is stored.
    pub sizes: Vec<(&'static str, usize)>,
    /// The numbers of the first and the last message in the prompt, for the record of a decision or a judgement.
    pub shown: Option<(Seq, Seq)>,
    /// The older messages and notes that were recalled for the prompt, for the record of a statement.
    pub recalled: Vec<Recalled>,
    /// The numbers of the messages whose pictures and text files are in the prompt, for the record of a statement.
    pub files_of: Vec<Seq>,
    /// The names of the entries of lorebooks in the prompt, for the record of a statement.
    pub lore: Vec<Arc<str>>,
    /// The most tokens that the answer may have.
    pub max_tokens: u32,
    /// Additional data for a specific implementation, keyed by type.
    pub extensions: Extensions,
}

impl Request {
    /// A request with an empty prompt. The model is the default one of the role; a caller can set another.
    pub fn new(role: ModelRole, guild: GuildId, max_tokens: u32) -> Self {
        Self {
            role,
            model: role.into(),
            companion: None,
            guild,
            messages: Vec::new(),
            tools: Vec::new(),
            format: AnswerFormat::Text,
            sizes: Vec::new(),
            shown: None,
            recalled: Vec::new(),
            files_of: Vec::new(),
            lore: Vec::new(),
            max_tokens,
            extensions: Extensions::new(),
        }
    }

    /// Sets the prompt.
    pub fn asking(self, prompt: Prompt) -> Self {
        let Prompt { system, turns, sizes, recalled, lore } = prompt;
        let turns = turns.into_iter().map(|turn| match turn {
            Turn::User(text) => Message::text(Role::User, text),
            Turn::Own(text) => Message::text(Role::Assistant { tool_calls: Vec::new() }, text),
        });
        let messages = [Message::text(Role::System, system)].into_iter().chain(turns).collect();
        Self { messages, sizes, recalled, lore, ..self }
    }

    /// Adds parts to the end of the last message.
    pub fn ending_with(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        if let Some(last) = self.messages.last_mut() {
            last.parts.extend(parts);
        }
        self
    }

    /// Adds an extension, replacing one of the same type.
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.extensions.insert(extension);
        self
    }

    /// The estimated number of tokens of the prompt.
    pub fn tokens(&self) -> usize {
        self.messages.iter().map(|message| prompt::tokens(&message.words())).sum()
    }

    /// The estimated usage of a call with this answer, for a model that does not report it: four characters per token, as is common for English.
    /// Pictures and recordings do not count.
    pub fn estimated_usage(&self, answer: &str) -> TokenUsage {
        let tokens = |characters: usize| (characters as u64).div_ceil(4);
        let characters = |part: &Part| match part {
            Part::Text(text) => text.chars().count(),
            Part::Image(_) | Part::Audio(_) => 0,
        };
        let read = self.messages.iter().flat_map(|message| &message.parts).map(characters).sum();
        TokenUsage::new(tokens(read), tokens(answer.chars().count()))
    }

    /// Limits a reported usage to what a call with this answer can have used: as many tokens as bytes of text, and an allowance for tokens that an
    /// endpoint adds.
    pub fn possible_usage(&self, reported: TokenUsage, answer: &str) -> TokenUsage {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        let bytes: usize = parts.map(|part| if let Part::Text(text) = part { text.len() } else { MOST_UNSEEN }).sum();
        let read = bytes + MOST_UNSEEN * (1 + self.tools.len());
        let written = answer.len().max(self.max_tokens as usize) + MOST_THOUGHTS;
        reported.within(read as u64, written as u64)
    }

    /// Whether its messages hold nothing but text.
    pub fn is_text(&self) -> bool {
        self.messages.iter().flat_map(|message| &message.parts).all(|part| matches!(part, Part::Text(_)))
    }

    /// Whether it offers tools, or has calls of them.
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty() || self.messages.iter().any(|message| matches!(message.role, Role::Tool { .. }))
    }

    /// The input: the joined texts of all user messages.
    pub fn user(&self) -> Cow<'_, str> {
        let texts = self.messages.iter().filter(|message| message.role == Role::User).map(Message::words);
        texts.reduce(|joined, text| format!("{joined}\n{text}").into()).unwrap_or_default()
    }
}

/// The companion that a call is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    pub id: CompanionId,
    pub name: Arc<str>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// The content, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message with a single text.
    pub fn text(role: Role, text: String) -> Self {
        Self { role, parts: vec![Part::Text(text)] }
    }

    /// The joined texts of the message.
    pub fn words(&self) -> Cow<'_, str> {
        joined(&self.parts)
    }

    /// A prompt with one system message and one user message.
    pub fn prompt(system: String, user: String) -> Vec<Self> {
        vec![Self::text(Role::System, system), Self::text(Role::User, user)]
    }
}

/// The author of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The instructions.
    System,
    /// The input to the model.
    User,
    /// An earlier answer of the model.
    Assistant {
        /// The tool calls in that answer.
        tool_calls: Vec<ToolCall>,
    },
    /// The result of a tool call.
    Tool {
        /// The id of the tool call.
        call_id: String,
    },
}

impl Role {
    /// The name of the role in model protocols.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant { .. } => "assistant",
            Self::Tool { .. } => "tool",
        }
    }
}

/// A part of a message or of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Text(String),
    /// A picture. [`Request::estimated_usage`] does not count it.
    Image(Media),
    /// A recording. [`Request::estimated_usage`] does not count it.
    Audio(Media),
}

/// A picture or a recording.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Media {
    /// The URL of the file.
    Url(String),
    /// The file itself.
    Bytes {
        /// The media type, such as `image/png` or `audio/wav`.
        media_type: String,
        /// The content of the file.
        bytes: Arc<[u8]>,
    },
}

impl From<StoredFile> for Media {
    fn from(StoredFile { media_type, bytes }: StoredFile) -> Self {
        Self::Bytes { media_type: media_type.to_string(), bytes }
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
            Self::Bytes { media_type, bytes } => write!(f, "Bytes({media_type}, {} bytes)", bytes.len()),
        }
    }
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tool {
    /// The name by which the model calls the tool.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of the parameters.
    pub parameters: serde_json::Value,
}

/// A tool call that the model requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolCall {
    /// The id by which the result refers to the call. Empty if the endpoint gave none.
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them. They are JSON if the model followed the schema.
    pub arguments: String,
}

/// The form of an answer. The prompt must ask for the form too, because not every endpoint supports this parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AnswerFormat {
    /// Text without a required form.
    #[default]
    Text,
    /// One JSON object.
    JsonObject,
    /// One JSON object that a schema describes.
    JsonSchema {
        /// The schema's name: 1 to 64 of `A-Z a-z 0-9 _ -`.
        name: String,
        schema: Arc<serde_json::Value>,
    },
}

/// The answer of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The content, in order.
    pub parts: Vec<Part>,
    /// The tool calls that the model requests.
    pub tool_calls: Vec<ToolCall>,
    /// The used tokens: the endpoint's count, or an estimate of four characters per token if the endpoint does not report one.
    pub usage: TokenUsage,
    /// `gen_ai.response.model`, if the endpoint reported it.
    pub model: Option<String>,
    /// `gen_ai.response.id`, if the endpoint reported it.
    pub response_id: Option<String>,
    /// `gen_ai.response.finish_reasons`, if the endpoint reported it.
    pub finish_reason: Option<String>,
    /// The time from sending the request to the first chunk of the answer. `None`: the answer was not streamed.
    pub time_to_first_chunk: Option<Duration>,
}

impl Answer {
    /// An answer with a single text, and no metadata except the usage.
    pub fn of_text(text: impl Into<String>, usage: TokenUsage) -> Self {
        Self { parts: vec![Part::Text(text.into())], usage, ..Self::default() }
    }

    /// Whether the answer has no visible text, no media and no tool calls.
    pub fn is_empty(&self) -> bool {
        self.tool_calls.is_empty() && self.parts.iter().all(|part| matches!(part, Part::Text(text) if text.trim().is_empty()))
    }

    /// The joined texts of the answer. Empty if the answer only calls tools.
    pub fn text(&self) -> Cow<'_, str> {
        joined(&self.parts)
    }

    /// Whether the end is missing, because the model reached its token limit, repeated itself, or stopped for an unknown reason.
    pub fn is_cut(&self) -> bool {
        self.finish_reason.as_deref().is_some_and(|reason| AnswerEnd::of(reason).is_missing(&self.text()))
    }
}

fn joined<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Cow<'a, str> {
    parts.into_iter().fold(Cow::Borrowed(""), |joined, part| match part {
        Part::Text(text) => joined + text.as_str(),
        Part::Image(_) | Part::Audio(_) => joined,
    })
}

/// The most tokens that a chat template, a tool, a picture or a recording may add to a prompt.
const MOST_UNSEEN: usize = 8 * 1024;
/// The most reasoning tokens that an endpoint may count beyond the requested limit.
const MOST_THOUGHTS: usize = 32 * 1024;

/// Why there is no answer. None of these counts as a NO. An `endpoint` is a scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The deadline passed.
    #[error("no answer within {}", seconds(.after))]
    TimedOut {
        /// The time limit that was exceeded.
        after: Duration,
    },
    /// The endpoint cannot be reached, or the connection broke off.
    #[error("{endpoint} cannot be reached: {detail}")]
    Unreachable {
        endpoint: Arc<str>,
        /// The error, for logs. It may quote the endpoint.
        detail: String,
    },
    /// The endpoint failed so often in a row that it is not called for a while. A retry after that may succeed.
    #[error("{endpoint} failed several times in a row, and is not called for another {}", seconds(.remaining))]
    CircuitOpen {
        endpoint: Arc<str>,
        /// The time until the endpoint is called again.
        remaining: Duration,
    },
    /// The endpoint, or our own queue for it, is overloaded (429, 5xx, full). A retry may succeed.
    #[error("{endpoint} is overloaded: {detail}")]
    Overloaded {
        endpoint: Arc<str>,
        /// The error, for logs. It may quote the endpoint.
        detail: String,
        /// The delay that the endpoint asked for, if it did.
        retry_after: Option<Duration>,
    },
    /// The endpoint is loading the model. The same request succeeds when loading is complete.
    #[error("{endpoint} is loading the model: {detail}")]
    Loading {
        endpoint: Arc<str>,
        /// The response of the endpoint. It never contains a key.
        detail: String,
    },
    /// The account has no credit (402, and other statuses with that meaning). A retry does not help.
    #[error("{endpoint} refused: {detail}")]
    NoCredit {
        endpoint: Arc<str>,
        /// The response of the endpoint. It never contains a key.
        detail: String,
    },
    /// The model used up its token limit before the first word of its answer. A retry does not help.
    #[error("{endpoint} gave no word: {detail}")]
    OutOfTokens {
        endpoint: Arc<str>,
        /// The limit, and the setting that raises it.
        detail: String,
    },
    /// The prompt and its answer have more tokens than the model's context. A shorter prompt may be accepted.
    #[error("{endpoint} refused: {detail}")]
    TooLong {
        endpoint: Arc<str>,
        /// The response of the endpoint, and the settings. It never contains a key.
        detail: String,
    },
    /// A filter of the endpoint, or the model, refuses part of the prompt. Without that part, the same request may be accepted.
    #[error("{endpoint} refused: {detail}")]
    Filtered {
        endpoint: Arc<str>,
        /// The response of the endpoint. It never contains a key.
        detail: String,
    },
    /// The endpoint does not accept the API key (401, 403). A retry does not help.
    #[error("{endpoint} refused: {detail}")]
    KeyRejected {
        endpoint: Arc<str>,
        /// The response of the endpoint. It never contains a key.
        detail: String,
    },
    /// The endpoint does not know the model, or has no API at this address (404). A retry does not help.
    #[error("{endpoint} refused: {detail}")]
    UnknownModel {
        endpoint: Arc<str>,
        /// The response of the endpoint. It never contains a key.
        detail: String,
    },
    /// The endpoint refuses the request (400 …), or speaks another protocol. A retry does not help.
    #[error("{endpoint} refused: {detail}")]
    Refused {
        endpoint: Arc<str>,
        /// The response of the endpoint. It never contains a key.
        detail: String,
    },
    /// The request cannot be sent to this endpoint in its form, so the endpoint was not called. A retry does not help.
    #[error("{endpoint} was not asked: {detail}")]
    Unsendable {
        endpoint: Arc<str>,
        /// The cause. It never contains a key.
        detail: String,
    },
    /// Building the prompt failed, so no model was called. The cause is an error of this program, not of a model.
    #[error("the prompt could not be built, which is a fault of this program: no model was asked")]
    NoPrompt,
    /// The caller no longer wants the answer.
    #[error("cancelled")]
    Cancelled,
}

impl NoAnswer {
    /// A stable code for spans, metrics and records (`error.type`).
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } => "timeout",
            Self::Unreachable { .. } => "unreachable",
            Self::CircuitOpen { .. } => "circuit_open",
            Self::Overloaded { .. } | Self::Loading { .. } => "overloaded",
            Self::NoCredit { .. } => "no_credit",
            Self::OutOfTokens { .. } => "out_of_tokens",
            Self::TooLong { .. } => "too_long",
            Self::Filtered { .. } => FILTERED,
            Self::KeyRejected { .. } => "key_rejected",
            Self::UnknownModel { .. } => "unknown_model",
            Self::Refused { .. } | Self::Unsendable { .. } => "refused",
            Self::NoPrompt => "no_prompt",
            Self::Cancelled => "cancelled",
        }
    }

    /// The error, for callers that have the endpoint in a field of their own. Refusals and overloads do not repeat the endpoint.
    pub fn in_detail(&self) -> String {
        match self {
            Self::Refused { detail, .. } | Self::Overloaded { detail, .. } => detail.clone(),
            _ => self.to_string(),
        }
    }

    /// The message without quotes of the endpoint, between “ and ”, because those may repeat people's words. For logs.
    pub fn in_our_words(&self) -> String {
        let message = self.to_string();
        let Some((ours, quoted)) = message.split_once('“') else { return message };
        // The quoted text may contain quotation marks, too.
        format!("{ours}…{}", quoted.rsplit_once('”').map_or("", |(_, rest)| rest))
    }

    /// Whether another prompt may get an answer.
    pub const fn is_about_prompt(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::OutOfTokens { .. } | Self::TooLong { .. } | Self::Filtered { .. })
    }

    /// Whether the same request may succeed a little later.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::TimedOut { .. }
                | Self::Unreachable { .. }
                | Self::CircuitOpen { .. }
                | Self::Overloaded { .. }
                | Self::Loading { .. }
        )
    }
}

fn seconds(duration: &Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_of_the_endpoint_are_left_out() {
        let refused =
            |detail: &str| NoAnswer::Refused { endpoint: "http://here".into(), detail: detail.to_owned() }.in_our_words();

        assert_eq!(refused("400: “no “sea” here” (check it)"), "http://here refused: 400: … (check it)");
        assert_eq!(refused("400: “cut of"), "http://here refused: 400: …");
        assert_eq!(refused("it has no end"), "http://here refused: it has no end");
    }
}
