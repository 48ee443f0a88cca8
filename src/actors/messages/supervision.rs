//! Messages that a supervisor sends to itself, and how a child ended.

use std::time::Duration;

use ractor::ActorCell;

/// Messages that a supervisor sends to itself through its mailbox, for its
/// [`Children`](crate::actors::runtime::supervision::children::Children).
#[derive(Debug)]
pub enum Upkeep<K> {
    /// The delay of a restart is over.
    Due {
        child: K,
        /// The number of the start. A message about an older start is stale.
        attempt: u64,
    },
    /// A start succeeded or failed.
    Spawned {
        child: K,
        attempt: u64,
        /// The child, or why it did not start.
        outcome: Result<ActorCell, Ending>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// It stopped at once, or after draining its mailbox.
    #[error("stopped{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Stopped { reason: Option<String> },
    /// It was killed, or its task was cancelled.
    #[error("killed")]
    Killed,
    /// A handler returned an error or panicked.
    #[error("{}", if *.is_panic { "panicked".to_owned() } else { format!("failed: {message}") })]
    Failed {
        /// The error or the panic's message. A panic's message may quote users.
        message: String,
        is_panic: bool,
        /// Whether it is a supervisor that exceeded its own restart limit.
        escalated: bool,
        /// Whether it [lost a dependency](crate::actors::runtime::supervision::child::DependencyLost).
        dependency_lost: bool,
    },
    /// Its `pre_start` failed or panicked.
    #[error("did not start: {message}")]
    NotStarted { message: String },
    /// It did not start within this time.
    #[error("did not start within {} s", .0.as_secs())]
    Hung(Duration),
}
