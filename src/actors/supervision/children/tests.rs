use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ractor::{Actor, ActorProcessingErr, call, cast};
use ractor::{ActorStatus, RpcReplyPort};
use tokio::sync::mpsc;

use super::super::child::Lasting;
use super::super::restarts::Excess;
use super::*;

mod bulkhead;

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_is_started_again_at_once() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;

    world.fail("a").await;

    assert_eq!(world.next().await, "a restarts after 0 ms (failed: asked to)");
    assert_eq!(world.next().await, "a is up, started 1 times before");
    assert_eq!(world.elapsed_ms(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_panics_is_started_again() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;

    world.tell("a", Order::Panic).await;

    assert_eq!(world.next().await, "a restarts after 0 ms (failed: at the disco)");
    assert_eq!(world.next().await, "a is up, started 1 times before");
}

#[tokio::test(start_paused = true)]
async fn a_killed_child_is_restored_by_its_pre_start() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;
    world.tell("a", Order::Remember("what was said")).await;

    world.child("a").await.kill();

    assert_eq!(world.next().await, "a restarts after 0 ms (killed)");
    assert_eq!(world.next().await, "a is up, started 1 times before");
    assert_eq!(world.recall("a").await, "what was said");
}

#[tokio::test(start_paused = true)]
async fn a_child_killed_while_its_handler_waits_is_replaced() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;
    world.tell("a", Order::Hang).await;

    world.child("a").await.kill();

    assert_eq!(world.next().await, "a restarts after 0 ms (killed)");
    assert_eq!(world.next().await, "a is up, started 1 times before");
}

#[tokio::test(start_paused = true)]
async fn a_transient_child_that_stops_stays_away() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;

    world.child("a").await.stop(Some("asleep".to_owned()));

    assert_eq!(world.next().await, "a ended (stopped: asleep)");
    assert_eq!(world.known("a").await, Known::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_child_that_stops_comes_back() {
    let mut world = World::new().await;
    world.start("a", Lasting::Permanent).await;

    world.child("a").await.stop(None);

    assert_eq!(world.next().await, "a restarts after 0 ms (stopped)");
    assert_eq!(world.next().await, "a is up, started 1 times before");
}

#[tokio::test(start_paused = true)]
async fn a_temporary_child_that_fails_stays_away() {
    let mut world = World::new().await;
    world.start("a", Lasting::Temporary).await;

    world.fail("a").await;

    assert_eq!(world.next().await, "a ended (failed: asked to)");
    assert_eq!(world.known("a").await, Known::Gone);
}

#[tokio::test(start_paused = true)]
async fn restarts_in_a_row_come_after_the_delays_promised() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;
    let mut waited = Vec::new();

    for _ in 0..4 {
        let died = world.elapsed_ms();
        world.fail("a").await;
        world.next().await;
        world.next().await;
        waited.push(world.elapsed_ms() - died);
    }

    // The delays are 0, 1,000, 2,000 and 4,000 ms; the fraction of 0.5 adds a quarter.
    for (waited, promised) in waited.into_iter().zip([0, 1_250, 2_500, 5_000]) {
        assert!((promised..=promised + 1).contains(&waited), "{waited} ms instead of {promised} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_come_up_again_is_tried_until_it_does() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;
    world.fate.refusals.store(2, Ordering::SeqCst);

    world.fail("a").await;

    assert_eq!(world.next().await, "a restarts after 0 ms (failed: asked to)");
    assert_eq!(world.next().await, "a restarts after 1250 ms (did not start: Actor panicked during startup 'no store')");
    assert_eq!(world.next().await, "a restarts after 2500 ms (did not start: Actor panicked during startup 'no store')");
    assert_eq!(world.next().await, "a is up, started 1 times before");
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_pre_start_panics_is_tried_again() {
    let mut world = World::new().await;
    world.fate.panics.store(true, Ordering::SeqCst);

    world.launch("a", Lasting::Transient).await;

    assert!(world.next().await.starts_with("a restarts after 0 ms (did not start: "));
    assert_eq!(world.next().await, "a is up, started 0 times before");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_is_given_up_at_its_deadline() {
    let mut world = World::new().await;
    world.fate.hangs.store(true, Ordering::SeqCst);

    world.launch("a", Lasting::Temporary).await;

    assert_eq!(world.next().await, "a ended (did not start: did not start within 30 s)");
}

#[tokio::test(start_paused = true)]
async fn healthy_siblings_are_untouched_by_a_crash_loop() {
    let mut world = World::new().await;
    let siblings = names("sibling", 300);
    for sibling in &siblings {
        world.start(sibling, Lasting::Transient).await;
    }
    world.start("a", Lasting::Transient).await;
    let mut before = Vec::new();
    for sibling in &siblings {
        before.push(world.child(sibling).await.get_id());
    }

    for _ in 0..4 {
        world.fail("a").await;
        world.next().await;
        world.next().await;
    }

    for (sibling, id) in siblings.iter().zip(before) {
        let actor = world.child(sibling).await;
        assert_eq!((actor.get_id(), actor.get_status()), (id, ActorStatus::Running));
    }
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_children_that_die_together_all_come_back() {
    let mut world = World::new().await;
    let names = names("child", 400);
    for name in &names {
        world.start(name, Lasting::Transient).await;
    }

    for name in &names {
        world.child(name).await.kill();
    }

    let mut up = BTreeSet::new();
    while up.len() < names.len() {
        if let Some(name) = world.next().await.strip_suffix(" is up, started 1 times before") {
            up.insert(name.to_owned());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_death_that_is_too_many_fails_the_supervisor_and_says_why() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;
    world.start("b", Lasting::Transient).await;
    let sibling = world.child("b").await;

    for _ in 0..4 {
        world.fail("a").await;
        world.next().await;
        world.next().await;
    }
    world.fail("a").await;

    assert_eq!(world.next().await, "escalated: a child died too often (\"a\" failed: asked to)");
    let ending = world.above.recv().await.expect("the supervisor above listens");
    assert!(matches!(ending, Ending::Failed { escalated: true, .. }), "{ending:?}");
    assert!(sibling.wait(None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_waits_dies_with_its_supervisor() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;
    world.fail("a").await;
    world.next().await;
    world.next().await;
    world.fail("a").await;
    assert_eq!(world.next().await, "a restarts after 1250 ms (failed: asked to)");
    let starts = world.fate.starts.load(Ordering::SeqCst);

    world.boss.stop_and_wait(None, None).await.expect("it stops");
    tokio::time::sleep(Duration::from_secs(3600)).await;

    assert_eq!(world.fate.starts.load(Ordering::SeqCst), starts);
}

#[tokio::test(start_paused = true)]
async fn a_start_under_way_dies_with_its_supervisor() {
    let mut world = World::new().await;
    world.fate.hangs.store(true, Ordering::SeqCst);
    world.launch("a", Lasting::Permanent).await;
    world.fate.begun.notified().await;

    world.boss.kill_and_wait(None).await.expect("it ends");
    tokio::time::sleep(Duration::from_secs(3600)).await;

    assert_eq!(world.fate.starts.load(Ordering::SeqCst), 1);
    assert_eq!(world.reports.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_dismissed_child_is_not_started_again() {
    let mut world = World::new().await;
    world.start("a", Lasting::Permanent).await;

    let actor = world.dismiss("a").await.expect("it is up");
    actor.kill();

    assert_eq!(world.next().await, "a ended (killed)");
    assert_eq!(world.known("a").await, Known::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_waits_can_be_cancelled() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;
    world.fail("a").await;
    world.next().await;
    world.next().await;
    world.fail("a").await;
    world.next().await;
    assert_eq!(world.known("a").await, Known::Down);
    let starts = world.fate.starts.load(Ordering::SeqCst);

    assert!(world.dismiss("a").await.is_none());
    tokio::time::sleep(Duration::from_secs(3600)).await;

    assert_eq!((world.fate.starts.load(Ordering::SeqCst), world.known("a").await), (starts, Known::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_closed_supervisor_starts_nothing_and_restarts_nothing() {
    let mut world = World::new().await;
    world.start("a", Lasting::Permanent).await;
    let actor = world.child("a").await;

    cast!(world.boss, Ask::Close).expect("it lives");
    actor.kill();
    world.launch("b", Lasting::Permanent).await;

    assert_eq!(world.next().await, "a ended (killed)");
    assert_eq!(world.known("b").await, Known::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_right_after_its_start_is_noticed() {
    let mut world = World::new().await;
    world.fate.fail_early.lock().expect("not poisoned").insert("a");

    world.launch("a", Lasting::Transient).await;

    let mut seen = BTreeSet::new();
    while !seen.iter().any(|report: &String| report.ends_with("started 1 times before")) {
        seen.insert(world.next().await);
    }
    assert!(seen.contains("a restarts after 0 ms (failed: too early)"), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_death_is_overlooked_when_it_overtakes_the_news_of_the_start() {
    let mut world = World::new().await;
    let names = names("child", 200);
    world.fate.fail_early.lock().expect("not poisoned").extend(&names);

    for name in &names {
        world.launch(name, Lasting::Transient).await;
    }

    let mut up = BTreeSet::new();
    while up.len() < names.len() {
        if let Some(name) = world.next().await.strip_suffix(" is up, started 1 times before") {
            up.insert(name.to_owned());
        }
    }
    for name in &names {
        assert_eq!(world.recall(name).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_child_of_the_same_name_is_refused() {
    let mut world = World::new().await;
    world.start("a", Lasting::Transient).await;
    let first = world.child("a").await.get_id();

    world.launch("a", Lasting::Transient).await;

    assert_eq!(world.child("a").await.get_id(), first);
    assert_eq!(world.fate.starts.load(Ordering::SeqCst), 1);
}

/// A supervisor with workers, and one above it that listens.
struct World {
    boss: ActorRef<Ask>,
    fate: Arc<Fate>,
    reports: mpsc::UnboundedReceiver<String>,
    above: mpsc::UnboundedReceiver<Ending>,
    began: Instant,
}

/// What befalls the workers.
#[derive(Default)]
struct Fate {
    starts: AtomicU32,
    refusals: AtomicU32,
    panics: AtomicBool,
    hangs: AtomicBool,
    fail_early: Mutex<BTreeSet<&'static str>>,
    begun: tokio::sync::Notify,
    stored: Mutex<BTreeMap<&'static str, &'static str>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Known {
    Up,
    Down,
    Gone,
}

impl World {
    async fn new() -> Self {
        let (above_tx, above) = mpsc::unbounded_channel();
        let (reports_tx, reports) = mpsc::unbounded_channel();
        let (chief, _) = Actor::spawn(None, Chief, above_tx).await.expect("it starts");
        let (boss, _) = Actor::spawn_linked(None, Boss, reports_tx, chief.get_cell()).await.expect("it starts");
        Self { boss, fate: Arc::default(), reports, above, began: Instant::now() }
    }

    async fn launch(&mut self, name: &'static str, lasting: Lasting) {
        let fate = self.fate.clone();
        let spec = ChildSpec::of(lasting, move || (Worker { name, fate: fate.clone() }, ()));
        cast!(self.boss, Ask::Start(name, spec)).expect("it lives");
    }

    async fn start(&mut self, name: &'static str, lasting: Lasting) {
        self.launch(name, lasting).await;
        assert_eq!(self.next().await, format!("{name} is up, started 0 times before"));
    }

    async fn next(&mut self) -> String {
        self.reports.recv().await.expect("the supervisor lives")
    }

    async fn child(&self, name: &'static str) -> ActorCell {
        call!(self.boss, Ask::Find, name).expect("it lives").expect("the child is up")
    }

    async fn known(&self, name: &'static str) -> Known {
        call!(self.boss, Ask::Known, name).expect("it lives")
    }

    async fn dismiss(&self, name: &'static str) -> Option<ActorCell> {
        call!(self.boss, Ask::Dismiss, name).expect("it lives")
    }

    async fn tell(&self, name: &'static str, order: Order) {
        self.child(name).await.send_message(order).expect("the child lives");
        tokio::task::yield_now().await;
    }

    async fn fail(&self, name: &'static str) {
        self.tell(name, Order::Fail).await;
    }

    async fn recall(&self, name: &'static str) -> &'static str {
        let worker: ActorRef<Order> = self.child(name).await.into();
        call!(worker, Order::Recall).expect("the child lives")
    }

    fn elapsed_ms(&self) -> u128 {
        self.began.elapsed().as_millis()
    }
}

fn names(kind: &str, count: usize) -> Vec<&'static str> {
    (0..count).map(|number| &*Box::leak(format!("{kind} {number}").into_boxed_str())).collect()
}

struct Chief;

impl Actor for Chief {
    type Msg = ();
    type State = mpsc::UnboundedSender<Ending>;
    type Arguments = Self::State;

    async fn pre_start(&self, _: ActorRef<()>, endings: Self::Arguments) -> Result<Self::State, ActorProcessingErr> {
        Ok(endings)
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        event: SupervisionEvent,
        endings: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some((_, ending)) = Ending::read(event) {
            let _ = endings.send(ending);
        }
        Ok(())
    }
}

struct Boss;

enum Ask {
    Start(&'static str, ChildSpec),
    Find(&'static str, RpcReplyPort<Option<ActorCell>>),
    Known(&'static str, RpcReplyPort<Known>),
    Dismiss(&'static str, RpcReplyPort<Option<ActorCell>>),
    Close,
    Upkeep(Upkeep<&'static str>),
}

impl From<Upkeep<&'static str>> for Ask {
    fn from(upkeep: Upkeep<&'static str>) -> Self {
        Self::Upkeep(upkeep)
    }
}

struct BossState {
    children: Children<&'static str, Ask>,
    reports: mpsc::UnboundedSender<String>,
}

impl BossState {
    fn carry_on(&self, report: Option<Report<&'static str>>) -> Result<(), ActorProcessingErr> {
        let told = match report {
            None => return Ok(()),
            Some(Report::Started { child, restarts, .. }) => format!("{child} is up, started {restarts} times before"),
            Some(Report::Restarting { child, ending, after }) => {
                format!("{child} restarts after {} ms ({ending})", after.as_millis())
            }
            Some(Report::Ended { child, ending }) => format!("{child} ended ({ending})"),
            Some(Report::Escalate { escalation, .. }) => {
                assert_eq!(escalation.excess, Excess::Child);
                let _ = self.reports.send(format!("escalated: {escalation}"));
                return Err(escalation.into());
            }
        };
        let _ = self.reports.send(told);
        Ok(())
    }
}

impl Actor for Boss {
    type Msg = Ask;
    type State = BossState;
    type Arguments = mpsc::UnboundedSender<String>;

    async fn pre_start(&self, myself: ActorRef<Ask>, reports: Self::Arguments) -> Result<BossState, ActorProcessingErr> {
        let policy = RestartPolicy {
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(60),
            child_limit: 4,
            total_limit: 1_000,
            window: Duration::from_secs(600),
        };
        Ok(BossState { children: Children::new(myself, policy, Arc::new(Half)), reports })
    }

    async fn handle(&self, _: ActorRef<Ask>, ask: Ask, state: &mut BossState) -> Result<(), ActorProcessingErr> {
        match ask {
            Ask::Start(name, spec) => {
                state.children.start(name, spec);
            }
            Ask::Find(name, reply) => reply.send(state.children.get(&name).cloned())?,
            Ask::Known(name, reply) => reply.send(match state.children.get(&name) {
                Some(_) => Known::Up,
                None if state.children.contains(&name) => Known::Down,
                None => Known::Gone,
            })?,
            Ask::Dismiss(name, reply) => reply.send(state.children.dismiss(&name))?,
            Ask::Close => state.children.close(),
            Ask::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.carry_on(report)?;
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Ask>,
        event: SupervisionEvent,
        state: &mut BossState,
    ) -> Result<(), ActorProcessingErr> {
        let report = state.children.observe(event);
        state.carry_on(report)
    }
}

struct Worker {
    name: &'static str,
    fate: Arc<Fate>,
}

enum Order {
    Fail,
    Panic,
    Hang,
    Remember(&'static str),
    Recall(RpcReplyPort<&'static str>),
}

impl Actor for Worker {
    type Msg = Order;
    type State = &'static str;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Order>, (): ()) -> Result<&'static str, ActorProcessingErr> {
        self.fate.starts.fetch_add(1, Ordering::SeqCst);
        self.fate.begun.notify_one();
        if self.fate.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        assert!(!self.fate.panics.swap(false, Ordering::SeqCst), "startled");
        if self.fate.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err("no store".into());
        }
        Ok(self.fate.stored.lock().expect("not poisoned").get(self.name).copied().unwrap_or_default())
    }

    async fn post_start(&self, _: ActorRef<Order>, _: &mut &'static str) -> Result<(), ActorProcessingErr> {
        if self.fate.fail_early.lock().expect("not poisoned").remove(self.name) { Err("too early".into()) } else { Ok(()) }
    }

    async fn handle(&self, _: ActorRef<Order>, order: Order, known: &mut &'static str) -> Result<(), ActorProcessingErr> {
        match order {
            Order::Fail => return Err("asked to".into()),
            Order::Panic => panic!("at the disco"),
            Order::Hang => std::future::pending().await,
            Order::Remember(what) => {
                *known = what;
                self.fate.stored.lock().expect("not poisoned").insert(self.name, what);
            }
            Order::Recall(reply) => reply.send(known)?,
        }
        Ok(())
    }
}

struct Half;

impl Chance for Half {
    fn jitter(&self) -> i8 {
        0
    }

    fn fraction(&self) -> f64 {
        0.5
    }

    fn id(&self) -> u128 {
        0
    }
}
