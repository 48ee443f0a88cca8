//! Captures the log lines of a test's own thread.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Captures everything that is logged until it is dropped.
pub struct Logged {
    lines: Lines,
    _second: tracing::Dispatch,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

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
        String::from_utf8(self.lines.0.lock().expect("no thread panicked").clone()).expect("text")
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
