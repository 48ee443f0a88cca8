//! A supervisor with workers whose behaviour the tests control.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent, call, cast};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::super::child::{ChildSpec, RestartType};
use super::super::super::restarts::{Excess, RestartPolicy};
use super::super::{Children, Report};
use crate::actors::messages::supervision::{Ending, Upkeep};
use crate::samples::Draws;

/// A supervisor with workers, and its parent supervisor, which reports how the supervisor ends.
pub(super) struct World {
    pub(super) supervisor: ActorRef<Request>,
    pub(super) controls: Arc<Controls>,
    pub(super) reports: mpsc::UnboundedReceiver<String>,
    pub(super) endings: mpsc::UnboundedReceiver<Ending>,
    pub(super) began: Instant,
}

/// What the workers do.
#[derive(Default)]
pub(super) struct Controls {
    pub(super) starts: AtomicU32,
    pub(super) refusals: AtomicU32,
    pub(super) panics: AtomicBool,
    pub(super) hangs: AtomicBool,
    pub(super) fail_early: Mutex<BTreeSet<&'static str>>,
    pub(super) begun: tokio::sync::Notify,
    pub(super) stored: Mutex<BTreeMap<&'static str, &'static str>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChildStatus {
    Up,
    Down,
    Gone,
}

impl World {
    pub(super) async fn new() -> Self {
        let (endings_tx, endings) = mpsc::unbounded_channel();
        let (reports_tx, reports) = mpsc::unbounded_channel();
        let (parent, _) = Actor::spawn(None, Parent, endings_tx).await.expect("it starts");
        let (supervisor, _) = Actor::spawn_linked(None, Supervisor, reports_tx, parent.get_cell()).await.expect("it starts");
        Self { supervisor, controls: Arc::default(), reports, endings, began: Instant::now() }
    }

    pub(super) async fn launch(&mut self, name: &'static str, restart_type: RestartType) {
        let controls = self.controls.clone();
        let spec = ChildSpec::of(restart_type, move || (Worker { name, controls: controls.clone() }, ()));
        cast!(self.supervisor, Request::Start(name, spec)).expect("it runs");
    }

    pub(super) async fn start(&mut self, name: &'static str, restart_type: RestartType) {
        self.launch(name, restart_type).await;
        assert_eq!(self.next().await, format!("{name} is up"));
    }

    pub(super) async fn next(&mut self) -> String {
        self.reports.recv().await.expect("the supervisor runs")
    }

    pub(super) async fn child(&self, name: &'static str) -> ActorCell {
        call!(self.supervisor, Request::Find, name).expect("it runs").expect("the child is up")
    }

    pub(super) async fn status(&self, name: &'static str) -> ChildStatus {
        call!(self.supervisor, Request::Status, name).expect("it runs")
    }

    pub(super) async fn dismiss(&self, name: &'static str) -> Option<ActorCell> {
        call!(self.supervisor, Request::Dismiss, name).expect("it runs")
    }

    pub(super) async fn send(&self, name: &'static str, order: Order) {
        self.child(name).await.send_message(order).expect("the child runs");
        tokio::task::yield_now().await;
    }

    pub(super) async fn fail(&self, name: &'static str) {
        self.send(name, Order::Fail).await;
    }

    /// Fails a child, and waits until it is up again.
    pub(super) async fn fail_and_restart(&mut self, name: &'static str) {
        self.fail(name).await;
        for _ in ["it restarts", "it is up"] {
            self.next().await;
        }
    }

    /// Waits until each of these children was restarted once.
    pub(super) async fn all_restarted(&mut self, names: &[&str]) {
        let (mut restarting, mut up) = (BTreeSet::new(), 0);
        while up < names.len() {
            let report = self.next().await;
            if let Some((name, _)) = report.split_once(" restarts after ") {
                restarting.insert(name.to_owned());
            } else if report.strip_suffix(" is up").is_some_and(|name| restarting.remove(name)) {
                up += 1;
            }
        }
    }

    pub(super) async fn recall(&self, name: &'static str) -> &'static str {
        let worker: ActorRef<Order> = self.child(name).await.into();
        call!(worker, Order::Recall).expect("the child runs")
    }

    pub(super) fn elapsed_ms(&self) -> u128 {
        self.began.elapsed().as_millis()
    }
}

pub(super) fn names(kind: &str, count: usize) -> Vec<&'static str> {
    (0..count).map(|number| &*Box::leak(format!("{kind} {number}").into_boxed_str())).collect()
}

pub(super) struct Parent;

impl Actor for Parent {
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

pub(super) struct Supervisor;

pub(super) enum Request {
    Start(&'static str, ChildSpec),
    Find(&'static str, RpcReplyPort<Option<ActorCell>>),
    Status(&'static str, RpcReplyPort<ChildStatus>),
    Dismiss(&'static str, RpcReplyPort<Option<ActorCell>>),
    Upkeep(Upkeep<&'static str>),
}

impl From<Upkeep<&'static str>> for Request {
    fn from(upkeep: Upkeep<&'static str>) -> Self {
        Self::Upkeep(upkeep)
    }
}

pub(super) struct SupervisorState {
    pub(super) children: Children<&'static str, Request>,
    pub(super) reports: mpsc::UnboundedSender<String>,
}

impl SupervisorState {
    pub(super) fn handle_report(&self, report: Option<Report<&'static str>>) -> Result<(), ActorProcessingErr> {
        let text = match report {
            None => return Ok(()),
            Some(Report::Started { child, .. }) => format!("{child} is up"),
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
        let _ = self.reports.send(text);
        Ok(())
    }
}

impl Actor for Supervisor {
    type Msg = Request;
    type State = SupervisorState;
    type Arguments = mpsc::UnboundedSender<String>;

    async fn pre_start(
        &self,
        myself: ActorRef<Request>,
        reports: Self::Arguments,
    ) -> Result<SupervisorState, ActorProcessingErr> {
        let policy = RestartPolicy {
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(60),
            child_limit: 4,
            total_limit: 1_000,
            window: Duration::from_secs(600),
        };
        Ok(SupervisorState { children: Children::new(myself, policy, Arc::new(Draws::default())), reports })
    }

    async fn handle(
        &self,
        _: ActorRef<Request>,
        request: Request,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match request {
            Request::Start(name, spec) => {
                state.children.start(name, spec);
            }
            Request::Find(name, reply) => reply.send(state.children.get(&name).cloned())?,
            Request::Status(name, reply) => reply.send(match state.children.get(&name) {
                Some(_) => ChildStatus::Up,
                None if state.children.names().any(|child| *child == name) => ChildStatus::Down,
                None => ChildStatus::Gone,
            })?,
            Request::Dismiss(name, reply) => reply.send(state.children.dismiss(&name))?,
            Request::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.handle_report(report)?;
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Request>,
        event: SupervisionEvent,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        let report = state.children.observe(event);
        state.handle_report(report)
    }
}

pub(super) struct Worker {
    pub(super) name: &'static str,
    pub(super) controls: Arc<Controls>,
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
        self.controls.starts.fetch_add(1, Ordering::SeqCst);
        self.controls.begun.notify_one();
        if self.controls.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        assert!(!self.controls.panics.swap(false, Ordering::SeqCst), "the test wants this panic");
        if self.controls.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |remaining| remaining.checked_sub(1)).is_ok() {
            return Err("no store".into());
        }
        Ok(self.controls.stored.lock().get(self.name).copied().unwrap_or_default())
    }

    async fn post_start(&self, _: ActorRef<Order>, _: &mut &'static str) -> Result<(), ActorProcessingErr> {
        if self.controls.fail_early.lock().remove(self.name) { Err(std::io::Error::other("too early").into()) } else { Ok(()) }
    }

    async fn handle(&self, _: ActorRef<Order>, order: Order, memory: &mut &'static str) -> Result<(), ActorProcessingErr> {
        match order {
            Order::Fail => return Err(std::io::Error::other("asked to").into()),
            Order::Panic => panic!("at the disco"),
            Order::Hang => std::future::pending().await,
            Order::Remember(text) => {
                *memory = text;
                self.controls.stored.lock().insert(self.name, text);
            }
            Order::Recall(reply) => reply.send(memory)?,
        }
        Ok(())
    }
}
