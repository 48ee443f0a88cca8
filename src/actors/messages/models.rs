//! What the pool is told, and what it answers.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::reply::{Dropped, Reply};
use crate::domain::id::ModelName;
use crate::domain::moment::Moment;
use crate::domain::priority::Priority;
use crate::domain::service::{Service, ServiceEndpoint};
use crate::ports::language_model::{Answer, Draft, Identity, LanguageModel, LazyRequest, ModelRole, NoAnswer, Usage};

/// What the pool can be told. Others go through [`Pool`](crate::actors::models::Pool).
pub enum PoolMessage {
    /// A question.
    Ask(Box<Asked>),
    /// Nobody wants this answer any more.
    Cancel(CallId),
    /// A call ended.
    Ended(CallId, Result<Answer, NoAnswer>),
    /// A call ended without returning.
    Panicked(CallId),
    /// A question could not be put into words: nobody was called.
    NoPrompt(CallId),
    /// A summary waited for its turn for too long, without a prompt.
    SummaryShed,
    /// A deadline or the end of a pause is due.
    Wake,
    /// How does it stand?
    Report(oneshot::Sender<PoolReport>),
}

/// One question put to the pool; a later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A question on its way to the pool.
pub struct Asked {
    /// Its number.
    pub call: CallId,
    /// How urgent it is.
    pub priority: Priority,
    /// When it was asked.
    pub asked: Instant,
    /// When it is given up, waiting and retries included.
    pub deadline: Instant,
    /// What every try of it needs.
    pub job: Job,
    /// Where the outcome goes.
    pub reply: Reply<Outcome, Dropped>,
}

/// What every try of one question needs.
#[derive(Clone)]
pub struct Job {
    /// Where it is asked.
    pub at: ServiceEndpoint,
    /// Who is asked.
    pub model: Arc<dyn LanguageModel>,
    /// What is asked.
    pub request: Arc<LazyRequest>,
    /// Who wants to see the text grow.
    pub drafts: Option<mpsc::UnboundedSender<Draft>>,
    /// The span in which it was asked.
    pub span: tracing::Span,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer, or why there is none.
    pub result: Result<Answer, NoAnswer>,
    /// What it took.
    pub facts: CallFacts,
}

/// What a question took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFacts {
    /// Which kind of service.
    pub service: Service,
    /// Who was asked.
    pub identity: Identity,
    /// Milliseconds in the queue and in pauses between tries.
    pub waited_ms: u64,
    /// Milliseconds in calls to the model.
    pub model_ms: u64,
    /// Calls made; 0 if the question never left the queue.
    pub attempts: u32,
    /// Tokens used; zero without an answer.
    pub usage: Usage,
}

/// How the pool stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolReport {
    /// Every queue that was used so far.
    pub lanes: Vec<LaneReport>,
    /// The models that gave no answer when they were called last.
    pub troubles: Vec<Trouble>,
}

/// How one model's queue stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneReport {
    /// The model's role.
    pub role: ModelRole,
    /// The model's name in the settings.
    pub model: ModelName,
    /// Where the model is served.
    pub at: ServiceEndpoint,
    /// Questions that wait, pauses included.
    pub waiting: usize,
    /// Calls under way.
    pub running: usize,
    /// The endpoint's breaker.
    pub breaker: BreakerState,
}

/// How an endpoint's breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// No call passes before this moment.
    Open(Moment),
    /// One call may try whether the endpoint is back.
    HalfOpen,
}

/// A model that gave no answer when it was called last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is asked for.
    pub role: ModelRole,
    /// Its name in the settings.
    pub name: ModelName,
    /// Its name at its endpoint.
    pub model: Arc<str>,
    /// What went wrong at which endpoint, and the way out, for people.
    pub detail: String,
    /// The same without what the endpoint said itself, which may quote what people of any guild said.
    pub in_our_words: String,
}
