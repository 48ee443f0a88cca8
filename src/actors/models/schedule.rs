//! Decides when each question is asked, retried or answered with an error. This is the pool's logic, without its runtime.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::queue::Queue;
use crate::actors::messages::models::{CallId, LaneReport};
use crate::domain::breaker::{Breaker, BreakerState, Verdict};
use crate::domain::id::{GuildId, ModelName};
use crate::domain::moment::Moment;
use crate::domain::priority::Priority;
use crate::domain::service::ServiceEndpoint;
use crate::ports::language_model::{Answer, ModelRole, NoAnswer};
use crate::settings::duration;
use crate::settings::models::{self, Concurrency};

/// A failed call that took this fraction of its question's time (a quarter) or more counts as hung. By default, adapters wait for
/// the first token for at least half of that time.
const HUNG_PART: u32 = 4;
/// While an endpoint loads a model, the pauses stop growing after this many attempts.
const LOADING_ATTEMPTS: u32 = 3;

/// The parts of a question that scheduling needs.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Greater than the id of any earlier question.
    pub call: CallId,
    pub role: ModelRole,
    /// The model's name in the settings.
    pub model: ModelName,
    pub at: ServiceEndpoint,
    pub guild: GuildId,
    pub priority: Priority,
    pub asked: Moment,
    /// When the question fails with a timeout.
    pub deadline: Moment,
}

impl Entry {
    fn lane(&self) -> LaneKey {
        LaneKey { at: self.at.clone(), role: self.role, model: self.model.clone() }
    }
}

/// An action for the actor. Actions are carried out in order.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a step is carried out at once")]
pub enum Step {
    /// Ask the model now. True: this is a retry, and drafts of an earlier attempt are void.
    Call(CallId, bool),
    /// Answer the question and drop it, together with its running call, if there is one.
    Answer {
        call: CallId,
        /// The answer, or the reason why there is none.
        result: Result<Answer, NoAnswer>,
        stats: CallStats,
    },
    /// Log that this endpoint gets no calls until this moment, because it failed too often.
    CircuitOpen(ServiceEndpoint, Moment),
}

/// The time and the attempts that a question took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Time in the queue and in pauses between attempts.
    pub waited: Duration,
    pub in_calls: Duration,
    /// The number of calls made.
    pub attempts: u32,
}

/// An event of the pool that is counted in the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolEvent {
    /// A call failed and is retried.
    Retried(ModelRole),
    /// A question's deadline passed.
    TimedOut(ModelRole),
    /// A question was shed or refused because too many waited.
    Shed(ModelRole, Priority),
    Panicked(ModelRole),
    /// A question's prompt could not be built.
    NoPrompt(ModelRole),
    Opened,
}

/// All unanswered questions.
#[derive(Debug)]
pub struct Schedule {
    settings: models::Models,
    lanes: BTreeMap<LaneKey, Lane>,
    breakers: BTreeMap<ServiceEndpoint, Breaker>,
    open: HashMap<CallId, Open>,
    deadlines: BTreeSet<(Moment, CallId)>,
    pauses: BTreeSet<(Moment, CallId)>,
    /// The events that are not counted yet.
    events: Vec<PoolEvent>,
}

/// Questions of different roles or models never wait for each other, even at the same endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LaneKey {
    at: ServiceEndpoint,
    role: ModelRole,
    model: ModelName,
}

#[derive(Debug)]
struct Lane {
    limits: Concurrency,
    queue: Queue,
    running: usize,
    running_by_guild: HashMap<GuildId, usize>,
    /// How often a guild's share is halved, for the guilds whose calls hung.
    slowed: HashMap<GuildId, u32>,
}

#[derive(Debug)]
struct Open {
    entry: Entry,
    stage: Stage,
    attempts: u32,
    in_calls: Duration,
    last_error: Option<NoAnswer>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Waiting,
    Pausing(Moment),
    Running { since: Moment, probe: bool },
}

impl Schedule {
    /// A schedule with these limits.
    pub fn new(settings: models::Models) -> Self {
        Self {
            settings,
            lanes: BTreeMap::new(),
            breakers: BTreeMap::new(),
            open: HashMap::new(),
            deadlines: BTreeSet::new(),
            pauses: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    /// Adds a question.
    pub fn ask(&mut self, now: Moment, entry: Entry) -> Vec<Step> {
        let mut steps = self.wake(now);
        let (call, at) = (entry.call, entry.at.clone());
        self.deadlines.insert((entry.deadline, call));
        self.open.insert(
            call,
            Open { entry: entry.clone(), stage: Stage::Waiting, attempts: 0, in_calls: Duration::ZERO, last_error: None },
        );
        steps.extend(self.wake(now));
        if !self.open.contains_key(&call) {
            return steps;
        }
        if let BreakerState::Open(until) = self.breaker(&at).state(now) {
            self.answer(now, call, Err(circuit_open(at, until.since(now))), &mut steps);
            return steps;
        }
        if let Some(shed) = self.lane(&entry).queue.question_to_shed(entry.priority, call, &entry.guild) {
            let event = self.open.get(&shed).map(|open| PoolEvent::Shed(open.entry.role, open.entry.priority));
            self.events.extend(event);
            self.answer(now, shed, Err(too_many(at.clone())), &mut steps);
        }
        if self.open.contains_key(&call) {
            self.lane(&entry).queue.push(call, entry.priority, &entry.guild);
        }
        self.start_calls(now, &at, &mut steps);
        steps
    }

    /// Cancels a question, which is answered with [`NoAnswer::Cancelled`].
    pub fn cancel(&mut self, now: Moment, call: CallId) -> Vec<Step> {
        let mut steps = self.wake(now);
        self.give_up(now, call, NoAnswer::Cancelled, &mut steps);
        steps
    }

    /// Handles the end of a call. `fraction`, in `0.0..1.0`, is the jitter of the next attempt. Questions that were answered
    /// before are ignored.
    pub fn ended(&mut self, now: Moment, call: CallId, result: Result<Answer, NoAnswer>, fraction: f64) -> Vec<Step> {
        let mut steps = self.wake(now);
        let verdict = match &result {
            Err(NoAnswer::Overloaded { retry_after, .. }) => Verdict::Failing(*retry_after),
            Err(NoAnswer::TimedOut { .. } | NoAnswer::Unreachable { .. }) => Verdict::Failing(None),
            // These errors say nothing about the endpoint.
            Err(NoAnswer::Cancelled | NoAnswer::NoPrompt | NoAnswer::Unsendable { .. } | NoAnswer::CircuitOpen { .. }) => {
                Verdict::Unknown
            }
            Ok(_)
            | Err(
                NoAnswer::Refused { .. }
                | NoAnswer::Loading { .. }
                | NoAnswer::KeyRejected { .. }
                | NoAnswer::NoCredit { .. }
                | NoAnswer::UnknownModel { .. }
                | NoAnswer::TooLong { .. }
                | NoAnswer::Filtered { .. }
                | NoAnswer::OutOfTokens { .. },
            ) => Verdict::Alive,
        };
        let Some(at) = self.leave(now, call, verdict, &mut steps) else { return steps };
        match result {
            Err(no_answer) if no_answer.is_transient() => self.try_again_or_answer(now, call, no_answer, fraction, &mut steps),
            result => self.answer(now, call, result, &mut steps),
        }
        self.start_calls(now, &at, &mut steps);
        steps
    }

    /// Handles a failed call whose question is asked again at once, with another prompt.
    pub fn changed(&mut self, now: Moment, call: CallId) -> Vec<Step> {
        let mut steps = self.wake(now);
        let Some(at) = self.leave(now, call, Verdict::Alive, &mut steps) else { return steps };
        if let Some(Open { entry, .. }) = self.open.get(&call) {
            let entry = entry.clone();
            self.events.push(PoolEvent::Retried(entry.role));
            self.lane(&entry).queue.push(call, entry.priority, &entry.guild);
        }
        self.start_calls(now, &at, &mut steps);
        steps
    }

    /// Handles a call that panicked. Its question is answered, and the breaker does not count it as a failure.
    pub fn panicked(&mut self, now: Moment, call: CallId) -> Vec<Step> {
        let mut steps = self.wake(now);
        if let Some(open) = self.open.get(&call) {
            self.events.push(PoolEvent::Panicked(open.entry.role));
            let failed =
                NoAnswer::Unreachable { endpoint: open.entry.at.endpoint.clone(), detail: "the worker failed".to_owned() };
            self.give_up(now, call, failed, &mut steps);
        }
        steps
    }

    /// Handles a question whose prompt could not be built at its turn. The question is answered and does not count as a call.
    pub fn prompt_failed(&mut self, now: Moment, call: CallId) -> Vec<Step> {
        let mut steps = self.wake(now);
        if let Some(open) = self.open.get(&call) {
            self.events.push(PoolEvent::NoPrompt(open.entry.role));
            self.not_called(now, call, NoAnswer::NoPrompt, &mut steps);
        }
        steps
    }

    /// Handles a question whose prompt had no input left at its turn. The question is answered as lost.
    pub fn not_needed(&mut self, now: Moment, call: CallId) -> Vec<Step> {
        let mut steps = self.wake(now);
        if let Some(open) = self.open.get(&call) {
            let detail = "what was to be asked is not there any more".to_owned();
            let lost = NoAnswer::Unreachable { endpoint: open.entry.at.endpoint.clone(), detail };
            self.not_called(now, call, lost, &mut steps);
        }
        steps
    }

    /// Answers a question whose model was not called although its turn came.
    fn not_called(&mut self, now: Moment, call: CallId, no_answer: NoAnswer, steps: &mut Vec<Step>) {
        let before = self.open.get(&call).map(|open| open.in_calls);
        let at = self.leave(now, call, Verdict::Unknown, steps);
        if let Some((open, before)) = self.open.get_mut(&call).zip(before) {
            (open.attempts, open.in_calls) = (open.attempts.saturating_sub(1), before);
        }
        self.answer(now, call, Err(no_answer), steps);
        if let Some(at) = at {
            self.start_calls(now, &at, steps);
        }
    }

    /// Closes all breakers, because other models are connected and an endpoint may work again.
    pub fn close_breakers(&mut self, now: Moment) -> Vec<Step> {
        let mut steps = self.wake(now);
        for at in std::mem::take(&mut self.breakers).into_keys() {
            self.start_calls(now, &at, &mut steps);
        }
        steps
    }

    /// Applies the deadlines and the ends of pauses up to `now`.
    pub fn wake(&mut self, now: Moment) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut freed = BTreeSet::new();
        while let Some(&(deadline, call)) = self.deadlines.first()
            && deadline <= now
        {
            freed.extend(self.expire(now, call, &mut steps));
        }
        for at in freed {
            self.start_calls(now, &at, &mut steps);
        }
        while let Some(&(until, call)) = self.pauses.first()
            && until <= now
        {
            self.resume(now, call, &mut steps);
        }
        steps
    }

    /// When [`Self::wake`] is due next.
    pub fn next_wakeup(&self) -> Option<Moment> {
        [self.deadlines.first(), self.pauses.first()].into_iter().flatten().map(|(moment, _)| *moment).min()
    }

    /// The state of every lane.
    pub fn lanes(&self, now: Moment) -> Vec<LaneReport> {
        self.lanes
            .iter()
            .map(|(LaneKey { at, role, model }, lane)| LaneReport {
                role: *role,
                model: model.clone(),
                at: at.clone(),
                waiting: lane.queue.len(),
                running: lane.running,
                breaker: self.breakers.get(at).map_or(BreakerState::Closed, |breaker| breaker.state(now)),
            })
            .collect()
    }

    /// Removes and returns the events since the last call, in order.
    pub fn take_events(&mut self) -> Vec<PoolEvent> {
        std::mem::take(&mut self.events)
    }

    /// How many questions of a role wait with this priority, at all endpoints.
    pub fn waiting(&self, role: ModelRole, priority: Priority) -> usize {
        self.lanes_of(role).map(|lane| lane.queue.waiting(priority)).sum()
    }

    /// How many calls of a role are running, at all endpoints.
    pub fn running(&self, role: ModelRole) -> usize {
        self.lanes_of(role).map(|lane| lane.running).sum()
    }

    fn lanes_of(&self, role: ModelRole) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(move |(key, _)| key.role == role).map(|(_, lane)| lane)
    }

    /// When each open breaker half-opens.
    pub fn circuit_open(&self, now: Moment) -> impl Iterator<Item = Moment> {
        self.breakers.values().filter_map(move |breaker| match breaker.state(now) {
            BreakerState::Open(until) => Some(until),
            BreakerState::Closed | BreakerState::HalfOpen => None,
        })
    }

    /// Answers a question whose deadline has passed. If its call was running, returns the endpoint, because another call can
    /// start there.
    fn expire(&mut self, now: Moment, call: CallId, steps: &mut Vec<Step>) -> Option<ServiceEndpoint> {
        let open = self.open.get(&call)?;
        self.events.push(PoolEvent::TimedOut(open.entry.role));
        let given = open.entry.deadline.since(open.entry.asked);
        // A call that started shortly before the deadline says nothing about its endpoint.
        let verdict = match open.stage {
            Stage::Running { since, .. } if now.since(since) * 2 >= given => Verdict::Failing(None),
            _ => Verdict::Unknown,
        };
        let at = self.leave(now, call, verdict, steps);
        self.answer(now, call, Err(NoAnswer::TimedOut { after: given }), steps);
        at
    }

    fn resume(&mut self, now: Moment, call: CallId, steps: &mut Vec<Step>) {
        let Some(open) = self.open.get_mut(&call) else { return };
        if let Stage::Pausing(until) = open.stage {
            self.pauses.remove(&(until, call));
        }
        open.stage = Stage::Waiting;
        let (entry, last_error) = (open.entry.clone(), open.last_error.clone());
        if let (BreakerState::Open(_), Some(last_error)) = (self.breaker(&entry.at).state(now), last_error) {
            self.answer(now, call, Err(last_error), steps);
            return;
        }
        self.lane(&entry).queue.push(call, entry.priority, &entry.guild);
        self.start_calls(now, &entry.at, steps);
    }

    /// Answers a question with this error. If a call of it was running, starts another call in its place.
    fn give_up(&mut self, now: Moment, call: CallId, no_answer: NoAnswer, steps: &mut Vec<Step>) {
        let at = self.leave(now, call, Verdict::Unknown, steps);
        self.answer(now, call, Err(no_answer), steps);
        if let Some(at) = at {
            self.start_calls(now, &at, steps);
        }
    }

    /// Ends the running call of a question, if there is one, and reports it to the breaker. Returns the endpoint.
    fn leave(&mut self, now: Moment, call: CallId, verdict: Verdict, steps: &mut Vec<Step>) -> Option<ServiceEndpoint> {
        let open = self.open.get_mut(&call)?;
        let Stage::Running { since, probe } = open.stage else { return None };
        open.stage = Stage::Waiting;
        open.in_calls += now.since(since);
        let entry = open.entry.clone();
        let has_hung =
            matches!(verdict, Verdict::Failing(_)) && now.since(since) * HUNG_PART >= entry.deadline.since(entry.asked);
        let lane = self.lane(&entry);
        let Entry { at, guild, .. } = entry;
        lane.leave(&guild);
        match verdict {
            Verdict::Alive => lane.speed_up(&guild),
            Verdict::Failing(_) if has_hung => lane.slow_down(guild),
            Verdict::Failing(_) | Verdict::Unknown => {}
        }
        let breaker = self.breaker(&at);
        // An endpoint that answered other calls in the meantime is not the cause of the hang.
        let verdict = if has_hung && breaker.has_answered_since(since) { Verdict::Unknown } else { verdict };
        if breaker.ended(now, probe, verdict) {
            self.events.push(PoolEvent::Opened);
            self.reject_waiting(now, &at, steps);
        }
        Some(at)
    }

    /// The endpoint's breaker opened. Answers all questions that wait for it, except those that back off.
    fn reject_waiting(&mut self, now: Moment, at: &ServiceEndpoint, steps: &mut Vec<Step>) {
        let BreakerState::Open(until) = self.breaker(at).state(now) else { return };
        steps.push(Step::CircuitOpen(at.clone(), until));
        let waiting: Vec<CallId> =
            self.lanes.iter().filter(|(key, _)| key.at == *at).flat_map(|(_, lane)| lane.queue.ready()).collect();
        for call in waiting {
            self.answer(now, call, Err(circuit_open(at.clone(), until.since(now))), steps);
        }
    }

    fn try_again_or_answer(&mut self, now: Moment, call: CallId, no_answer: NoAnswer, fraction: f64, steps: &mut Vec<Step>) {
        let Some(open) = self.open.get(&call) else { return };
        let requested = match &no_answer {
            NoAnswer::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        };
        let is_loading = matches!(no_answer, NoAnswer::Loading { .. });
        // Loading has no other limit than the deadline, and the pauses stay short.
        let attempts = if is_loading { open.attempts.min(LOADING_ATTEMPTS) } else { open.attempts };
        let until = now + self.pause(attempts, requested, fraction);
        let entry = open.entry.clone();
        let still_open = matches!(self.breaker(&entry.at).state(until), BreakerState::Open(_));
        if !is_loading && attempts >= self.settings.pool.max_attempts || until >= entry.deadline || still_open {
            self.answer(now, call, Err(no_answer), steps);
            return;
        }
        self.events.push(PoolEvent::Retried(entry.role));
        if let Some(open) = self.open.get_mut(&call) {
            open.stage = Stage::Pausing(until);
            open.last_error = Some(no_answer);
        }
        self.pauses.insert((until, call));
        self.lane(&entry).queue.push_pausing(call, entry.priority, &entry.guild);
    }

    /// The pause before the next attempt. It doubles with each attempt, has jitter over its upper half, and is never shorter than
    /// the endpoint asked.
    fn pause(&self, attempts: u32, requested: Option<Duration>, fraction: f64) -> Duration {
        let pool = &self.settings.pool;
        let doubled = pool.backoff_secs * f64::from(attempts.saturating_sub(1).min(16)).exp2();
        let spread = 0.5 + 0.5 * fraction.clamp(0.0, 1.0);
        let ours = duration(doubled.min(pool.max_backoff_secs) * spread);
        match requested {
            // Calls that were rejected together must not all be retried at the same time.
            Some(requested) => requested + duration(pool.backoff_secs * fraction.clamp(0.0, 1.0)).min(ours),
            None => ours,
        }
    }

    fn start_calls(&mut self, now: Moment, at: &ServiceEndpoint, steps: &mut Vec<Step>) {
        let Some(breaker) = self.breakers.get_mut(at) else { return };
        for (_, lane) in self.lanes.iter_mut().filter(|(key, _)| key.at == *at) {
            let Concurrency { most, guild_share: share } = lane.limits;
            while lane.running < most && breaker.allows_call(now) {
                let may_ask = |guild: &GuildId| {
                    lane.running_by_guild.get(guild).copied().unwrap_or(0) < current_share(&lane.slowed, guild, share)
                };
                let Some(call) = lane.queue.pop(may_ask) else { break };
                let Some(open) = self.open.get_mut(&call) else { continue };
                lane.enter(&open.entry.guild);
                open.stage = Stage::Running { since: now, probe: breaker.started(now) };
                open.attempts += 1;
                steps.push(Step::Call(call, open.attempts > 1));
            }
        }
    }

    /// Answers a question that has no running call, and drops it.
    fn answer(&mut self, now: Moment, call: CallId, result: Result<Answer, NoAnswer>, steps: &mut Vec<Step>) {
        let Some(Open { entry, stage, attempts, in_calls, .. }) = self.open.remove(&call) else { return };
        self.deadlines.remove(&(entry.deadline, call));
        if let Stage::Pausing(until) = stage {
            self.pauses.remove(&(until, call));
        }
        self.lane(&entry).queue.remove(call, entry.priority, &entry.guild);
        let waited = now.since(entry.asked).saturating_sub(in_calls);
        steps.push(Step::Answer { call, result, stats: CallStats { waited, in_calls, attempts } });
    }

    fn lane(&mut self, entry: &Entry) -> &mut Lane {
        let settings = &self.settings;
        self.lanes.entry(entry.lane()).or_insert_with(|| Lane {
            limits: settings.concurrency(entry.role, &entry.model),
            queue: Queue::new(settings.pool.queue_capacity),
            running: 0,
            running_by_guild: HashMap::new(),
            slowed: HashMap::new(),
        })
    }

    fn breaker(&mut self, at: &ServiceEndpoint) -> &mut Breaker {
        let models::Breaker { failures, cool_down_secs } = self.settings.breaker;
        self.breakers.entry(at.clone()).or_insert_with(|| Breaker::new(failures, duration(cool_down_secs)))
    }
}

impl Lane {
    fn enter(&mut self, guild: &GuildId) {
        self.running += 1;
        *self.running_by_guild.entry(guild.clone()).or_default() += 1;
    }

    fn leave(&mut self, guild: &GuildId) {
        self.running = self.running.saturating_sub(1);
        if let Some(running) = self.running_by_guild.get_mut(guild) {
            *running -= 1;
            if *running == 0 {
                self.running_by_guild.remove(guild);
            }
        }
    }

    /// Halves the number of concurrent calls of a guild after one of its calls hung. At least one call can always run.
    fn slow_down(&mut self, guild: GuildId) {
        let most = self.limits.guild_share.max(1).ilog2();
        let halved = self.slowed.entry(guild).or_default();
        *halved = (*halved + 1).min(most);
    }

    /// Doubles the number of concurrent calls of a guild after one of its calls was answered, up to its share.
    fn speed_up(&mut self, guild: &GuildId) {
        if let Some(halved) = self.slowed.get_mut(guild) {
            *halved = halved.saturating_sub(1);
            if *halved == 0 {
                self.slowed.remove(guild);
            }
        }
    }
}

/// How many calls of a guild can run at a time, given its full share.
fn current_share(slowed: &HashMap<GuildId, u32>, guild: &GuildId, share: usize) -> usize {
    (share >> slowed.get(guild).copied().unwrap_or_default().min(usize::BITS - 1)).max(1)
}

fn circuit_open(at: ServiceEndpoint, remaining: Duration) -> NoAnswer {
    NoAnswer::CircuitOpen { endpoint: at.endpoint, remaining }
}

fn too_many(at: ServiceEndpoint) -> NoAnswer {
    let detail = "too many questions wait for it, and others are more urgent (models.pool.queue_capacity)".to_owned();
    NoAnswer::Overloaded { endpoint: at.endpoint, detail, retry_after: None }
}

#[cfg(test)]
mod tests;
