//! A supervisor with workers whose fate the tests decide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent, call, cast};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::super::child::{ChildSpec, RestartType};
use super::super::super::restarts::{Excess, RestartPolicy};
use super::super::{Children, Report};
use crate::actors::messages::supervision::{Ending, Upkeep};
use crate::ports::rng::Rng;

/// A supervisor with workers, and one above it that listens.
pub(super) struct World {
    pub(super) boss: ActorRef<Ask>,
    pub(super) fate: Arc<Fate>,
    pub(super) reports: mpsc::UnboundedReceiver<String>,
    pub(super) above: mpsc::UnboundedReceiver<Ending>,
    pub(super) began: Instant,
}

/// What befalls the workers.
#[derive(Default)]
pub(super) struct Fate {
    pub(super) starts: AtomicU32,
    pub(super) refusals: AtomicU32,
    pub(super) panics: AtomicBool,
    pub(super) hangs: AtomicBool,
    pub(super) fail_early: Mutex<BTreeSet<&'static str>>,
    pub(super) begun: tokio::sync::Notify,
    pub(super) stored: Mutex<BTreeMap<&'static str, &'static str>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    Up,
    Down,
    Gone,
}

impl World {
    pub(super) async fn new() -> Self {
        let (above_tx, above) = mpsc::unbounded_channel();
        let (reports_tx, reports) = mpsc::unbounded_channel();
        let (chief, _) = Actor::spawn(None, Chief, above_tx).await.expect("it starts");
        let (boss, _) = Actor::spawn_linked(None, Boss, reports_tx, chief.get_cell()).await.expect("it starts");
        Self { boss, fate: Arc::default(), reports, above, began: Instant::now() }
    }

    pub(super) async fn launch(&mut self, name: &'static str, lasting: RestartType) {
        let fate = self.fate.clone();
        let spec = ChildSpec::of(lasting, move || (Worker { name, fate: fate.clone() }, ()));
        cast!(self.boss, Ask::Start(name, spec)).expect("it lives");
    }

    pub(super) async fn start(&mut self, name: &'static str, lasting: RestartType) {
        self.launch(name, lasting).await;
        assert_eq!(self.next().await, format!("{name} is up, started 0 times before"));
    }

    pub(super) async fn next(&mut self) -> String {
        self.reports.recv().await.expect("the supervisor lives")
    }

    pub(super) async fn child(&self, name: &'static str) -> ActorCell {
        call!(self.boss, Ask::Find, name).expect("it lives").expect("the child is up")
    }

    pub(super) async fn known(&self, name: &'static str) -> Known {
        call!(self.boss, Ask::Known, name).expect("it lives")
    }

    pub(super) async fn dismiss(&self, name: &'static str) -> Option<ActorCell> {
        call!(self.boss, Ask::Dismiss, name).expect("it lives")
    }

    pub(super) async fn tell(&self, name: &'static str, order: Order) {
        self.child(name).await.send_message(order).expect("the child lives");
        tokio::task::yield_now().await;
    }

    pub(super) async fn fail(&self, name: &'static str) {
        self.tell(name, Order::Fail).await;
    }

    pub(super) async fn recall(&self, name: &'static str) -> &'static str {
        let worker: ActorRef<Order> = self.child(name).await.into();
        call!(worker, Order::Recall).expect("the child lives")
    }

    pub(super) fn elapsed_ms(&self) -> u128 {
        self.began.elapsed().as_millis()
    }
}

pub(super) fn names(kind: &str, count: usize) -> Vec<&'static str> {
    (0..count).map(|number| &*Box::leak(format!("{kind} {number}").into_boxed_str())).collect()
}

pub(super) struct Chief;

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

pub(super) struct Boss;

pub(super) enum Ask {
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

pub(super) struct BossState {
    pub(super) children: Children<&'static str, Ask>,
    pub(super) reports: mpsc::UnboundedSender<String>,
}

impl BossState {
    pub(super) fn carry_on(&self, report: Option<Report<&'static str>>) -> Result<(), ActorProcessingErr> {
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

pub(super) struct Worker {
    pub(super) name: &'static str,
    pub(super) fate: Arc<Fate>,
}

pub(super) enum Order {
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
        if self.fate.fail_early.lock().expect("not poisoned").remove(self.name) {
            Err(std::io::Error::other("too early").into())
        } else {
            Ok(())
        }
    }

    async fn handle(&self, _: ActorRef<Order>, order: Order, known: &mut &'static str) -> Result<(), ActorProcessingErr> {
        match order {
            Order::Fail => return Err(std::io::Error::other("asked to").into()),
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

pub(super) struct Half;

impl Rng for Half {
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
