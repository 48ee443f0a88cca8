//! What a supervisor knows about a child: how to start it, after which endings to restart it, and how it ended.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorCell, SpawnErr, SupervisionEvent};

use super::restarts::Excess;
use crate::actors::messages::supervision::Ending;
use crate::domain::text::first_bytes;
use crate::telemetry::instruments::Instruments;

/// A start that takes longer has failed. An actor reads little or nothing from the store before it has started.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// The reason that ractor gives for an actor that was killed between two messages.
const KILLED: &str = "killed";

/// An error's text is cut after this many bytes, because it is shown in logs, spans and lists.
const LONGEST_MESSAGE: usize = 500;

/// Which endings are followed by a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartType {
    /// Failures and kills, but not a normal stop. Example: a channel, which stops to go to sleep.
    Transient,
    /// Failures and kills, unless the child exceeded its own restart limit. Example: a guild; its supervisor decides what to do with one that
    /// keeps failing.
    Bulkhead,
    /// Every ending, including a normal stop. Example: the writer.
    Permanent,
}

/// How to start a child. Used for every restart.
#[derive(Clone)]
pub struct ChildSpec {
    /// Which endings are followed by a restart.
    pub restart_type: RestartType,
    spawn: Arc<dyn Fn(ActorCell) -> SpawnFuture + Send + Sync>,
}

type SpawnFuture = Pin<Box<dyn Future<Output = Result<ActorCell, SpawnErr>> + Send>>;

impl ChildSpec {
    /// A child that `spawn` starts, linked to the supervisor that is passed to it. `spawn` is called once for every start.
    pub fn new<F, Fut>(restart_type: RestartType, spawn: F) -> Self
    where
        F: Fn(ActorCell) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ActorCell, SpawnErr>> + Send + 'static,
    {
        Self { restart_type, spawn: Arc::new(move |supervisor| Box::pin(spawn(supervisor))) }
    }

    /// A child of one type of actor. `make` returns a new actor and its arguments for every start.
    pub fn of<A: Actor>(restart_type: RestartType, make: impl Fn() -> (A, A::Arguments) + Send + Sync + 'static) -> Self {
        Self::new(restart_type, move |supervisor| {
            let (actor, arguments) = make();
            async move { Actor::spawn_linked(None, actor, arguments, supervisor).await.map(|(child, _)| child.get_cell()) }
        })
    }

    /// Starts the child. Every failure, including a panic and a timeout, is returned as an [`Ending`].
    pub(super) async fn start(self, supervisor: ActorCell) -> Result<ActorCell, Ending> {
        let start = AssertUnwindSafe(async move { (self.spawn)(supervisor).await }).catch_unwind();
        match tokio::time::timeout(START_DEADLINE, start).await {
            Ok(Ok(Ok(child))) => Ok(child),
            Ok(Ok(Err(error))) => Err(Ending::NotStarted { message: bounded(&error.to_string()) }),
            Ok(Err(_panic)) => Err(Ending::NotStarted { message: "panicked before its start".to_owned() }),
            Err(_elapsed) => Err(Ending::Hung(START_DEADLINE)),
        }
    }
}

impl Ending {
    /// The actor that ended and how, if the event reports the end of an actor.
    pub fn read(event: SupervisionEvent) -> Option<(ActorCell, Self)> {
        match event {
            SupervisionEvent::ActorFailed(child, error) => {
                let (escalated, dependency_lost) = (error.is::<Escalation>(), error.is::<DependencyLost>());
                // ractor turns a panic into a plain string. Our own errors are never plain strings.
                let is_panic = format!("{error:?}") == format!("{:?}", error.to_string());
                Some((child, Self::Failed { message: bounded(&error.to_string()), is_panic, escalated, dependency_lost }))
            }
            // Without a state, it was interrupted while it was starting or stopping, or its task was cancelled.
            SupervisionEvent::ActorTerminated(child, None, _) => Some((child, Self::Killed)),
            SupervisionEvent::ActorTerminated(child, Some(_), Some(reason)) if reason == KILLED => Some((child, Self::Killed)),
            SupervisionEvent::ActorTerminated(child, Some(_), reason) => {
                Some((child, Self::Stopped { reason: reason.as_deref().map(bounded) }))
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => None,
        }
    }

    /// The ending including a panic's message. Use this only for the journal: a panic's message may quote messages, and the
    /// journal contains those anyway.
    pub fn in_full(&self) -> String {
        match self {
            Self::Failed { message, is_panic: true, .. } => format!("panicked: {message}"),
            ending => ending.to_string(),
        }
    }

    /// Whether it was a supervisor that exceeded its own restart limit.
    pub const fn is_escalation(&self) -> bool {
        matches!(self, Self::Failed { escalated: true, .. })
    }

    /// Whether it failed because it lost a dependency that its supervisor does not supervise.
    pub const fn dependency_lost(&self) -> bool {
        matches!(self, Self::Failed { dependency_lost: true, .. })
    }

    /// Counts hangs, which have their own counter besides that of restarts.
    pub fn measure(&self, sort: &'static str, instruments: &Instruments) {
        if matches!(self, Self::Hung(_)) {
            instruments.actor_hangs.add(1, [sort]);
        }
    }

    /// Whether a child of this restart type is restarted after this ending.
    pub fn calls_for_restart(&self, restart_type: RestartType) -> bool {
        match restart_type {
            RestartType::Transient => !matches!(self, Self::Stopped { .. }),
            RestartType::Bulkhead => !matches!(self, Self::Stopped { .. }) && !self.is_escalation(),
            RestartType::Permanent => true,
        }
    }
}

/// An actor lost a dependency, and has to restart. Returned as an error from its handler. Neither the actor nor its siblings
/// caused it, so it does not count towards any limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DependencyLost(pub String);

/// A supervisor exceeded its restart limit. Returned as an error from its handler, it fails the supervisor, and the supervisor above sees why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({child} {ending})", match .excess { Excess::Child => "a child died too often", Excess::Total => "too many children died" })]
pub struct Escalation {
    /// The child whose death exceeded the limit.
    pub child: String,
    pub excess: Excess,
    pub ending: Ending,
}

fn bounded(text: &str) -> String {
    first_bytes(text, LONGEST_MESSAGE).to_owned()
}
