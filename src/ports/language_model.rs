//! Asking a language model, whoever serves it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::domain::closing::Stage;
use crate::domain::id::{CompanionId, GuildId};
use crate::domain::message::{Author, Message};
use crate::domain::trigger::Trigger;

pub use crate::domain::model_role::ModelRole;

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

/// What is asked for. Decides what `rehearsal` does; a real model reads the text alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// YES or NO, in two lines.
    Decision {
        /// Why it is asked.
        trigger: Trigger,
    },
    /// Decision and vote in one, as a JSON object.
    Vote {
        /// Why it is asked.
        trigger: Trigger,
    },
    /// The words of a statement.
    Statement {
        /// What it answers.
        trigger: Trigger,
        /// How near its end the speaker sees the conversation.
        closing: Stage,
    },
    /// A summary of what was said.
    Summary,
    /// How much the last messages repeat one another, as a number.
    Judgement,
}

impl Purpose {
    /// Whether the answer is to be one JSON object. Its prompt says so too, because not every endpoint can be told otherwise.
    pub const fn wants_json(&self) -> bool {
        matches!(self, Self::Vote { .. })
    }
}

/// Something that was said, as `rehearsal` hears it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who said it.
    pub from: Author,
    /// The words.
    pub text: Arc<str>,
}

impl Line {
    /// So many lines are told at most, the newest.
    pub const TOLD_AT_MOST: usize = 8;

    /// The newest of some messages, both from the oldest to the newest.
    pub fn newest_of<'a>(messages: impl DoubleEndedIterator<Item = &'a Message>) -> Vec<Self> {
        let line = |message: &Message| Self { from: message.from.clone(), text: message.text.clone() };
        let mut lines: Vec<Self> = messages.rev().take(Self::TOLD_AT_MOST).map(line).collect();
        lines.reverse();
        lines
    }
}

/// One question.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Which model.
    pub role: ModelRole,
    /// What for.
    pub purpose: Purpose,
    /// Whose question it is; absent for a summary and a judgement.
    pub companion: Option<Persona>,
    /// Where it is asked: fairness, limits and accounting go by guild.
    pub guild: GuildId,
    /// The instructions.
    pub system: String,
    /// What is to be read, as one text.
    pub user: String,
    /// What was said last, oldest first: what it is about last of all. What `rehearsal` goes by.
    pub newest: Vec<Line>,
    /// The parts of what is to be read, and their estimated tokens: what is kept of a prompt.
    pub sizes: Vec<(&'static str, usize)>,
    /// At most this many tokens of answer.
    pub max_tokens: u32,
}

/// What `rehearsal` knows of the companion that it plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persona {
    /// The companion.
    pub id: CompanionId,
    /// Its name.
    pub name: Arc<str>,
    /// Its chattiness, verbatim.
    pub chattiness: Arc<str>,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The whole text.
    pub text: String,
    /// Tokens used: as the endpoint counted them, or estimated at four characters a token where it does not say.
    pub usage: Usage,
    /// `gen_ai.response.model`, if it said.
    pub model: Option<String>,
    /// `gen_ai.response.id`, if it said.
    pub response_id: Option<String>,
    /// `gen_ai.response.finish_reasons`, if it said.
    pub finish_reason: Option<String>,
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
    /// A guess for a model that does not count: four characters a token, as is common for English.
    pub fn estimate(request: &Request, answer: &str) -> Self {
        let tokens = |characters: usize| (characters as u64).div_ceil(4);
        Self {
            input_tokens: tokens(request.system.chars().count() + request.user.chars().count()),
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
    LeftAlone {
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
    /// The process died again and again while it read the answer to this very question, so it is not asked for a while.
    #[error("{endpoint} is not asked: the server died twice while the answer to this question arrived")]
    Fatal {
        /// Which endpoint.
        endpoint: Arc<str>,
    },
    /// The question could not be put into words, so nobody was asked. A fault of this program, and of no model.
    #[error("the question could not be put into words, which is a fault of this program: nobody was asked")]
    Unworded,
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
            Self::LeftAlone { .. } => "left_alone",
            Self::Overloaded { .. } => "overloaded",
            Self::Refused { .. } => "refused",
            Self::Fatal { .. } => "fatal_answer",
            Self::Unworded => "unworded",
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
        matches!(self, Self::TimedOut { .. } | Self::Unreachable { .. } | Self::LeftAlone { .. } | Self::Overloaded { .. })
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
