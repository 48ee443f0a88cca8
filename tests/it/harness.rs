//! Runs the real program in its own folder: starts it, talks to it, watches it, signals it, kills it.
//!
//! Nothing here waits for a length of time: each wait is for a line, an event, an answer or the end of a process. [`PATIENCE`] only ends a wait
//! for something that never comes.

pub mod call;
mod collector;
mod files;
pub mod hostile;
mod lines;
pub mod model;
mod premises;
mod server;
mod watch;

pub use collector::Collector;
pub use files::{UnprivilegedUser, contents, files_with, permit};
pub use lines::Lines;
pub use premises::{Premises, program};
pub use server::Server;
pub use watch::Watch;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

/// The limit of every wait. No wait that succeeds takes a tenth of it, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A parameter of a long trial: the environment variable of this name, or the default.
pub fn parameter(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Skips a test that this machine cannot run. In CI, where everything must be installed (`.ci/run`), that is a failure.
pub fn skipped(why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
    eprintln!("SKIPPED: {why}");
}

/// A companion with a short lull timeout.
pub const QUICK: &str = "name = \"Aria\"\ntext_lull_timeout = 0.05\ninterjection = \"average\"\n";

#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Parses the output, which must be one JSON object.
    pub fn object(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn exits_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// Runs a command until it ends.
pub async fn ran(mut command: Command) -> Ran {
    let output = timeout(PATIENCE, command.output()).await.expect("the program ends").expect("the program can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// An address for a server that begins later. The system gives its port to no other connection: it is below those that it chooses itself.
pub fn later_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Another run of the tests begins elsewhere.
        let port = 10_000 + (std::process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
        let address = format!("127.0.0.1:{port}");
        if std::net::TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

/// Serves these routes on loopback. Returns the URL.
pub async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(axum::serve(listener, router).into_future());
    url
}

/// Starts a server on loopback that gives this answer to every request. Returns its URL.
pub async fn serve_answer(status: StatusCode, body: impl IntoResponse + Clone + Send + Sync + 'static) -> String {
    serve(Router::new().fallback(async move || (status, body))).await
}
