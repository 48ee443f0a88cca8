use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::*;
use crate::domain::breaker::BreakerState;
use crate::domain::id::GuildId;
use crate::domain::priority::Priority;
use crate::ports::language_model::{Answer, Identity, LanguageModel, LazyRequest, Message, ModelRole, Request};
use crate::samples::Draws;
use crate::settings::samples::{models as defaults, named_model as named};
use crate::telemetry::metrics::Metrics;

/// How the scripted model handles one call.
#[derive(Clone)]
enum Behaviour {
    Answers(&'static str, f64),
    Drafts(&'static str, NoAnswer),
    Fails(NoAnswer),
    Hangs,
    Panics,
}

/// A model that follows a script, call by call. The last instruction repeats.
struct Scripted {
    identity: Identity,
    script: Mutex<Vec<Behaviour>>,
    requests: Mutex<Vec<String>>,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

struct RunningCall<'a>(&'a AtomicUsize);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scripted {
    fn new(script: impl Into<Vec<Behaviour>>) -> Arc<Self> {
        let mut script = script.into();
        script.reverse();
        Arc::new(Self {
            identity: Identity { provider: "scripted".into(), model: "m".into(), endpoint: "http://scripted".into() },
            script: Mutex::new(script),
            requests: Mutex::default(),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        })
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    fn next(&self, request: &Request) -> Behaviour {
        self.requests.lock().push(request.user().into_owned());
        let mut script = self.script.lock();
        if script.len() > 1 { script.pop().expect("more than one") } else { script[0].clone() }
    }
}

#[async_trait]
impl LanguageModel for Scripted {
    async fn ask(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        let _running = RunningCall(&self.running);
        match self.next(request) {
            Behaviour::Answers(text, secs) => {
                tokio::time::sleep(Duration::from_secs_f64(secs)).await;
                Ok(answer(text))
            }
            Behaviour::Drafts(text, no_answer) => {
                drop(drafts.map(|drafts| drafts.send(Draft::More(text.to_owned()))));
                Err(no_answer)
            }
            Behaviour::Fails(no_answer) => Err(no_answer),
            Behaviour::Hangs => std::future::pending().await,
            Behaviour::Panics => panic!("scripted"),
        }
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

fn answer(text: &str) -> Answer {
    let usage = TokenUsage::new(7, 3);
    Answer::of_text(text, usage)
}

fn busy(retry_after: Option<u64>) -> NoAnswer {
    let retry_after = retry_after.map(Duration::from_secs);
    NoAnswer::Overloaded { endpoint: "http://scripted".into(), detail: "busy".into(), retry_after }
}

fn request(text: &str) -> Arc<LazyRequest> {
    let messages = Message::prompt(String::new(), text.to_owned());
    let request = Request { messages, ..Request::new(ModelRole::Side, "home".into(), 50) };
    Arc::new(request.into())
}

/// A question's name and its outcome.
type NamedOutcome = (String, Outcome);

/// A pool with its own metrics. When it is dropped, it checks that every question was answered exactly once.
struct World {
    pool: Pool,
    actor: Arc<Mutex<Option<ActorRef<PoolMessage>>>>,
    asked: Mutex<Vec<Weak<()>>>,
    replies: mpsc::UnboundedSender<NamedOutcome>,
    outcomes: mpsc::UnboundedReceiver<NamedOutcome>,
    metrics: Metrics,
}

impl World {
    async fn new(model: &Arc<Scripted>, set: impl FnOnce(&mut Settings)) -> Self {
        Self::of(Models::new(model.clone(), model.clone()), set).await
    }

    async fn of(models: Models, set: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = defaults();
        set(&mut settings);
        let metrics = Metrics::local();
        let pool = SideModels {
            settings: settings.clone(),
            rng: Arc::new(Draws::of(0.0)),
            instruments: metrics.instruments(),
            directory: Directory::new(),
        };
        let (actor, _) = Actor::spawn(None, pool, ()).await.expect("starts");
        let actor = Arc::new(Mutex::new(Some(actor)));
        let found = actor.clone();
        let pool = Pool::new(&settings, models, move || found.lock().clone());
        let (replies, outcomes) = mpsc::unbounded_channel();
        Self { pool, actor, asked: Mutex::default(), replies, outcomes, metrics }
    }

    fn ask(&self, text: &str, priority: Priority) -> CallId {
        self.ask_request(text, request(text), priority)
    }

    fn ask_request(&self, text: &str, request: Arc<LazyRequest>, priority: Priority) -> CallId {
        let (sender, name, owed) = (self.replies.clone(), text.to_owned(), Arc::new(()));
        self.asked.lock().push(Arc::downgrade(&owed));
        self.pool.ask(Question {
            request,
            priority,
            deadline: self.pool.deadline(ModelRole::Side),
            drafts: None,
            reply_to: Box::new(move |outcome| {
                drop(owed);
                drop(sender.send((name, outcome)));
            }),
        })
    }

    /// A question whose prompt cannot be built.
    fn ask_without_prompt(&self, text: &str) {
        let fails = async || std::panic::resume_unwind(Box::new("scripted"));
        self.ask_request(text, LazyRequest::later(request(text).base().clone(), fails), Priority::Lull);
    }

    async fn outcome(&mut self) -> NamedOutcome {
        self.outcomes.recv().await.expect("the world holds a sender")
    }

    /// The next outcome as `question: text` or `question: code`.
    async fn next_result(&mut self) -> String {
        let (name, outcome) = self.outcome().await;
        format!("{name}: {}", outcome.result.as_ref().map_or_else(|no_answer| no_answer.code().into(), |answer| answer.text()))
    }

    /// So many results, in the order of the alphabet.
    async fn results(&mut self, count: usize) -> Vec<String> {
        let mut results = Vec::new();
        for _ in 0..count {
            results.push(self.next_result().await);
        }
        results.sort();
        results
    }

    async fn report(&self) -> PoolReport {
        self.pool.report().await.expect("the pool is there")
    }

    fn measured(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.metrics.total(name, labels)
    }

    fn actor(&self) -> ActorRef<PoolMessage> {
        self.actor.lock().clone().expect("known")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let unanswered = self.asked.lock().iter().filter(|owed| owed.strong_count() > 0).count();
        if !std::thread::panicking() {
            assert_eq!(unanswered, 0, "every question was answered");
            assert!(self.outcomes.try_recv().is_err(), "every outcome was checked");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_contains_times_and_usage() {
    let model = Scripted::new([Behaviour::Answers("YES", 2.0)]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;

    world.ask("first", Priority::Lull);
    world.ask("second", Priority::Lull);
    let (_, first) = world.outcome().await;
    let (_, second) = world.outcome().await;

    assert_eq!(first.result, Ok(answer("YES")));
    assert_eq!((first.facts.attempts, first.facts.usage.total()), (1, 10));
    assert_eq!((second.facts.waited_ms / 100, second.facts.model_ms / 100), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn urgent_questions_overtake_waiting_ones() {
    let model = Scripted::new([Behaviour::Answers("ok", 1.0)]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    world.ask("running", Priority::Lull);

    for priority in Priority::ALL {
        world.ask(priority.as_str(), priority);
    }
    world.results(7).await;

    assert_eq!(model.requests(), ["running", "direct_address", "voice", "turn", "interjection", "lull", "summary"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_than_allowed_run_at_a_time() {
    let model = Scripted::new([Behaviour::Answers("ok", 1.0)]);
    let mut world = World::new(&model, |settings| {
        settings.side.max_concurrent = 3;
        settings.side.guild_max_concurrent = Some(3);
    })
    .await;

    for number in 0..10 {
        world.ask(&number.to_string(), Priority::Turn);
    }
    world.results(10).await;

    assert_eq!(model.most_running.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_is_dropped_at_the_deadline_together_with_those_behind_it() {
    let model = Scripted::new([Behaviour::Hangs]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    let started = Instant::now();
    world.ask("running", Priority::Lull);
    world.ask("queued", Priority::Lull);

    let results = world.results(2).await;

    assert_eq!(results, ["queued: timeout", "running: timeout"]);
    assert_eq!(started.elapsed().as_secs(), 15);
    world.report().await;
    assert_eq!(model.running.load(Ordering::SeqCst), 0, "the call was dropped");
    assert_eq!(world.measured("tertulia_pool_timeouts_total", &[("model_role", "side")]), 2.0);
    assert_eq!(world.measured("tertulia_pool_running", &[]), 0.0);
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_endpoint_is_asked_again_after_its_retry_after() {
    let model = Scripted::new([Behaviour::Fails(busy(Some(6))), Behaviour::Answers("YES", 0.0)]);
    let mut world = World::new(&model, |_| ()).await;
    let started = Instant::now();

    world.ask("patient", Priority::DirectAddress);
    let (_, outcome) = world.outcome().await;

    assert_eq!(outcome.result, Ok(answer("YES")));
    assert_eq!((outcome.facts.attempts, started.elapsed().as_secs()), (2, 6));
}

#[tokio::test(start_paused = true)]
async fn drafts_of_a_failed_attempt_are_declared_void() {
    let model = Scripted::new([Behaviour::Drafts("half a", busy(None)), Behaviour::Answers("whole", 0.0)]);
    let world = World::new(&model, |_| ()).await;
    let (sender, mut drafts) = mpsc::unbounded_channel();

    let outcome = world.pool.answer(request("q"), Priority::Turn, world.pool.deadline(ModelRole::Side), Some(sender)).await;

    assert_eq!(outcome.result, Ok(answer("whole")));
    assert_eq!(drafts.recv().await, Some(Draft::More("half a".to_owned())));
    assert_eq!(drafts.recv().await, Some(Draft::Restart));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_call_answers_its_question_and_harms_no_other() {
    let model = Scripted::new([Behaviour::Panics, Behaviour::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    world.ask("unlucky", Priority::Lull);
    world.ask("next", Priority::Lull);

    let (_, unlucky) = world.outcome().await;
    let next = world.next_result().await;

    assert!(unlucky.result.is_err_and(|error| error.to_string().contains("the worker failed")));
    assert_eq!(next, "next: fine");
    assert_eq!(world.measured("tertulia_pool_panics_total", &[("model_role", "side")]), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_prompt_counts_as_no_call_and_no_failure() {
    let model = Scripted::new([Behaviour::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    world.ask_without_prompt("unlucky");
    world.ask("next", Priority::Lull);

    let (_, unlucky) = world.outcome().await;
    let next = world.next_result().await;

    assert_eq!(unlucky.result, Err(NoAnswer::NoPrompt));
    assert_eq!((unlucky.facts.attempts, unlucky.facts.model_ms, unlucky.is_lost()), (0, 0, false));
    assert_eq!((next.as_str(), model.requests()), ("next: fine", vec!["next".to_owned()]), "no model was asked without a prompt");
    let counted = ["calls", "panics", "no_prompt"].map(|what| world.measured(&format!("tertulia_pool_{what}_total"), &[]));
    assert_eq!(counted, [1.0, 0.0, 1.0]);
    let report = world.report().await;
    assert_eq!((report.troubles, report.lanes[0].breaker), (Vec::new(), BreakerState::Closed));
}

#[tokio::test(start_paused = true)]
async fn each_call_of_a_question_has_a_prompt_of_its_own() {
    let model = Scripted::new([Behaviour::Fails(busy(Some(5))), Behaviour::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |_| {}).await;
    let said = Arc::new(Mutex::new("zebra"));
    let now_said = said.clone();
    let build = move || {
        let prompt = request(*now_said.lock()).base().clone();
        async { Some(prompt) }
    };
    world.ask_request("it", LazyRequest::later(request("").base().clone(), build), Priority::Lull);
    tokio::time::sleep(Duration::from_secs(1)).await;

    *said.lock() = "giraffe";
    let result = world.next_result().await;

    assert_eq!((result.as_str(), model.requests()), ("it: fine", vec!["zebra".to_owned(), "giraffe".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_question_about_something_that_is_gone_is_lost_without_a_call() {
    let model = Scripted::new([Behaviour::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    world.ask_request("gone", LazyRequest::later(request("").base().clone(), async || None), Priority::Lull);
    world.ask("next", Priority::Lull);

    let (_, gone) = world.outcome().await;
    let next = world.next_result().await;

    assert!(gone.is_lost() && gone.facts.model_ms == 0, "{gone:?}");
    assert_eq!((next.as_str(), model.requests()), ("next: fine", vec!["next".to_owned()]));
    assert_eq!(world.report().await.lanes[0].breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_closes_when_other_models_are_connected() {
    let model = Scripted::new([Behaviour::Fails(busy(None)), Behaviour::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |settings| settings.breaker.failures = 1).await;
    world.ask("one", Priority::Lull);
    world.next_result().await;
    let before = world.report().await.lanes[0].breaker;

    world.pool.replace((*world.pool.settings()).clone(), Models::new(model.clone(), model));
    world.ask("next", Priority::Lull);

    assert!(matches!(before, BreakerState::Open(_)), "{before:?}");
    assert_eq!(world.next_result().await, "next: fine");
}

#[tokio::test(start_paused = true)]
async fn a_probe_without_a_prompt_leaves_the_probe_to_the_next_question() {
    let model = Scripted::new([Behaviour::Fails(busy(None)), Behaviour::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |settings| {
        settings.breaker.failures = 1;
        settings.breaker.cool_down_secs = 10.0;
    })
    .await;
    world.ask("one", Priority::Lull);
    world.next_result().await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(world.report().await.lanes[0].breaker, BreakerState::HalfOpen);

    world.ask_without_prompt("unlucky");
    let unlucky = world.next_result().await;
    world.ask("next", Priority::Lull);

    assert_eq!((unlucky.as_str(), world.next_result().await.as_str()), ("unlucky: no_prompt", "next: fine"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_question_is_answered_as_such_and_its_call_dropped() {
    let model = Scripted::new([Behaviour::Hangs]);
    let mut world = World::new(&model, |_| ()).await;
    let call = world.ask("cancel_on_drop", Priority::Lull);

    world.pool.cancel(call);
    world.pool.cancel(call);
    let results = world.next_result().await;

    assert_eq!(results, "cancel_on_drop: cancelled");
    assert_eq!(world.report().await.lanes[0].running, 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_future_cancels_its_question() {
    let model = Scripted::new([Behaviour::Hangs]);
    let world = World::new(&model, |_| ()).await;
    let deadline = world.pool.deadline(ModelRole::Side);

    let outcome =
        tokio::time::timeout(Duration::from_secs(1), world.pool.answer(request("q"), Priority::Lull, deadline, None)).await;

    assert!(outcome.is_err());
    assert_eq!(world.report().await.lanes[0].running, 0);
}

#[tokio::test(start_paused = true)]
async fn a_summary_waits_for_a_permit_before_its_prompt_is_built_and_is_shed_after_the_timeout() {
    let model = Scripted::new([]);
    let world = World::new(&model, |settings| settings.pool.queue_capacity = 128).await;
    let permit = |guild: u32| {
        let guild = GuildId::from(&*format!("guild-{guild}"));
        async {
            let guild = guild;
            world.pool.summary_permit(&guild, &world.metrics.instruments()).await
        }
    };

    let one_guild = [permit(1).await, permit(1).await];
    assert!(permit(1).await.is_none(), "a guild gets a quarter of the eight places");
    let other_guilds = [permit(2).await, permit(2).await, permit(3).await, permit(3).await, permit(4).await, permit(4).await];
    assert!(one_guild.iter().chain(&other_guilds).all(Option::is_some));
    assert!(permit(5).await.is_none());
    world.report().await;
    assert_eq!(world.measured("tertulia_pool_shed_total", &[("pool_priority", "summary")]), 2.0);

    drop(one_guild);
    assert!(permit(5).await.is_some());
    assert!(permit(1).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_sheds_lulls_and_answers_them() {
    let model = Scripted::new([Behaviour::Answers("ok", 1.0)]);
    let mut world = World::new(&model, |settings| {
        settings.side.max_concurrent = 1;
        settings.pool.queue_capacity = 1;
    })
    .await;
    world.ask("running", Priority::Lull);
    world.ask("lull", Priority::Lull);
    world.ask("address", Priority::DirectAddress);
    world.ask("one too many", Priority::DirectAddress);

    let results = [world.next_result().await, world.next_result().await, world.next_result().await, world.next_result().await];

    assert_eq!(results, ["lull: overloaded", "one too many: overloaded", "running: ok", "address: ok"]);
    let shed = |priority| world.measured("tertulia_pool_shed_total", &[("model_role", "side"), ("pool_priority", priority)]);
    assert_eq!((shed("lull"), shed("direct_address")), (1.0, 1.0));
    assert_eq!(world.measured("tertulia_pool_shed_total", &[]), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_killed_pool_answers_all_its_questions() {
    let model = Scripted::new([Behaviour::Hangs]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    world.ask("running", Priority::Lull);
    world.ask("queued", Priority::Lull);
    world.report().await;

    world.actor().kill_and_wait(None).await.expect("killed");
    world.ask("too late", Priority::Lull);
    let results = world.results(3).await;

    assert_eq!(results, ["queued: unreachable", "running: unreachable", "too late: unreachable"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_pool_a_question_is_answered_at_once() {
    let model = Scripted::new([Behaviour::Hangs]);
    let mut world = World::new(&model, |_| ()).await;
    let actor = world.actor.lock().take();

    world.ask("nobody there", Priority::DirectAddress);
    let results = world.next_result().await;

    assert_eq!(results, "nobody there: unreachable");
    actor.expect("it was known").stop(None);
}

#[tokio::test(start_paused = true)]
async fn a_named_model_answers_only_in_its_role() {
    let [side, main, fast] = ["side", "main", "fast"].map(|name| Scripted::new([Behaviour::Answers(name, 0.0)]));
    let models = Models::new(side, main).with(ModelRole::Side, "fast".into(), fast);
    let mut world = World::of(models, |settings| drop(settings.named.insert("fast".into(), named(1)))).await;
    let asked = |role: ModelRole, name: &str| {
        let request = Request { model: name.into(), ..Request::new(role, "home".into(), 50) };
        world.ask_request(name, Arc::new(request.into()), Priority::Lull);
    };
    asked(ModelRole::Side, "side");
    asked(ModelRole::Side, "fast");
    asked(ModelRole::Main, "fast");

    let results = world.results(3).await;

    assert_eq!(results, ["fast: fast", "fast: main", "side: side"]);
    let lanes = world.report().await.lanes;
    let lanes: Vec<_> = lanes.iter().map(|lane| (lane.role, lane.model.as_str())).collect();
    assert_eq!(lanes, [(ModelRole::Side, "fast"), (ModelRole::Side, "side"), (ModelRole::Main, "fast")]);
}

#[tokio::test(start_paused = true)]
async fn gauges_of_waiting_and_running_calls_fall_when_the_pool_dies() {
    let model = Scripted::new([Behaviour::Hangs]);
    let mut world = World::new(&model, |settings| {
        settings.side.max_concurrent = 2;
        settings.side.guild_max_concurrent = Some(2);
    })
    .await;
    for text in ["one", "two", "three", "four", "five"] {
        world.ask(text, Priority::Lull);
    }
    world.report().await;
    let load = |world: &World| {
        ["tertulia_pool_running", "tertulia_pool_waiting"].map(|name| world.measured(name, &[("model_role", "side")]))
    };
    assert_eq!(load(&world), [2.0, 3.0]);

    world.actor().kill();
    world.results(5).await;

    assert_eq!(load(&world), [0.0, 0.0]);
    assert_eq!(world.measured("tertulia_pool_calls_total", &[("model_role", "side")]), 2.0);
    assert_eq!(world.measured("tertulia_actors", &[("actor_sort", "side_models")]), 0.0);
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_are_counted_by_priority_including_summaries_without_a_permit() {
    let model = Scripted::new([Behaviour::Hangs]);
    let mut world = World::new(&model, |settings| {
        settings.side.max_concurrent = 1;
        // One place for summaries.
        settings.pool.queue_capacity = 16;
    })
    .await;
    for priority in [Priority::Lull, Priority::Lull, Priority::Turn, Priority::Summary] {
        world.ask("q", priority);
    }
    let (guild, instruments) = (GuildId::from("home"), world.metrics.instruments());
    let permit = world.pool.summary_permit(&guild, &instruments).await.expect("the permit is free");
    let mut waiting = Box::pin(world.pool.summary_permit(&guild, &instruments));
    assert!(futures_util::FutureExt::now_or_never(&mut waiting).is_none());
    world.report().await;
    let counted = |world: &World| {
        ["summary", "lull", "turn", "direct_address"]
            .map(|priority| world.measured("tertulia_pool_waiting", &[("model_role", "side"), ("pool_priority", priority)]))
    };

    assert_eq!(counted(&world), [2.0, 1.0, 1.0, 0.0], "one of the lulls runs; one of the summaries has no prompt");
    drop(permit);
    assert!(waiting.await.is_some());
    assert_eq!(counted(&world)[0], 1.0);
    assert_eq!(world.measured("tertulia_pool_waiting", &[("model_role", "main")]), 0.0);
    world.actor().kill();
    world.results(4).await;
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_is_counted_until_it_half_opens_although_nobody_asks() {
    let model = Scripted::new([Behaviour::Fails(busy(None))]);
    let mut world = World::new(&model, |settings| {
        settings.breaker.failures = 2;
        settings.breaker.cool_down_secs = 10.0;
        settings.pool.max_attempts = 2;
        settings.pool.backoff_secs = 1.0;
    })
    .await;

    world.ask("one", Priority::Lull);
    world.next_result().await;

    let open = |world: &World| world.measured("tertulia_breakers_open", &[]);
    assert_eq!((open(&world), world.measured("tertulia_breakers_opened_total", &[])), (1.0, 1.0));
    tokio::time::sleep(Duration::from_secs_f64(9.9)).await;
    assert_eq!(open(&world), 1.0);
    tokio::time::sleep(Duration::from_secs_f64(0.2)).await;
    assert_eq!(open(&world), 0.0);
    let side = [("model_role", "side")];
    assert_eq!(world.measured("tertulia_pool_retries_total", &side), 1.0);
    assert_eq!(world.measured("tertulia_pool_calls_total", &side), 2.0);
    assert_eq!(world.measured("tertulia_pool_wait_seconds_count", &side), 1.0);
    assert_eq!(world.measured("tertulia_pool_wait_seconds_sum", &side), 0.5);
}
