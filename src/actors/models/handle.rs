//! The handle for calls to models. It stays valid when the pool restarts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use ractor::ActorRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

use super::millis;
use crate::actors::messages::models::{CallFacts, CallId, Job, Outcome, PoolMessage, PoolReport, PoolRequest, Trouble};
use crate::actors::messages::reply::Reply;
use crate::domain::filter::{ALL_FILTERED, FILTERED};
use crate::domain::id::{GuildId, ModelName};
use crate::domain::priority::Priority;
use crate::domain::service::{Service, ServiceEndpoint};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{Draft, Identity, LanguageModel, LazyRequest, ModelRole, NoAnswer, Request, TokenUsage};
use crate::settings::models::{Models as Settings, Vision};
use crate::settings::prompt::Prompt;
use crate::telemetry::instruments::Instruments;

/// One in this many places of a queue is for summaries, because they are not urgent and their prompts are long.
const SUMMARY_SHARE: usize = 16;

/// One in this many of those places is for the summaries of one guild.
const GUILD_SUMMARY_SHARE: usize = 4;

/// The configured models.
#[derive(Clone)]
pub struct Models {
    side: Arc<dyn LanguageModel>,
    main: Arc<dyn LanguageModel>,
    named: BTreeMap<(ModelRole, ModelName), Arc<dyn LanguageModel>>,
}

impl Models {
    /// One model for each role: `side` answers decisions and writes summaries, `main` writes statements.
    pub const fn new(side: Arc<dyn LanguageModel>, main: Arc<dyn LanguageModel>) -> Self {
        Self { side, main, named: BTreeMap::new() }
    }

    /// Adds a model that companions can name for a role.
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

    /// The named model, or else the model that serves the role.
    fn named_or_default(&self, role: ModelRole, name: &ModelName) -> &Arc<dyn LanguageModel> {
        self.named.get(&(role, name.clone())).unwrap_or_else(|| self.of(role))
    }
}

pub struct Question {
    /// The request, with its role.
    pub request: Arc<LazyRequest>,
    pub priority: Priority,
    /// When the question fails with a timeout. The limit includes waiting, calls and retries; see [`Pool::deadline`].
    pub deadline: Instant,
    /// Receives the growing text.
    pub drafts: Option<mpsc::UnboundedSender<Draft>>,
    /// Called exactly once, with the answer or the error. It must return at once and must not panic.
    pub reply_to: Box<dyn FnOnce(Outcome) + Send>,
}

/// Asks models. Cheap to clone; stays valid when the pool's actor is replaced.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    find: Box<dyn Fn() -> Option<ActorRef<PoolMessage>> + Send + Sync>,
    current: RwLock<Arc<Current>>,
    summaries: Summaries,
    /// The last refusals by filters, for rooms without a later answer.
    refusals: Mutex<BTreeMap<ChannelKey, Refusal>>,
    /// The models whose last statement began within a thought, because their endpoint begins the thought itself.
    begin_in_thought: Mutex<HashSet<Identity>>,
}

/// The models in force, and their settings.
struct Current {
    models: Models,
    settings: Arc<Settings>,
}

/// Limits the summaries that are queued or running.
struct Summaries {
    all: Semaphore,
    /// The limit of each guild.
    per_guild: usize,
    /// The guilds with summaries in progress. Entries of other guilds are removed from time to time.
    guilds: Mutex<HashMap<GuildId, Weak<Semaphore>>>,
}

impl Summaries {
    fn new(places: usize) -> Self {
        let per_guild = (places / GUILD_SUMMARY_SHARE).max(1);
        Self { all: Semaphore::new(places.max(1)), per_guild, guilds: Mutex::default() }
    }

    fn of(&self, guild: &GuildId) -> Arc<Semaphore> {
        let mut guilds = self.guilds.lock();
        if let Some(known) = guilds.get(guild).and_then(Weak::upgrade) {
            return known;
        }
        if guilds.len() == guilds.capacity() {
            guilds.retain(|_, places| places.strong_count() > 0);
        }
        let places = Arc::new(Semaphore::new(self.per_guild));
        guilds.insert(guild.clone(), Arc::downgrade(&places));
        places
    }
}

/// The permit to ask for one summary. Dropping it returns the permit.
pub struct SummaryPermit<'a> {
    _of_guild: OwnedSemaphorePermit,
    _of_all: SemaphorePermit<'a>,
}

/// The most rooms whose refusal is remembered.
const MOST_REFUSALS: usize = 64;

/// A refusal by the filter of a model's endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub role: ModelRole,
    pub name: ModelName,
    /// The endpoint's error text.
    pub detail: String,
    /// Whether it refuses every question of the companion.
    pub refuses_all: bool,
}

/// The kind of service that a [`Question`] asks.
const SERVICE: Service = Service::LanguageModel;

/// Numbers questions uniquely in this process, so that two handles of one pool never use the same number.
static NEXT_CALL: AtomicU64 = AtomicU64::new(1);

impl Pool {
    /// A handle for these models. `find` returns the pool's current actor.
    pub fn new(
        settings: &Settings,
        models: Models,
        find: impl Fn() -> Option<ActorRef<PoolMessage>> + Send + Sync + 'static,
    ) -> Self {
        let summaries = Summaries::new(settings.pool.queue_capacity / SUMMARY_SHARE);
        let current = RwLock::new(Arc::new(Current { models, settings: Arc::new(settings.clone()) }));
        Self(Arc::new(Inner {
            find: Box::new(find),
            current,
            summaries,
            refusals: Mutex::default(),
            begin_in_thought: Mutex::default(),
        }))
    }

    /// Replaces the models. Questions that were asked before still go to the old models.
    pub fn replace(&self, settings: Settings, models: Models) {
        let current = Arc::new(Current { models, settings: Arc::new(settings) });
        *self.0.current.write() = current;
        self.send(PoolMessage::Replaced(CallId(NEXT_CALL.load(Ordering::Relaxed))));
    }

    /// The settings of the models in force.
    pub fn settings(&self) -> Arc<Settings> {
        self.current().settings.clone()
    }

    fn current(&self) -> Arc<Current> {
        self.0.current.read().clone()
    }

    /// The model that serves a role under this name.
    pub fn identity_of(&self, role: ModelRole, name: &ModelName) -> Identity {
        self.current().models.named_or_default(role, name).identity().clone()
    }

    /// The default model of a role.
    pub fn identity(&self, role: ModelRole) -> Identity {
        self.current().models.of(role).identity().clone()
    }

    /// The model and the endpoint of a request as one key, because each pair has its own filter.
    pub fn filter_key(&self, request: &Request) -> Arc<str> {
        let Identity { model, endpoint, .. } = self.identity_of(request.role, &request.model);
        format!("{model} at {endpoint}").into()
    }

    /// Records that a filter refused a prompt of a room, or that a model answered the room.
    pub fn note_refusal(&self, room: &ChannelKey, refusal: Option<Refusal>) {
        let mut refusals = self.0.refusals.lock();
        match refusal {
            Some(refusal) => {
                refusals.insert(room.clone(), refusal);
                if refusals.len() > MOST_REFUSALS {
                    refusals.pop_first();
                }
            }
            None if refusals.is_empty() => {}
            None => drop(refusals.remove(room)),
        }
    }

    /// The last refusal by a filter in a room, unless the room was answered since.
    pub fn refusal(&self, room: &ChannelKey) -> Option<Refusal> {
        self.0.refusals.lock().get(room).cloned()
    }

    /// How requests to the model of a role differ from the usual form.
    pub fn adaptations(&self, role: ModelRole) -> Vec<Cow<'static, str>> {
        self.current().models.of(role).adaptations()
    }

    /// Lets the models of both roles query their endpoints before the first question.
    pub async fn prepare(&self) {
        let models = &self.current().models;
        tokio::join!(models.side.prepare(), models.main.prepare());
    }

    /// The most prompt tokens of the model that serves a role under this name. `None`: unknown.
    pub fn prompt_room(&self, role: ModelRole, name: &ModelName, max_answer_tokens: u32) -> Option<usize> {
        self.current().models.named_or_default(role, name).prompt_room(max_answer_tokens)
    }

    /// The prompt settings, with sizes that fit the model of this request. A prompt for several companions has a part for each.
    pub fn fitting<'a>(&self, words: &'a Prompt, request: &Request, companions: usize) -> Cow<'a, Prompt> {
        let room = self.prompt_room(request.role, &request.model, request.max_tokens);
        room.map_or(Cow::Borrowed(words), |room| words.within(room / companions.max(1)))
    }

    /// Whether the model of this request is sent pictures.
    pub fn is_sent_pictures(&self, request: &Request) -> bool {
        let current = self.current();
        let endpoint = current.settings.served(request.role, &request.model).endpoint;
        match endpoint.map(|endpoint| endpoint.vision).unwrap_or_default() {
            Vision::Off => false,
            Vision::On => true,
            Vision::Auto => self.model(request).reads_pictures() != Some(false),
        }
    }

    /// Whether a model of this name is configured.
    pub fn has(&self, name: &ModelName) -> bool {
        self.current().settings.names().any(|known| known == *name)
    }

    /// The deadline for a question of this role, from now.
    pub fn deadline(&self, role: ModelRole) -> Instant {
        Instant::now() + self.current().settings.own(role).timeout()
    }

    /// Waits for a permit to build a summary's prompt. Hold it until the answer has arrived. It limits how many of these long
    /// prompts are in memory. `None`: no permit became free within a question's timeout, and the summary is shed.
    pub async fn summary_permit(&self, guild: &GuildId, instruments: &Instruments) -> Option<SummaryPermit<'_>> {
        // Counted as waiting until the permit is granted. After that, the queue counts the summary.
        let _waits = instruments.pool_waiting.one([ModelRole::Side.as_str(), Priority::Summary.as_str()]);
        let permit = async {
            // Neither semaphore is ever closed. A summary that waits for its guild's permit holds none of the common permits.
            let of_guild = self.0.summaries.of(guild).acquire_owned().await.ok()?;
            Some(SummaryPermit { _of_guild: of_guild, _of_all: self.0.summaries.all.acquire().await.ok()? })
        };
        let permit = tokio::time::timeout(self.current().settings.side.timeout(), permit).await.ok().flatten();
        if permit.is_none() {
            instruments.pool_shed.add(1, [ModelRole::Side.as_str(), Priority::Summary.as_str()]);
        }
        permit
    }

    /// Asks without waiting. Exactly one [`Outcome`] is sent, even if the pool is not running or dies in the meantime.
    pub fn ask(&self, question: Question) -> CallId {
        let Question { request, priority, deadline, drafts, reply_to } = question;
        let call = CallId(NEXT_CALL.fetch_add(1, Ordering::Relaxed));
        let model = self.model(request.base());
        let identity = model.identity().clone();
        let at = ServiceEndpoint { service: SERVICE, endpoint: identity.endpoint.clone() };
        let asked = Instant::now();
        let reply = Reply::new(move |given| reply_to(given.unwrap_or_else(|_| Outcome::lost(identity, asked.elapsed()))));
        let job = Job { at, model, request, drafts, span: tracing::Span::current() };
        // A question that cannot be sent is dropped, which answers it.
        self.send(PoolMessage::Ask(Box::new(PoolRequest { call, priority, asked, deadline, job, reply })));
        call
    }

    /// Asks and waits for the outcome. Dropping the future cancels the question.
    pub async fn answer(
        &self,
        request: Arc<LazyRequest>,
        priority: Priority,
        deadline: Instant,
        drafts: Option<mpsc::UnboundedSender<Draft>>,
    ) -> Outcome {
        self.answer_or(request, priority, deadline, drafts, drop).await
    }

    /// Like [`Pool::answer`]. If the future is dropped, `unclaimed` receives the outcome, because the call has used tokens, too.
    /// The question is cancelled once the receiver of the drafts is dropped.
    pub async fn answer_or(
        &self,
        request: Arc<LazyRequest>,
        priority: Priority,
        deadline: Instant,
        drafts: Option<mpsc::UnboundedSender<Draft>>,
        unclaimed: impl FnOnce(Outcome) + Send + 'static,
    ) -> Outcome {
        self.begin(request, priority, deadline, drafts, unclaimed).outcome().await
    }

    /// Asks, and returns a handle to wait for the outcome. Dropping the handle cancels the question.
    pub fn begin(
        &self,
        request: Arc<LazyRequest>,
        priority: Priority,
        deadline: Instant,
        drafts: Option<mpsc::UnboundedSender<Draft>>,
        unclaimed: impl FnOnce(Outcome) + Send + 'static,
    ) -> Pending {
        let identity = self.model(request.base()).identity().clone();
        let (sender, receiver) = oneshot::channel();
        let reply_to = Box::new(move |outcome| {
            if let Err(outcome) = sender.send(outcome) {
                unclaimed(outcome);
            }
        });
        let reader = drafts.clone();
        let call = self.ask(Question { request, priority, deadline, drafts, reply_to });
        Pending { pool: self.clone(), call, identity, receiver, reader, is_answered: false }
    }

    /// Whether the last statement of the model that answers this request began within a thought.
    pub fn begins_in_thought(&self, request: &Request) -> bool {
        self.0.begin_in_thought.lock().contains(self.model(request).identity())
    }

    /// Records whether a statement of this model began within a thought.
    pub fn note_beginning(&self, identity: &Identity, is_in_thought: bool) {
        let mut begin_in_thought = self.0.begin_in_thought.lock();
        if !is_in_thought {
            begin_in_thought.remove(identity);
        } else if !begin_in_thought.contains(identity) {
            begin_in_thought.insert(identity.clone());
        }
    }

    /// Cancels a question. It is answered with `Cancelled`, unless it was answered already.
    pub fn cancel(&self, call: CallId) {
        self.send(PoolMessage::Cancel(call));
    }

    /// The state of the queues, and the failing models. `None` if the pool is not running.
    pub async fn report(&self) -> Option<PoolReport> {
        let (sender, receiver) = oneshot::channel();
        self.send(PoolMessage::Report(sender))?;
        let mut report: PoolReport = receiver.await.ok()?;
        let refusals = self.0.refusals.lock();
        report.troubles.extend(refusals.iter().map(|(room, Refusal { role, name, detail, refuses_all })| Trouble {
            role: *role,
            name: name.clone(),
            model: self.identity_of(*role, name).model,
            code: if *refuses_all { ALL_FILTERED } else { FILTERED },
            detail: format!("{}: {detail}", room.channel),
        }));
        drop(refusals);
        Some(report)
    }

    fn model(&self, request: &Request) -> Arc<dyn LanguageModel> {
        self.current().models.named_or_default(request.role, &request.model).clone()
    }

    fn send(&self, message: PoolMessage) -> Option<()> {
        (self.0.find)()?.cast(message).ok()
    }
}

impl Outcome {
    /// Whether no model was called because the pool stopped, or because the prompt had no input any more. In both cases, an
    /// immediate retry is useful.
    pub fn is_lost(&self) -> bool {
        self.facts.attempts == 0 && matches!(self.result, Err(NoAnswer::Unreachable { .. }))
    }

    /// The outcome of a question that was lost with the pool after this time.
    fn lost(identity: Identity, waited: Duration) -> Self {
        let detail = "the pool of model calls was restarted".to_owned();
        let result = Err(NoAnswer::Unreachable { endpoint: identity.endpoint.clone(), detail });
        let facts = CallFacts {
            service: SERVICE,
            identity,
            waited_ms: millis(waited),
            model_ms: 0,
            attempts: 0,
            usage: TokenUsage::default(),
        };
        Self { result, facts }
    }
}

/// A question whose outcome is awaited.
pub struct Pending {
    pool: Pool,
    pub call: CallId,
    pub identity: Identity,
    receiver: oneshot::Receiver<Outcome>,
    /// Closed once the receiver of the drafts is dropped.
    reader: Option<mpsc::UnboundedSender<Draft>>,
    is_answered: bool,
}

impl Pending {
    /// Waits for the outcome. It is cancel-safe: until the outcome has arrived, the future may be dropped and created again.
    pub async fn outcome(&mut self) -> Outcome {
        let reader = self.reader.clone();
        let is_unread = async {
            match reader {
                Some(drafts) => drafts.closed().await,
                None => std::future::pending().await,
            }
        };
        let answered = tokio::select! {
            answered = &mut self.receiver => answered,
            () = is_unread => {
                self.pool.cancel(self.call);
                (&mut self.receiver).await
            }
        };
        self.is_answered = true;
        answered.unwrap_or_else(|_| Outcome::lost(self.identity.clone(), Duration::ZERO))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_answered {
            self.pool.cancel(self.call);
        }
    }
}
