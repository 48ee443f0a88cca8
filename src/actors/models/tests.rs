use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::*;
use crate::actors::messages::models::BreakerState;
use crate::domain::id::GuildId;
use crate::domain::priority::Priority;
use crate::ports::language_model::{Answer, Identity, LanguageModel, LazyRequest, Message, ModelRole, Request};
use crate::settings::models::tests::{defaults, named};
use crate::telemetry::metrics::Metrics;

/// What the model of these tests does with one call.
#[derive(Clone)]
enum Does {
    Answers(&'static str, f64),
    Drafts(&'static str, NoAnswer),
    Fails(NoAnswer),
    Hangs,
    Panics,
}

/// A model that does what it is told, call by call; the last instruction repeats.
struct Scripted {
    identity: Identity,
    script: Mutex<Vec<Does>>,
    heard: Mutex<Vec<String>>,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
}

struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scripted {
    fn new(script: impl Into<Vec<Does>>) -> Arc<Self> {
        let mut script = script.into();
        script.reverse();
        Arc::new(Self {
            identity: Identity { provider: "scripted".into(), model: "m".into(), endpoint: "http://scripted".into() },
            script: Mutex::new(script),
            heard: Mutex::default(),
            under_way: AtomicUsize::new(0),
            most_under_way: AtomicUsize::new(0),
        })
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic while held").clone()
    }

    fn next(&self, request: &Request) -> Does {
        self.heard.lock().expect("no panic while held").push(request.user().into_owned());
        let mut script = self.script.lock().expect("no panic while held");
        if script.len() > 1 { script.pop().expect("more than one") } else { script[0].clone() }
    }
}

#[async_trait]
impl LanguageModel for Scripted {
    async fn ask(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_under_way.fetch_max(under_way, Ordering::SeqCst);
        let _under_way = UnderWay(&self.under_way);
        match self.next(request) {
            Does::Answers(text, secs) => {
                tokio::time::sleep(Duration::from_secs_f64(secs)).await;
                Ok(answer(text))
            }
            Does::Drafts(text, no_answer) => {
                drop(drafts.map(|drafts| drafts.send(Draft::More(text.to_owned()))));
                Err(no_answer)
            }
            Does::Fails(no_answer) => Err(no_answer),
            Does::Hangs => std::future::pending().await,
            Does::Panics => panic!("as told"),
        }
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

struct NoRng;

impl Rng for NoRng {
    fn jitter(&self) -> i8 {
        0
    }

    fn fraction(&self) -> f64 {
        0.0
    }

    fn id(&self) -> u128 {
        0
    }
}

fn answer(text: &str) -> Answer {
    let usage = Usage { input_tokens: 7, output_tokens: 3 };
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

/// A question's text, and what came of it.
type Told = (String, Outcome);

/// A pool of its own, and what it asks. When dropped, every question asked must have been answered exactly once.
struct World {
    pool: Pool,
    actor: Arc<Mutex<Option<ActorRef<PoolMessage>>>>,
    asked: Mutex<Vec<Weak<()>>>,
    replies: mpsc::UnboundedSender<Told>,
    outcomes: mpsc::UnboundedReceiver<Told>,
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
        let pool = SideModels { settings: settings.clone(), rng: Arc::new(NoRng), instruments: metrics.instruments() };
        let (actor, _) = Actor::spawn(None, pool, ()).await.expect("starts");
        let actor = Arc::new(Mutex::new(Some(actor)));
        let found = actor.clone();
        let pool = Pool::new(&settings, models, move || found.lock().expect("no panic while held").clone());
        let (replies, outcomes) = mpsc::unbounded_channel();
        Self { pool, actor, asked: Mutex::default(), replies, outcomes, metrics }
    }

    fn ask(&self, text: &str, priority: Priority) -> CallId {
        self.ask_worded(text, request(text), priority)
    }

    fn ask_worded(&self, text: &str, request: Arc<LazyRequest>, priority: Priority) -> CallId {
        let (sender, name, owed) = (self.replies.clone(), text.to_owned(), Arc::new(()));
        self.asked.lock().expect("no panic while held").push(Arc::downgrade(&owed));
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

    async fn outcome(&mut self) -> Told {
        self.outcomes.recv().await.expect("this world holds a sender")
    }

    /// The next outcome as `question: text` or `question: code`.
    async fn told(&mut self) -> String {
        let (name, outcome) = self.outcome().await;
        format!("{name}: {}", outcome.result.as_ref().map_or_else(|no_answer| no_answer.code().into(), |answer| answer.text()))
    }

    async fn report(&self) -> PoolReport {
        self.pool.report().await.expect("the pool is there")
    }

    fn measured(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.metrics.total(name, labels)
    }

    fn actor(&self) -> ActorRef<PoolMessage> {
        self.actor.lock().expect("no panic while held").clone().expect("known")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let unanswered = self.asked.lock().map_or(0, |asked| asked.iter().filter(|owed| owed.strong_count() > 0).count());
        if !std::thread::panicking() {
            assert_eq!(unanswered, 0, "every question asked was answered");
            assert!(self.outcomes.try_recv().is_err(), "every answer was looked at");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_with_what_it_took() {
    let model = Scripted::new([Does::Answers("YES", 2.0)]);
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
async fn the_urgent_overtake_those_who_wait() {
    let model = Scripted::new([Does::Answers("ok", 1.0)]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    world.ask("running", Priority::Lull);

    for priority in Priority::ALL {
        world.ask(priority.as_str(), priority);
    }
    for _ in 0..7 {
        world.outcome().await;
    }

    assert_eq!(model.heard(), ["running", "direct_address", "voice", "turn", "interjection", "lull", "summary"]);
}

#[tokio::test(start_paused = true)]
async fn never_more_calls_than_allowed_are_under_way() {
    let model = Scripted::new([Does::Answers("ok", 1.0)]);
    let mut world = World::new(&model, |settings| {
        settings.side.max_concurrent = 3;
        settings.side.guild_max_concurrent = Some(3);
    })
    .await;

    for number in 0..10 {
        world.ask(&number.to_string(), Priority::Turn);
    }
    for _ in 0..10 {
        world.outcome().await;
    }

    assert_eq!(model.most_under_way.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_is_dropped_at_the_deadline_together_with_those_behind_it() {
    let model = Scripted::new([Does::Hangs]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    let begun = Instant::now();
    world.ask("running", Priority::Lull);
    world.ask("queued", Priority::Lull);

    let mut told = [world.told().await, world.told().await];

    told.sort();
    assert_eq!(told, ["queued: timeout", "running: timeout"]);
    assert_eq!(begun.elapsed().as_secs(), 15);
    world.report().await;
    assert_eq!(model.under_way.load(Ordering::SeqCst), 0, "the call was dropped");
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_endpoint_is_asked_again_when_it_said() {
    let model = Scripted::new([Does::Fails(busy(Some(6))), Does::Answers("YES", 0.0)]);
    let mut world = World::new(&model, |_| ()).await;
    let begun = Instant::now();

    world.ask("patient", Priority::DirectAddress);
    let (_, outcome) = world.outcome().await;

    assert_eq!(outcome.result, Ok(answer("YES")));
    assert_eq!((outcome.facts.attempts, begun.elapsed().as_secs()), (2, 6));
}

#[tokio::test(start_paused = true)]
async fn pieces_of_a_broken_try_are_declared_void() {
    let model = Scripted::new([Does::Drafts("half a", busy(None)), Does::Answers("whole", 0.0)]);
    let world = World::new(&model, |_| ()).await;
    let (sender, mut drafts) = mpsc::unbounded_channel();

    let outcome = world.pool.answer(request("q"), Priority::Turn, world.pool.deadline(ModelRole::Side), Some(sender)).await;

    assert_eq!(outcome.result, Ok(answer("whole")));
    assert_eq!(drafts.recv().await, Some(Draft::More("half a".to_owned())));
    assert_eq!(drafts.recv().await, Some(Draft::Restart));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_call_answers_its_question_and_harms_no_other() {
    let model = Scripted::new([Does::Panics, Does::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    world.ask("unlucky", Priority::Lull);
    world.ask("next", Priority::Lull);

    let (_, unlucky) = world.outcome().await;
    let next = world.told().await;

    assert!(unlucky.result.is_err_and(|error| error.to_string().contains("the worker failed")));
    assert_eq!(next, "next: fine");
    assert_eq!(world.measured("tertulia_pool_panics_total", &[("model_role", "side")]), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_cannot_be_worded_is_no_call_and_blames_no_model() {
    let model = Scripted::new([Does::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    let without_words = Request::clone(&request("unlucky"));
    world.ask_worded(
        "unlucky",
        LazyRequest::later(without_words, |_| std::panic::resume_unwind(Box::new("as told"))),
        Priority::Lull,
    );
    world.ask("next", Priority::Lull);

    let (_, unlucky) = world.outcome().await;
    let next = world.told().await;

    assert_eq!(unlucky.result, Err(NoAnswer::NoPrompt));
    assert_eq!((unlucky.facts.attempts, unlucky.facts.model_ms, unlucky.is_lost()), (0, 0, false));
    assert_eq!((next.as_str(), model.heard()), ("next: fine", vec!["next".to_owned()]), "nobody was asked without words");
    let counted = ["calls", "panics", "unworded"].map(|what| world.measured(&format!("tertulia_pool_{what}_total"), &[]));
    assert_eq!(counted, [1.0, 0.0, 1.0]);
    let report = world.report().await;
    assert_eq!((report.troubles, report.lanes[0].breaker), (Vec::new(), BreakerState::Closed));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_tried_again_with_a_question_that_cannot_be_worded_is_tried_with_the_next() {
    let model = Scripted::new([Does::Fails(busy(None)), Does::Answers("fine", 0.0)]);
    let mut world = World::new(&model, |settings| {
        settings.breaker.failures = 1;
        settings.breaker.cool_down_secs = 10.0;
    })
    .await;
    world.ask("one", Priority::Lull);
    world.told().await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(world.report().await.lanes[0].breaker, BreakerState::HalfOpen);

    let without_words = Request::clone(&request("unlucky"));
    world.ask_worded(
        "unlucky",
        LazyRequest::later(without_words, |_| std::panic::resume_unwind(Box::new("as told"))),
        Priority::Lull,
    );
    let unlucky = world.told().await;
    world.ask("next", Priority::Lull);

    assert_eq!((unlucky.as_str(), world.told().await.as_str()), ("unlucky: unworded", "next: fine"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_question_is_answered_as_such_and_its_call_dropped() {
    let model = Scripted::new([Does::Hangs]);
    let mut world = World::new(&model, |_| ()).await;
    let call = world.ask("unwanted", Priority::Lull);

    world.pool.cancel(call);
    world.pool.cancel(call);
    let told = world.told().await;

    assert_eq!(told, "unwanted: cancelled");
    assert_eq!(world.report().await.lanes[0].running, 0);
}

#[tokio::test(start_paused = true)]
async fn who_stops_waiting_cancels() {
    let model = Scripted::new([Does::Hangs]);
    let world = World::new(&model, |_| ()).await;
    let deadline = world.pool.deadline(ModelRole::Side);

    let waited =
        tokio::time::timeout(Duration::from_secs(1), world.pool.answer(request("q"), Priority::Lull, deadline, None)).await;

    assert!(waited.is_err());
    assert_eq!(world.report().await.lanes[0].running, 0);
}

#[tokio::test(start_paused = true)]
async fn a_summary_waits_for_one_of_a_few_places_before_it_is_worded_and_is_shed_in_the_end() {
    let model = Scripted::new([]);
    let world = World::new(&model, |settings| settings.pool.queue_capacity = 128).await;
    let turn = |guild: u32| {
        let guild = GuildId::from(&*format!("guild-{guild}"));
        async {
            let guild = guild;
            world.pool.turn_to_summarise(&guild, &world.metrics.instruments()).await
        }
    };

    let of_one = [turn(1).await, turn(1).await];
    assert!(turn(1).await.is_none(), "a guild has a quarter of the eight");
    let of_others = [turn(2).await, turn(2).await, turn(3).await, turn(3).await, turn(4).await, turn(4).await];
    assert!(of_one.iter().chain(&of_others).all(Option::is_some));
    assert!(turn(5).await.is_none());
    world.report().await;
    assert_eq!(world.measured("tertulia_pool_shed_total", &[("pool_priority", "summary")]), 2.0);

    drop(of_one);
    assert!(turn(5).await.is_some());
    assert!(turn(1).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_sheds_lulls_and_answers_them() {
    let model = Scripted::new([Does::Answers("ok", 1.0)]);
    let mut world = World::new(&model, |settings| {
        settings.side.max_concurrent = 1;
        settings.pool.queue_capacity = 1;
    })
    .await;
    world.ask("running", Priority::Lull);
    world.ask("lull", Priority::Lull);
    world.ask("address", Priority::DirectAddress);
    world.ask("one too many", Priority::DirectAddress);

    let told = [world.told().await, world.told().await, world.told().await, world.told().await];

    assert_eq!(told, ["lull: overloaded", "one too many: overloaded", "running: ok", "address: ok"]);
    let shed = |priority| world.measured("tertulia_pool_shed_total", &[("model_role", "side"), ("pool_priority", priority)]);
    assert_eq!((shed("lull"), shed("direct_address")), (1.0, 1.0));
    assert_eq!(world.measured("tertulia_pool_shed_total", &[]), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_killed_answers_all_it_held() {
    let model = Scripted::new([Does::Hangs]);
    let mut world = World::new(&model, |settings| settings.side.max_concurrent = 1).await;
    world.ask("running", Priority::Lull);
    world.ask("queued", Priority::Lull);
    world.report().await;

    world.actor().kill_and_wait(None).await.expect("killed");
    world.ask("too late", Priority::Lull);
    let mut told = [world.told().await, world.told().await, world.told().await];

    told.sort();
    assert_eq!(told, ["queued: unreachable", "running: unreachable", "too late: unreachable"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_pool_a_question_is_answered_at_once() {
    let model = Scripted::new([Does::Hangs]);
    let mut world = World::new(&model, |_| ()).await;
    let actor = world.actor.lock().expect("no panic while held").take();

    world.ask("nobody there", Priority::DirectAddress);
    let told = world.told().await;

    assert_eq!(told, "nobody there: unreachable");
    actor.expect("it was known").stop(None);
}

#[tokio::test(start_paused = true)]
async fn a_question_for_a_named_model_is_answered_by_it_in_that_role_alone() {
    let [side, main, fast] = ["side", "main", "fast"].map(|name| Scripted::new([Does::Answers(name, 0.0)]));
    let models = Models::new(side, main).with(ModelRole::Side, "fast".into(), fast);
    let mut world = World::of(models, |settings| drop(settings.named.insert("fast".into(), named(1)))).await;
    let asked = |role: ModelRole, name: &str| {
        let request = Request { model: name.into(), ..Request::new(role, "home".into(), 50) };
        world.ask_worded(name, Arc::new(request.into()), Priority::Lull);
    };
    asked(ModelRole::Side, "side");
    asked(ModelRole::Side, "fast");
    asked(ModelRole::Main, "fast");

    let mut told = [world.told().await, world.told().await, world.told().await];

    told.sort();
    assert_eq!(told, ["fast: fast", "fast: main", "side: side"]);
    let lanes = world.report().await.lanes;
    let lanes: Vec<_> = lanes.iter().map(|lane| (lane.role, lane.model.as_str())).collect();
    assert_eq!(lanes, [(ModelRole::Side, "fast"), (ModelRole::Side, "side"), (ModelRole::Main, "fast")]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_and_runs_is_measured_and_goes_with_the_pool() {
    let model = Scripted::new([Does::Hangs]);
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
    for _ in 0..5 {
        world.told().await;
    }

    assert_eq!(load(&world), [0.0, 0.0]);
    assert_eq!(world.measured("tertulia_pool_calls_total", &[("model_role", "side")]), 2.0);
    assert_eq!(world.measured("tertulia_actors", &[("actor_sort", "side_models")]), 0.0);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_measured_by_priority_with_summaries_that_wait_to_be_worded() {
    let model = Scripted::new([Does::Hangs]);
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
    let turn = world.pool.turn_to_summarise(&guild, &instruments).await.expect("nobody else has it");
    let mut waiting = Box::pin(world.pool.turn_to_summarise(&guild, &instruments));
    assert!(futures_util::FutureExt::now_or_never(&mut waiting).is_none());
    world.report().await;
    let counted = |world: &World| {
        ["summary", "lull", "turn", "direct_address"]
            .map(|priority| world.measured("tertulia_pool_waiting", &[("model_role", "side"), ("pool_priority", priority)]))
    };

    assert_eq!(counted(&world), [2.0, 1.0, 1.0, 0.0], "one of the lulls runs; one of the summaries has no words yet");
    drop(turn);
    assert!(waiting.await.is_some());
    assert_eq!(counted(&world)[0], 1.0);
    assert_eq!(world.measured("tertulia_pool_waiting", &[("model_role", "main")]), 0.0);
    world.actor().kill();
    for _ in 0..4 {
        world.told().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_left_alone_is_measured_until_its_time_is_over_although_nobody_asks() {
    let model = Scripted::new([Does::Fails(busy(None))]);
    let mut world = World::new(&model, |settings| {
        settings.breaker.failures = 2;
        settings.breaker.cool_down_secs = 10.0;
        settings.pool.max_attempts = 2;
        settings.pool.backoff_secs = 1.0;
    })
    .await;

    world.ask("one", Priority::Lull);
    world.told().await;

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

#[tokio::test(start_paused = true)]
async fn a_question_whose_time_is_over_is_measured() {
    let model = Scripted::new([Does::Hangs]);
    let mut world = World::new(&model, |_| ()).await;

    world.ask("one", Priority::Lull);
    world.told().await;

    assert_eq!(world.measured("tertulia_pool_timeouts_total", &[("model_role", "side")]), 1.0);
    assert_eq!(world.measured("tertulia_pool_running", &[]), 0.0);
}
