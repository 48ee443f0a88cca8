//! What a supervising actor tells itself, and how a child ended.

use std::time::Duration;

use ractor::ActorCell;

/// What a supervising actor sends to itself through its mailbox, for its [`Children`](crate::actors::runtime::supervision::children::Children).
#[derive(Debug)]
pub enum Upkeep<K> {
    /// The delay of a restart is over.
    Due {
        /// Whose.
        child: K,
        /// Which of its starts; an older one is stale.
        attempt: u64,
    },
    /// A start is over.
    Spawned {
        /// Whose.
        child: K,
        /// Which of its starts.
        attempt: u64,
        /// The child, or why there is none.
        outcome: Result<ActorCell, Ending>,
    },
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// It stopped, or handled all it had and stopped.
    #[error("stopped{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Stopped {
        /// The reason given, if any.
        reason: Option<String>,
    },
    /// It was killed, or its task was cancelled.
    #[error("killed")]
    Killed,
    /// A handler returned an error or panicked.
    #[error("{}", if *.is_panic { "panicked".to_owned() } else { format!("failed: {message}") })]
    Failed {
        /// The error or the panic's message: that of a panic may quote what was said.
        message: String,
        /// It panicked.
        is_panic: bool,
        /// It is itself a supervisor that passed a limit of its own.
        escalated: bool,
        /// It was [taken along](crate::actors::runtime::supervision::child::TakenAlong).
        taken_along: bool,
    },
    /// It did not come up: its `pre_start` failed, panicked or took too long.
    #[error("did not start: {message}")]
    NotStarted {
        /// What happened.
        message: String,
    },
    /// It did not come up within this time.
    #[error("did not start within {} s", .0.as_secs())]
    Hung(Duration),
}
