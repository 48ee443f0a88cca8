//! Asking a language model, whoever serves it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::domain::id::{CompanionId, GuildId, ModelName};

pub use http::Extensions;

pub use self::lazy_request::LazyRequest;
pub use crate::domain::model_role::ModelRole;

mod lazy_request;

/// A model behind one endpoint.
#[async_trait]
pub trait LanguageModel: Send + Sync + 'static {
    /// Asks once: no queueing and no retry of its own. Dropping the future cancels the request.
    ///
    /// `drafts` gets the text as it grows, piece by piece, for as long as somebody listens; what is returned is always whole.
    async fn ask(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer>;

    /// Who serves it, under which model name.
    fn identity(&self) -> &Identity;
}

/// Text in the making: never an answer by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draft {
    /// The next piece.
    More(String),
    /// Forget the pieces so far: the call broke off and the text is begun anew.
    Anew,
}

/// Who serves a model, under which name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `gen_ai.provider.name`: `rehearsal`, `openai`, or the endpoint's host.
    pub provider: Arc<str>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
    /// What the circuit breaker and the limits count together: scheme, host and port of the endpoint, or `rehearsal`.
    pub endpoint: Arc<str>,
}

/// One question.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the model is asked for: how long it may take and who waits for it go by that.
    pub role: ModelRole,
    /// Which model of the settings is asked.
    pub model: ModelName,
    /// Whose question it is; absent for a summary and a judgement.
    pub companion: Option<Asker>,
    /// Where it is asked: fairness, limits and accounting go by guild.
    pub guild: GuildId,
    /// What the model reads, in order.
    pub messages: Vec<Message>,
    /// What the model may call instead of answering.
    pub tools: Vec<Tool>,
    /// The form of the answer.
    pub format: AnswerFormat,
    /// The parts of what is to be read, and their estimated tokens: what is kept of a prompt.
    pub sizes: Vec<(&'static str, usize)>,
    /// At most this many tokens of answer.
    pub max_tokens: u32,
    /// What one implementation understands beside the text, by its type.
    pub extensions: Extensions,
}

impl Request {
    /// A request without anything to be read yet, for the model that serves the role unless another is named.
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
            max_tokens,
            extensions: Extensions::new(),
        }
    }

    /// The same with an extension, in the place of one of its type.
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.extensions.insert(extension);
        self
    }

    /// The instructions: all texts of system messages.
    pub fn system(&self) -> Cow<'_, str> {
        self.text_of(|role| matches!(role, Role::System))
    }

    /// What is to be read: all texts of user messages.
    pub fn user(&self) -> Cow<'_, str> {
        self.text_of(|role| matches!(role, Role::User))
    }

    fn text_of(&self, is_meant: impl Fn(&Role) -> bool) -> Cow<'_, str> {
        joined(self.messages.iter().filter(|message| is_meant(&message.role)).flat_map(|message| &message.parts))
    }
}

/// Whose question it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The companion.
    pub id: CompanionId,
    /// Its name.
    pub name: Arc<str>,
}

/// One message of what a model reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What it says, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of text alone.
    pub fn text(role: Role, text: String) -> Self {
        Self { role, parts: vec![Part::Text(text)] }
    }

    /// The usual prompt: instructions, and one text to be read.
    pub fn prompt(system: String, user: String) -> Vec<Self> {
        vec![Self::text(Role::System, system), Self::text(Role::User, user)]
    }
}

/// Who says a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The instructions.
    System,
    /// Whoever asks.
    User,
    /// The model, earlier.
    Assistant {
        /// The calls that it made.
        tool_calls: Vec<ToolCall>,
    },
    /// A tool that was called.
    Tool {
        /// The id of the call that this is the result of.
        call_id: String,
    },
}

/// A part of a message or of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture.
    Image(Media),
    /// A recording.
    Audio(Media),
}

/// A picture or a recording.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Media {
    /// Where it can be fetched.
    Url(String),
    /// The file itself.
    Bytes {
        /// Its media type, such as `image/png` or `audio/wav`.
        media_type: String,
        /// What it holds.
        bytes: Arc<[u8]>,
    },
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
    /// What it is called.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its parameters.
    pub parameters: serde_json::Value,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolCall {
    /// By what its result refers to it; empty where the endpoint gave it none.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if it kept to the schema.
    pub arguments: String,
}

/// The form of an answer. The prompt has to say so too, because not every endpoint can be told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AnswerFormat {
    /// Text.
    #[default]
    Text,
    /// One JSON object.
    JsonObject,
    /// One JSON object that a schema describes.
    JsonSchema {
        /// The schema's name: 1 to 64 of `A-Z a-z 0-9 _ -`.
        name: String,
        /// The schema.
        schema: serde_json::Value,
    },
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it says.
    pub parts: Vec<Part>,
    /// The tools that it wants to be called.
    pub tool_calls: Vec<ToolCall>,
    /// Tokens used: as the endpoint counted them, or estimated at four characters a token where it does not say.
    pub usage: Usage,
    /// `gen_ai.response.model`, if it said.
    pub model: Option<String>,
    /// `gen_ai.response.id`, if it said.
    pub response_id: Option<String>,
    /// `gen_ai.response.finish_reasons`, if it said.
    pub finish_reason: Option<String>,
}

impl Answer {
    /// An answer of text alone, of which nothing else is known.
    pub fn of_text(text: impl Into<String>, usage: Usage) -> Self {
        let parts = vec![Part::Text(text.into())];
        Self { parts, tool_calls: Vec::new(), usage, model: None, response_id: None, finish_reason: None }
    }

    /// Its whole text; empty if it only calls tools.
    pub fn text(&self) -> Cow<'_, str> {
        joined(&self.parts)
    }
}

fn joined<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Cow<'a, str> {
    parts.into_iter().fold(Cow::Borrowed(""), |all, part| match part {
        Part::Text(text) => all + text.as_str(),
        Part::Image(_) | Part::Audio(_) => all,
    })
}

/// Tokens of one or several calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

impl Usage {
    /// A guess for a model that does not count: four characters a token, as is common for English. Pictures and recordings count nothing.
    pub fn estimate(request: &Request, answer: &str) -> Self {
        let tokens = |characters: usize| (characters as u64).div_ceil(4);
        let characters = |part: &Part| match part {
            Part::Text(text) => text.chars().count(),
            Part::Image(_) | Part::Audio(_) => 0,
        };
        Self {
            input_tokens: tokens(request.messages.iter().flat_map(|message| &message.parts).map(characters).sum()),
            output_tokens: tokens(answer.chars().count()),
        }
    }

    /// Both kinds together.
    pub const fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
    }
}

/// Why there is no answer. None of these is a NO.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The deadline passed.
    #[error("no answer within {}", humane(.after))]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The endpoint cannot be reached, or broke off.
    #[error("{endpoint} cannot be reached: {detail}")]
    Unreachable {
        /// Which endpoint.
        endpoint: Arc<str>,
        /// What happened.
        detail: String,
    },
    /// The endpoint failed so often in a row that it is not asked for a while. Worth another try after that.
    #[error("{endpoint} failed several times in a row, and is left alone for another {}", humane(.remaining))]
    CircuitOpen {
        /// Which endpoint.
        endpoint: Arc<str>,
        /// How long it is left alone from now.
        remaining: Duration,
    },
    /// The endpoint, or our own queue before it, has too much to do (429, 5xx, full). Worth another try.
    #[error("{endpoint} is overloaded: {detail}")]
    Overloaded {
        /// Which endpoint.
        endpoint: Arc<str>,
        /// What happened.
        detail: String,
        /// What it asked for, if it did.
        retry_after: Option<Duration>,
    },
    /// The endpoint refuses such a request (400, 401, 403, 404 …), or speaks another protocol: trying again will not help.
    #[error("{endpoint} refused: {detail}")]
    Refused {
        /// Which endpoint.
        endpoint: Arc<str>,
        /// What it said; never holds a key.
        detail: String,
    },
    /// The request cannot be sent to this endpoint as it is, so it was not asked: trying again will not help.
    #[error("{endpoint} was not asked: {detail}")]
    Unsendable {
        /// Which endpoint.
        endpoint: Arc<str>,
        /// What is in the way; never holds a key.
        detail: String,
    },
    /// The process died again and again while it read the answer to this very question, so it is not asked for a while.
    #[error("{endpoint} is not asked: the server died twice while the answer to this question arrived")]
    Fatal {
        /// Which endpoint.
        endpoint: Arc<str>,
    },
    /// The question could not be put into words, so nobody was asked. A fault of this program, and of no model.
    #[error("the question could not be put into words, which is a fault of this program: nobody was asked")]
    NoPrompt,
    /// Nobody wants the answer any more.
    #[error("cancelled")]
    Cancelled,
}

impl NoAnswer {
    /// A stable code for spans, metrics and records (`error.type`).
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } => "timeout",
            Self::Unreachable { .. } => "unreachable",
            Self::CircuitOpen { .. } => "left_alone",
            Self::Overloaded { .. } => "overloaded",
            Self::Refused { .. } | Self::Unsendable { .. } => "refused",
            Self::Fatal { .. } => "fatal_answer",
            Self::NoPrompt => "unworded",
            Self::Cancelled => "cancelled",
        }
    }

    /// In our words alone: without what the endpoint said itself, between “ and ”, which may quote what people said. For logs.
    pub fn in_our_words(&self) -> String {
        let all = self.to_string();
        let Some((ours, said)) = all.split_once('“') else { return all };
        // What the endpoint said may hold such marks too.
        format!("{ours}…{}", said.rsplit_once('”').map_or("", |(_, rest)| rest))
    }

    /// Whether the same request may succeed a little later.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Unreachable { .. } | Self::CircuitOpen { .. } | Self::Overloaded { .. })
    }
}

fn humane(span: &Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_endpoint_said_itself_is_left_out_of_our_words() {
        let refused =
            |detail: &str| NoAnswer::Refused { endpoint: "http://here".into(), detail: detail.to_owned() }.in_our_words();

        assert_eq!(refused("400: “no “sea” here” (check it)"), "http://here refused: 400: … (check it)");
        assert_eq!(refused("400: “cut of"), "http://here refused: 400: …");
        assert_eq!(refused("it has no end"), "http://here refused: it has no end");
    }
}
