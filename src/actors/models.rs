//! The pool of model calls. It queues all calls, by priority, fairly among guilds and within limits. It answers every question
//! exactly once.
//!
//! The actor holds the questions and never awaits a network; each call is a task of its own that reports back. Side and main
//! questions go through the same pool, with limits and queues per endpoint, role and model, and one circuit breaker per endpoint.

pub mod failing_models;
pub mod handle;
mod measures;
pub mod queue;
pub mod schedule;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

pub use handle::{Models, Pending, Pool, Question, Refusal};

use crate::actors::messages::models::{CallFacts, CallId, Job, Outcome, PoolMessage, PoolReport, PoolRequest};
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::runtime::actor_keys::PoolKey;
use crate::actors::runtime::directory::{Directory, Registration, Sort};
use crate::actors::runtime::owned_task::OwnedTask;
use crate::domain::moment::Moment;
use crate::ports::language_model::{Answer, Draft, NoAnswer, TokenUsage};
use crate::ports::rng::Rng;
use crate::settings::models::Models as Settings;
use crate::telemetry::instruments::Instruments;
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::plain::Plain;
use failing_models::FailingModels;
use measures::Measures;
use schedule::{Entry, Schedule, Step};

/// The pool's actor, named `side_models` in the tree.
pub struct SideModels {
    /// The limits, timeouts and breakers.
    pub settings: Settings,
    /// Spreads the retries of calls that failed together.
    pub rng: Arc<dyn Rng>,
    pub instruments: Instruments,
    pub directory: Directory,
}

/// All of the pool's state can be lost, because dropping a question answers it.
pub struct State {
    started: Instant,
    schedule: Schedule,
    /// In the order of arrival, so that questions lost with the pool are answered in that order.
    questions: BTreeMap<CallId, Waiting>,
    failing_models: FailingModels,
    /// The first call to the models in force. The results of earlier calls say nothing about these models.
    first: CallId,
    measures: Measures,
    /// The time of the pool's next wake-up, and its timer.
    alarm: Option<(Moment, OwnedTask)>,
    _counted: Counted,
    _registration: Registration,
}

struct Waiting {
    job: Job,
    reply: Reply<Outcome, Dropped>,
    /// The running call.
    worker: Option<OwnedTask>,
}

impl Actor for SideModels {
    type Msg = PoolMessage;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<PoolMessage>, (): ()) -> Result<State, ActorProcessingErr> {
        Ok(State {
            _registration: self.directory.register(&PoolKey(), &myself),
            started: Instant::now(),
            schedule: Schedule::new(self.settings.clone()),
            questions: BTreeMap::new(),
            failing_models: FailingModels::default(),
            first: CallId(0),
            measures: Measures::new(self.instruments.clone()),
            alarm: None,
            _counted: self.instruments.actors.one([Sort::Models.as_str()]),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<PoolMessage>,
        message: PoolMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let now = state.moment(Instant::now());
        let steps = match message {
            PoolMessage::Ask(asked) => state.enqueue(now, *asked),
            PoolMessage::Cancel(call) => state.schedule.cancel(now, call),
            PoolMessage::Ended(call, result) => {
                state.note_result(call, result.as_ref().err());
                state.log_cut(call, &result);
                state.schedule.ended(now, call, result, self.rng.fraction())
            }
            PoolMessage::Changed(call) => state.schedule.changed(now, call),
            PoolMessage::Panicked(call) => {
                state.log_panic(call, "a model's call panicked; its question is answered without a model");
                state.schedule.panicked(now, call)
            }
            PoolMessage::NoPrompt(call) => {
                state.log_panic(call, "building a question's prompt panicked; no model was asked");
                state.schedule.prompt_failed(now, call)
            }
            PoolMessage::NotNeeded(call) => state.schedule.not_needed(now, call),
            PoolMessage::Replaced(first) => {
                (state.failing_models, state.first) = (FailingModels::default(), first);
                state.schedule.close_breakers(now)
            }
            PoolMessage::Wake => state.schedule.wake(now),
            PoolMessage::Report(reply) => {
                drop(reply.send(state.report(now)));
                return Ok(());
            }
        };
        state.carry_out(&myself, now, steps, &self.instruments);
        state.measures.record_schedule(&mut state.schedule, now);
        state.set_alarm(&myself, now);
        Ok(())
    }
}

impl State {
    fn moment(&self, instant: Instant) -> Moment {
        Moment::ZERO + instant.saturating_duration_since(self.started)
    }

    fn enqueue(&mut self, now: Moment, asked: PoolRequest) -> Vec<Step> {
        let PoolRequest { call, priority, asked, deadline, job, reply } = asked;
        let entry = Entry {
            call,
            role: job.request.base().role,
            model: job.request.base().model.clone(),
            at: job.at.clone(),
            guild: job.request.base().guild.clone(),
            priority,
            asked: self.moment(asked),
            deadline: self.moment(deadline),
        };
        self.questions.insert(call, Waiting { job, reply, worker: None });
        self.schedule.ask(now, entry)
    }

    fn note_result(&mut self, call: CallId, failure: Option<&NoAnswer>) {
        if let Some(question) = self.questions.get(&call).filter(|_| call >= self.first) {
            let Job { at, model, request, .. } = &question.job;
            let request = request.base();
            self.failing_models.note_result(at, &model.identity().model, request.role, &request.model, failure);
        }
    }

    /// Logs a truncated answer. An answer without text counts as a failure instead.
    fn log_cut(&self, call: CallId, result: &Result<Answer, NoAnswer>) {
        let Some(question) = self.questions.get(&call).filter(|_| result.as_ref().is_ok_and(Answer::is_cut)) else { return };
        let (request, model) = (question.job.request.base(), &*question.job.model.identity().model);
        tracing::warn!(
            role = request.role.as_str(),
            model,
            max_tokens = request.max_tokens,
            "an answer was cut off at its limit of tokens; {} raises it",
            request.role.limit_setting()
        );
    }

    fn log_panic(&self, call: CallId, text: &str) {
        if let Some(question) = self.questions.get(&call) {
            let (endpoint, request) = (&*question.job.at.endpoint, question.job.request.base());
            let companion = request.companion.as_ref().map_or("", |companion| companion.id.as_str());
            tracing::error!(
                endpoint,
                guild = %Plain(request.guild.as_str()),
                companion = %Plain(companion),
                role = request.role.as_str(),
                "{text}"
            );
        }
    }

    fn carry_out(&mut self, myself: &ActorRef<PoolMessage>, now: Moment, steps: Vec<Step>, instruments: &Instruments) {
        for step in steps {
            match step {
                Step::Call(call, is_retry) => self.call(myself, call, is_retry, instruments.clone()),
                Step::Answer { call, result, stats } => {
                    if let Err(failure @ NoAnswer::TimedOut { .. }) = &result
                        && !stats.in_calls.is_zero()
                    {
                        // The last call did not return before the deadline.
                        self.note_result(call, Some(failure));
                    }
                    let Some(Waiting { job, reply, worker }) = self.questions.remove(&call) else { continue };
                    drop(worker);
                    self.measures.answered(job.request.base().role, stats);
                    let facts = CallFacts {
                        service: job.at.service,
                        identity: job.model.identity().clone(),
                        waited_ms: millis(stats.waited),
                        model_ms: millis(stats.in_calls),
                        attempts: stats.attempts,
                        usage: result.as_ref().map_or_else(|_| TokenUsage::default(), |answer| answer.usage),
                    };
                    reply.send(Ok(Outcome { result, facts }));
                }
                Step::CircuitOpen(at, until) => {
                    let open_ms = until.since(now).as_millis() as u64;
                    // The failure itself was logged when it began.
                    tracing::debug!(endpoint = &*at.endpoint, open_ms, "endpoint failed several times in a row");
                }
            }
        }
    }

    fn call(&mut self, myself: &ActorRef<PoolMessage>, call: CallId, is_retry: bool, instruments: Instruments) {
        let Some(question) = self.questions.get_mut(&call) else { return };
        if is_retry && let Some(drafts) = &question.job.drafts {
            drop(drafts.send(Draft::Restart));
        }
        question.worker = Some(worker::start(myself.clone(), call, question.job.clone(), instruments));
    }

    fn set_alarm(&mut self, myself: &ActorRef<PoolMessage>, now: Moment) {
        // Also wakes when a breaker half-opens, so that the gauge of open breakers falls although no question arrives.
        let next = self.schedule.next_wakeup().into_iter().chain(self.schedule.circuit_open(now)).min();
        // An earlier alarm stays, and is set again when it has fired. A new alarm for each question would be expensive.
        if self.alarm.as_ref().is_some_and(|(at, _)| *at > now && next.is_none_or(|next| *at <= next)) {
            return;
        }
        let pool = myself.clone();
        self.alarm = next.map(|at| {
            let due = self.started + at.since(Moment::ZERO);
            let ring = async move {
                tokio::time::sleep_until(due).await;
                drop(pool.cast(PoolMessage::Wake));
            };
            (at, tokio::spawn(ring).into())
        });
    }

    fn report(&self, now: Moment) -> PoolReport {
        PoolReport { lanes: self.schedule.lanes(now), troubles: self.failing_models.all() }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
