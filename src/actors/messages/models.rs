//! Messages to the pool, and its answers.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::reply::{Dropped, Reply};
use crate::domain::breaker::BreakerState;
use crate::domain::id::ModelName;
use crate::domain::priority::Priority;
use crate::domain::service::{Service, ServiceEndpoint};
use crate::ports::language_model::{Answer, Draft, Identity, LanguageModel, LazyRequest, ModelRole, NoAnswer, TokenUsage};

/// Messages to the pool. Other actors send them through [`Pool`](crate::actors::models::Pool).
pub enum PoolMessage {
    Ask(Box<PoolRequest>),
    /// Cancel a call whose answer is no longer wanted.
    Cancel(CallId),
    Ended(CallId, Result<Answer, NoAnswer>),
    /// A call failed for a reason that does not apply to its next prompt.
    Changed(CallId),
    /// The task of a call panicked.
    Panicked(CallId),
    /// The prompt of a question could not be built, so no model was called.
    NoPrompt(CallId),
    /// The prompt has no input any more, so no model was called.
    NotNeeded(CallId),
    /// Calls from this one on go to other models.
    Replaced(CallId),
    /// A deadline or the end of a pause is due.
    Wake,
    /// Answer with the state of all queues.
    Report(oneshot::Sender<PoolReport>),
}

/// The id of one call to the pool. Later calls have greater ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A call that is handed to the pool.
pub struct PoolRequest {
    pub call: CallId,
    pub priority: Priority,
    pub asked: Instant,
    /// When the call fails with a timeout. The time includes waiting and retries.
    pub deadline: Instant,
    /// The input of each attempt.
    pub job: Job,
    pub reply: Reply<Outcome, Dropped>,
}

/// The input of each attempt of one call.
#[derive(Clone)]
pub struct Job {
    pub at: ServiceEndpoint,
    pub model: Arc<dyn LanguageModel>,
    pub request: Arc<LazyRequest>,
    /// Receives the draft while it grows.
    pub drafts: Option<mpsc::UnboundedSender<Draft>>,
    pub span: tracing::Span,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer, or the reason why there is none.
    pub result: Result<Answer, NoAnswer>,
    pub facts: CallFacts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFacts {
    pub service: Service,
    pub identity: Identity,
    /// Milliseconds in the queue and in pauses between attempts.
    pub waited_ms: u64,
    /// Milliseconds in calls to the model.
    pub model_ms: u64,
    /// Requests to the model; 0 if the call never left the queue.
    pub attempts: u32,
    /// Tokens used; zero without an answer.
    pub usage: TokenUsage,
}

/// The state of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolReport {
    /// Every queue that has been used.
    pub lanes: Vec<LaneReport>,
    /// The models whose last call failed.
    pub troubles: Vec<Trouble>,
}

/// The state of one model's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneReport {
    pub role: ModelRole,
    /// The model's name in the settings.
    pub model: ModelName,
    /// Where the model is served.
    pub at: ServiceEndpoint,
    /// Calls that wait, including those that back off.
    pub waiting: usize,
    pub running: usize,
    pub breaker: BreakerState,
}

/// A model whose last call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The role that the model serves.
    pub role: ModelRole,
    /// Its name in the settings.
    pub name: ModelName,
    /// Its name at its endpoint.
    pub model: Arc<str>,
    /// The error code of its last call.
    pub code: &'static str,
    /// For people: the failure, the endpoint, and a remedy.
    pub detail: String,
}
