//! Captures the log lines of a test's own thread.

use tertulia::telemetry::memory::Lines;
use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// Captures everything that is logged until it is dropped.
pub struct Logged {
    lines: Lines,
    _second: tracing::Dispatch,
    _guard: DefaultGuard,
}

impl Logged {
    pub fn begin() -> Self {
        let lines = Lines::default();
        let subscriber =
            tracing_subscriber::fmt().with_max_level(Level::TRACE).with_ansi(false).with_writer(lines.clone()).finish();
        // tracing caches for each call site whether any subscriber wants its events. With a single subscriber, another test's thread that
        // logs there first would make it cache that none does, for the rest of the process.
        let second = tracing::Dispatch::new(tracing_subscriber::registry());
        Self { lines, _second: second, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub fn read(&self) -> String {
        self.lines.text()
    }
}
