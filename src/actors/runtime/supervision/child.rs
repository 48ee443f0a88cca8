//! What a supervisor knows of a child: how to start it, whether it lasts, and how it ended.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorCell, SpawnErr, SupervisionEvent};

use super::restarts::Excess;
use crate::actors::messages::supervision::Ending;
use crate::telemetry::instruments::Instruments;

/// A start that takes longer has failed: no restore waits that long for the store.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// What ractor says of an actor that was killed between two messages.
const KILLED: &str = "killed";

/// An error's text is kept up to so many bytes: it ends in logs, spans and lists.
const LONGEST_MESSAGE: usize = 500;

/// Which endings are followed by a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartType {
    /// None: a reply that ended is over.
    Temporary,
    /// Failures and kills: a channel that went to sleep stays asleep.
    Transient,
    /// Failures and kills, unless it passed a limit of its own: a guild that keeps failing is for its supervisor to rule on.
    Bulkhead,
    /// Every ending, also a normal stop: the writer has to be there.
    Permanent,
}

/// How to start a child, again and again.
#[derive(Clone)]
pub struct ChildSpec {
    /// Which endings are followed by a restart.
    pub restart_type: RestartType,
    spawn: Arc<dyn Fn(ActorCell) -> Spawning + Send + Sync>,
}

/// A start in the making.
type Spawning = Pin<Box<dyn Future<Output = Result<ActorCell, SpawnErr>> + Send>>;

impl ChildSpec {
    /// A child that `spawn` starts, linked to the supervisor that it is given. Called once for every start.
    pub fn new<F, Fut>(restart_type: RestartType, spawn: F) -> Self
    where
        F: Fn(ActorCell) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ActorCell, SpawnErr>> + Send + 'static,
    {
        Self { restart_type, spawn: Arc::new(move |supervisor| Box::pin(spawn(supervisor))) }
    }

    /// A child of one kind of actor; `make` gives the actor and its arguments afresh for every start.
    pub fn of<A: Actor>(restart_type: RestartType, make: impl Fn() -> (A, A::Arguments) + Send + Sync + 'static) -> Self {
        Self::new(restart_type, move |supervisor| {
            let (actor, arguments) = make();
            async move { Actor::spawn_linked(None, actor, arguments, supervisor).await.map(|(child, _)| child.get_cell()) }
        })
    }

    /// Starts it. Whatever goes wrong, panics and waiting without end included, comes back as how it ended.
    pub(super) async fn start(self, supervisor: ActorCell) -> Result<ActorCell, Ending> {
        let start = AssertUnwindSafe(async move { (self.spawn)(supervisor).await }).catch_unwind();
        match tokio::time::timeout(START_DEADLINE, start).await {
            Ok(Ok(Ok(child))) => Ok(child),
            Ok(Ok(Err(error))) => Err(Ending::NotStarted { message: bounded(error.to_string()) }),
            Ok(Err(_panic)) => Err(Ending::NotStarted { message: "panicked before its start".to_owned() }),
            Err(_elapsed) => Err(Ending::Hung(START_DEADLINE)),
        }
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec").field("restart_type", &self.restart_type).finish_non_exhaustive()
    }
}

impl Ending {
    /// How an actor ended, and which, if the event is about an ending.
    pub fn read(event: SupervisionEvent) -> Option<(ActorCell, Self)> {
        match event {
            SupervisionEvent::ActorFailed(child, error) => {
                let (escalated, dependency_lost) = (error.is::<Escalation>(), error.is::<DependencyLost>());
                // ractor makes a text of a panic; our own errors are none.
                let is_panic = format!("{error:?}") == format!("{:?}", error.to_string());
                Some((child, Self::Failed { message: bounded(error.to_string()), is_panic, escalated, dependency_lost }))
            }
            // Without a state it was interrupted while starting or stopping, or its task was cancelled.
            SupervisionEvent::ActorTerminated(child, None, _) => Some((child, Self::Killed)),
            SupervisionEvent::ActorTerminated(child, Some(_), Some(reason)) if reason == KILLED => Some((child, Self::Killed)),
            SupervisionEvent::ActorTerminated(child, Some(_), reason) => {
                Some((child, Self::Stopped { reason: reason.map(bounded) }))
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => None,
        }
    }

    /// How it ended, with the words of a panic: for the record, which is no more open than what was said.
    pub fn in_full(&self) -> String {
        match self {
            Self::Failed { message, is_panic: true, .. } => format!("panicked: {message}"),
            other => other.to_string(),
        }
    }

    /// Whether it was a supervisor that passed a limit of its own.
    pub const fn is_escalation(&self) -> bool {
        matches!(self, Self::Failed { escalated: true, .. })
    }

    /// Whether it failed over something that is not under its supervisor.
    pub const fn dependency_lost(&self) -> bool {
        matches!(self, Self::Failed { dependency_lost: true, .. })
    }

    /// Counts it, if it is one that is counted apart from restarts.
    pub fn measure(&self, sort: &'static str, instruments: &Instruments) {
        if matches!(self, Self::Hung(_)) {
            instruments.actor_hangs.add(1, [sort]);
        }
    }

    /// Whether a child that lasts so long is to be started again after it.
    pub fn calls_for_restart(&self, restart_type: RestartType) -> bool {
        match restart_type {
            RestartType::Temporary => false,
            RestartType::Transient => !matches!(self, Self::Stopped { .. }),
            RestartType::Bulkhead => !matches!(self, Self::Stopped { .. }) && !self.is_escalation(),
            RestartType::Permanent => true,
        }
    }
}

/// What an actor relies on was lost, and it begins anew. Returned from its handler: that is no fault of its own, nor of those beside it, and
/// counts towards no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DependencyLost(pub String);

/// A supervisor passed a limit. Returned from its handler it fails the supervisor, and the one above sees why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({child} {ending})", match .excess { Excess::Child => "a child died too often", Excess::Total => "too many children died" })]
pub struct Escalation {
    /// Whose death was one too many.
    pub child: String,
    pub excess: Excess,
    pub ending: Ending,
}

fn bounded(mut text: String) -> String {
    let mut end = text.len().min(LONGEST_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
