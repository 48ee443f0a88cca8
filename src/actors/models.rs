//! The pool: asks models for everybody, the urgent first, fairly, within limits, and answers every question exactly once.
//!
//! The actor holds the questions and never awaits a network; each call is a task of its own that reports back. Side and main
//! questions go through the same pool, with limits and queues per endpoint, role
//! and model, and one circuit breaker per endpoint.

pub mod breaker;
pub mod handle;
mod measures;
pub mod queue;
pub mod schedule;
pub mod trouble;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use handle::{Models, Pool, Question};

use crate::actors::messages::models::{Asked, CallFacts, CallId, Job, Outcome, PoolMessage, PoolReport};
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::runtime::directory::Sort;
use crate::domain::moment::Moment;
use crate::ports::language_model::{Draft, NoAnswer, Usage};
use crate::ports::rng::Rng;
use crate::settings::models::Models as Settings;
use crate::telemetry::instruments::Instruments;
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::plain::Plain;
use measures::Measures;
use schedule::{Entry, Schedule, Step};
use trouble::Troubles;
use worker::Worker;

/// How long after a question was lost for so many times, from 1, it is asked again: soon, for whoever had it is mostly back at once, and
/// then every 50 ms.
pub fn asked_again_after(losses: u32) -> Duration {
    Duration::from_millis((5 << losses.saturating_sub(1).min(4)).min(50))
}

/// The pool's actor, named `side_models` in the tree.
pub struct SideModels {
    /// Limits.
    pub settings: Settings,
    /// Spreads the tries of those who failed together.
    pub rng: Arc<dyn Rng>,
    /// What it measures with.
    pub instruments: Instruments,
}

/// What the pool keeps; all of it may be lost, because dropping a question answers it.
pub struct State {
    started: Instant,
    schedule: Schedule,
    /// In the order in which they came: what is lost with the pool is told in that order.
    questions: BTreeMap<CallId, Waiting>,
    troubles: Troubles,
    measures: Measures,
    alarm: Option<Alarm>,
    _counted: Counted,
}

struct Waiting {
    job: Job,
    reply: Reply<Outcome, Dropped>,
    worker: Option<Worker>,
}

struct Alarm {
    at: Moment,
    task: AbortHandle,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Actor for SideModels {
    type Msg = PoolMessage;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, _myself: ActorRef<PoolMessage>, (): ()) -> Result<State, ActorProcessingErr> {
        Ok(State {
            started: Instant::now(),
            schedule: Schedule::new(self.settings.clone()),
            questions: BTreeMap::new(),
            troubles: Troubles::default(),
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
            PoolMessage::Ask(asked) => state.take_in(now, *asked),
            PoolMessage::Cancel(call) => state.schedule.cancel(now, call),
            PoolMessage::Ended(call, result) => {
                state.learn(call, result.as_ref().err());
                state.schedule.ended(now, call, result, self.rng.fraction())
            }
            PoolMessage::Panicked(call) => {
                state.tell_panic(call, "a model's call panicked; its question is answered without a model");
                state.schedule.panicked(now, call)
            }
            PoolMessage::NoPrompt(call) => {
                state.tell_panic(call, "a question panicked while it was put into words; no model was asked");
                state.schedule.without_words(now, call)
            }
            PoolMessage::SummaryShed => {
                state.measures.shed_summary();
                Vec::new()
            }
            PoolMessage::Wake => state.schedule.wake(now),
            PoolMessage::Report(reply) => {
                drop(reply.send(state.report(now)));
                return Ok(());
            }
        };
        state.carry_out(&myself, now, steps, &self.instruments);
        state.measures.take(&mut state.schedule, now);
        state.set_alarm(&myself, now);
        Ok(())
    }
}

impl State {
    fn moment(&self, instant: Instant) -> Moment {
        Moment::ZERO + instant.saturating_duration_since(self.started)
    }

    fn take_in(&mut self, now: Moment, asked: Asked) -> Vec<Step> {
        let Asked { call, priority, asked, deadline, job, reply } = asked;
        let entry = Entry {
            call,
            role: job.request.role,
            model: job.request.model.clone(),
            at: job.at.clone(),
            guild: job.request.guild.clone(),
            priority,
            asked: self.moment(asked),
            deadline: self.moment(deadline),
        };
        self.questions.insert(call, Waiting { job, reply, worker: None });
        self.schedule.ask(now, entry)
    }

    fn learn(&mut self, call: CallId, failure: Option<&NoAnswer>) {
        if let Some(question) = self.questions.get(&call) {
            let Job { at, model, request, .. } = &question.job;
            self.troubles.learn(at, &model.identity().model, request.role, &request.model, failure);
        }
    }

    fn tell_panic(&self, call: CallId, what: &str) {
        if let Some(question) = self.questions.get(&call) {
            let (endpoint, request) = (&*question.job.at.endpoint, &question.job.request);
            let companion = request.companion.as_ref().map_or("", |companion| companion.id.as_str());
            tracing::error!(
                endpoint,
                guild = %Plain(request.guild.as_str()),
                companion = %Plain(companion),
                role = request.role.as_str(),
                "{what}"
            );
        }
    }

    fn carry_out(&mut self, myself: &ActorRef<PoolMessage>, now: Moment, steps: Vec<Step>, instruments: &Instruments) {
        for step in steps {
            match step {
                Step::Call(call, again) => self.call(myself, call, again, instruments.clone()),
                Step::Answer { call, result, spent } => {
                    if let Err(failure @ NoAnswer::TimedOut { .. }) = &result
                        && !spent.in_calls.is_zero()
                    {
                        // Its last call never came back.
                        self.learn(call, Some(failure));
                    }
                    let Some(Waiting { job, reply, worker }) = self.questions.remove(&call) else { continue };
                    drop(worker);
                    self.measures.answered(job.request.role, spent);
                    let facts = CallFacts {
                        service: job.at.service,
                        identity: job.model.identity().clone(),
                        waited_ms: millis(spent.waited),
                        model_ms: millis(spent.in_calls),
                        attempts: spent.attempts,
                        usage: result.as_ref().map_or_else(|_| Usage::default(), |answer| answer.usage),
                    };
                    reply.send(Ok(Outcome { result, facts }));
                }
                Step::CircuitOpen(at, until) => {
                    let open_ms = until.since(now).as_millis() as u64;
                    // That it fails was told when it began.
                    tracing::debug!(endpoint = &*at.endpoint, open_ms, "endpoint failed several times in a row");
                }
            }
        }
    }

    fn call(&mut self, myself: &ActorRef<PoolMessage>, call: CallId, again: bool, instruments: Instruments) {
        let Some(question) = self.questions.get_mut(&call) else { return };
        if again && let Some(drafts) = &question.job.drafts {
            drop(drafts.send(Draft::Restart));
        }
        question.worker = Some(Worker::start(myself.clone(), call, question.job.clone(), instruments));
    }

    fn set_alarm(&mut self, myself: &ActorRef<PoolMessage>, now: Moment) {
        // That an endpoint is left alone no more is to be seen although nobody asks it.
        let next = self.schedule.next_wakeup().into_iter().chain(self.schedule.circuit_open(now)).min();
        // One that rings before that is set again when it has rung: an alarm for each question would be much for nothing.
        if self.alarm.as_ref().is_some_and(|alarm| alarm.at > now && next.is_none_or(|next| alarm.at <= next)) {
            return;
        }
        let pool = myself.clone();
        self.alarm = next.map(|at| {
            let due = self.started + at.since(Moment::ZERO);
            let ring = async move {
                tokio::time::sleep_until(due).await;
                drop(pool.cast(PoolMessage::Wake));
            };
            Alarm { at, task: tokio::spawn(ring).abort_handle() }
        });
    }

    fn report(&self, now: Moment) -> PoolReport {
        PoolReport { lanes: self.schedule.lanes(now), troubles: self.troubles.all() }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
