//! How the rest of the system asks models: through a handle that outlives every restart of the pool.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

use super::millis;
use crate::actors::messages::models::{CallFacts, CallId, Job, Outcome, PoolMessage, PoolReport, PoolRequest};
use crate::actors::messages::reply::Reply;
use crate::domain::id::{GuildId, ModelName};
use crate::domain::priority::Priority;
use crate::domain::service::{Service, ServiceEndpoint};
use crate::ports::language_model::{Draft, Identity, LanguageModel, LazyRequest, ModelRole, NoAnswer, Request, Usage};
use crate::settings::models::Models as Settings;
use crate::telemetry::instruments::Instruments;

/// Summaries take up to this part of the places in a queue, with their prompts: nobody waits for them.
const SUMMARIES_PART: usize = 16;

/// Those of one guild take up to this part of these.
const SUMMARIES_PART_OF_GUILD: usize = 4;

/// The models that are asked.
#[derive(Clone)]
pub struct Models {
    side: Arc<dyn LanguageModel>,
    main: Arc<dyn LanguageModel>,
    named: BTreeMap<(ModelRole, ModelName), Arc<dyn LanguageModel>>,
}

impl Models {
    /// One for each role: `side` answers decisions and writes summaries, `main` writes statements.
    pub const fn new(side: Arc<dyn LanguageModel>, main: Arc<dyn LanguageModel>) -> Self {
        Self { side, main, named: BTreeMap::new() }
    }

    /// The same with a model that companions may name for a role.
    pub fn with(mut self, role: ModelRole, name: ModelName, model: Arc<dyn LanguageModel>) -> Self {
        self.named.insert((role, name), model);
        self
    }

    fn of(&self, role: ModelRole) -> &Arc<dyn LanguageModel> {
        match role {
            ModelRole::Side => &self.side,
            ModelRole::Main => &self.main,
        }
    }

    /// The named one, else the one that serves the role.
    fn asked(&self, role: ModelRole, name: &ModelName) -> &Arc<dyn LanguageModel> {
        self.named.get(&(role, name.clone())).unwrap_or_else(|| self.of(role))
    }
}

/// A question for a model.
pub struct Question {
    /// What is asked, and of which role.
    pub request: Arc<LazyRequest>,
    /// How urgent it is.
    pub priority: Priority,
    /// When it is given up, waiting and retries included; see [`Pool::deadline`].
    pub deadline: Instant,
    /// Who wants to see the text grow.
    pub drafts: Option<mpsc::UnboundedSender<Draft>>,
    /// Called exactly once, with the answer or why there is none; must return at once and not panic.
    pub reply_to: Box<dyn FnOnce(Outcome) + Send>,
}

/// Asks models. Cheap to clone; stays valid when the pool's actor is replaced.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    find: Box<dyn Fn() -> Option<ActorRef<PoolMessage>> + Send + Sync>,
    models: Models,
    settings: Settings,
    summaries: Summaries,
}

/// The places that summaries have.
struct Summaries {
    all: Semaphore,
    /// How many a guild has.
    each: usize,
    /// Of guilds of which one waits or is asked for, and of some more.
    of_guilds: Mutex<HashMap<GuildId, Weak<Semaphore>>>,
}

impl Summaries {
    fn new(places: usize) -> Self {
        let each = (places / SUMMARIES_PART_OF_GUILD).max(1);
        Self { all: Semaphore::new(places.max(1)), each, of_guilds: Mutex::default() }
    }

    fn of(&self, guild: &GuildId) -> Arc<Semaphore> {
        let mut of_guilds = self.of_guilds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = of_guilds.get(guild).and_then(Weak::upgrade) {
            return known;
        }
        if of_guilds.len() == of_guilds.capacity() {
            of_guilds.retain(|_, places| places.strong_count() > 0);
        }
        let places = Arc::new(Semaphore::new(self.each));
        of_guilds.insert(guild.clone(), Arc::downgrade(&places));
        places
    }
}

/// The turn of a summary, until it is dropped.
pub struct TurnToSummarise<'a> {
    _of_guild: OwnedSemaphorePermit,
    _of_all: SemaphorePermit<'a>,
}

/// What a [`Question`] asks.
const SERVICE: Service = Service::LanguageModel;

/// Numbers questions uniquely in this process, so that two handles of one pool cannot mean the same one.
static NEXT_CALL: AtomicU64 = AtomicU64::new(1);

impl Pool {
    /// Asks these models through whatever actor `find` knows as the pool at that moment.
    pub fn new(
        settings: &Settings,
        models: Models,
        find: impl Fn() -> Option<ActorRef<PoolMessage>> + Send + Sync + 'static,
    ) -> Self {
        let summaries = Summaries::new(settings.pool.queue_capacity / SUMMARIES_PART);
        Self(Arc::new(Inner { find: Box::new(find), models, settings: settings.clone(), summaries }))
    }

    /// Who serves a role, unless a companion names another.
    pub fn identity(&self, role: ModelRole) -> &Identity {
        self.0.models.of(role).identity()
    }

    /// Whether there is a model of this name.
    pub fn has(&self, name: &ModelName) -> bool {
        self.0.settings.names().any(|known| known == *name)
    }

    /// When a question of this role that is asked now is given up.
    pub fn deadline(&self, role: ModelRole) -> Instant {
        Instant::now() + self.0.settings.own(role).timeout()
    }

    /// Waits for the turn to word a summary, which is kept until the answer is there: prompts are long, and a summary can wait without one. None:
    /// it did not come within the time that a question has, and the summary is shed.
    pub async fn turn_to_summarise(&self, guild: &GuildId, instruments: &Instruments) -> Option<TurnToSummarise<'_>> {
        // Once it has its turn it waits in the queue, which counts by itself.
        let _waits = instruments.pool_waiting.one([ModelRole::Side.as_str(), Priority::Summary.as_str()]);
        let turn = async {
            // Neither is ever closed. Whoever waits for its guild's takes nobody's else.
            let of_guild = self.0.summaries.of(guild).acquire_owned().await.ok()?;
            Some(TurnToSummarise { _of_guild: of_guild, _of_all: self.0.summaries.all.acquire().await.ok()? })
        };
        let turn = tokio::time::timeout(self.0.settings.side.timeout(), turn).await.ok().flatten();
        if turn.is_none() {
            self.send(PoolMessage::SummaryShed);
        }
        turn
    }

    /// Asks, without waiting. Exactly one [`Outcome`] comes, also when the pool is gone or dies meanwhile.
    pub fn ask(&self, question: Question) -> CallId {
        let Question { request, priority, deadline, drafts, reply_to } = question;
        let call = CallId(NEXT_CALL.fetch_add(1, Ordering::Relaxed));
        let model = self.model(&request).clone();
        let identity = model.identity().clone();
        let at = ServiceEndpoint { service: SERVICE, endpoint: identity.endpoint.clone() };
        let asked = Instant::now();
        let reply = Reply::new(move |given| reply_to(given.unwrap_or_else(|_| Outcome::lost(identity, asked.elapsed()))));
        let job = Job { at, model, request, drafts, span: tracing::Span::current() };
        // What cannot be delivered is dropped, and thereby answered.
        self.send(PoolMessage::Ask(Box::new(PoolRequest { call, priority, asked, deadline, job, reply })));
        call
    }

    /// Asks and waits for the outcome; dropping the future cancels the question.
    pub async fn answer(
        &self,
        request: Arc<LazyRequest>,
        priority: Priority,
        deadline: Instant,
        drafts: Option<mpsc::UnboundedSender<Draft>>,
    ) -> Outcome {
        self.answer_or(request, priority, deadline, drafts, drop).await
    }

    /// The same; `unclaimed` is told what came of a question whose future was dropped, because that cost something too.
    pub async fn answer_or(
        &self,
        request: Arc<LazyRequest>,
        priority: Priority,
        deadline: Instant,
        drafts: Option<mpsc::UnboundedSender<Draft>>,
        unclaimed: impl FnOnce(Outcome) + Send + 'static,
    ) -> Outcome {
        let identity = self.model(&request).identity().clone();
        let (sender, receiver) = oneshot::channel();
        let reply_to = Box::new(move |outcome| {
            if let Err(outcome) = sender.send(outcome) {
                unclaimed(outcome);
            }
        });
        let call = self.ask(Question { request, priority, deadline, drafts, reply_to });
        let unwanted = CancelOnDrop { pool: self, call };
        let outcome = receiver.await.unwrap_or_else(|_| Outcome::lost(identity, Duration::ZERO));
        std::mem::forget(unwanted);
        outcome
    }

    /// Nobody wants this answer any more: the question is answered with `Cancelled` unless it was answered already.
    pub fn cancel(&self, call: CallId) {
        self.send(PoolMessage::Cancel(call));
    }

    /// How the queues stand and what happened since the pool started; none if it is not there.
    pub async fn report(&self) -> Option<PoolReport> {
        let (sender, receiver) = oneshot::channel();
        self.send(PoolMessage::Report(sender))?;
        receiver.await.ok()
    }

    fn model(&self, request: &Request) -> &Arc<dyn LanguageModel> {
        self.0.models.asked(request.role, &request.model)
    }

    fn send(&self, message: PoolMessage) -> Option<()> {
        (self.0.find)()?.cast(message).ok()
    }
}

impl Outcome {
    /// Whether the pool went away with the question: nobody has answered it, and nobody refused to. Worth asking again at once.
    pub fn is_lost(&self) -> bool {
        self.facts.attempts == 0 && matches!(self.result, Err(NoAnswer::Unreachable { .. }))
    }

    /// The pool went away with the question after this time.
    fn lost(identity: Identity, waited: Duration) -> Self {
        let detail = "the pool that asks it was restarted".to_owned();
        let result = Err(NoAnswer::Unreachable { endpoint: identity.endpoint.clone(), detail });
        let facts = CallFacts {
            service: SERVICE,
            identity,
            waited_ms: millis(waited),
            model_ms: 0,
            attempts: 0,
            usage: Usage::default(),
        };
        Self { result, facts }
    }
}

struct CancelOnDrop<'a> {
    pool: &'a Pool,
    call: CallId,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.pool.cancel(self.call);
    }
}
