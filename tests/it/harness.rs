//! The real program in a folder of its own: started, talked to, watched, signalled, killed.
//!
//! Nothing here waits by the clock: a line, an event, an answer or the end of a process is waited for. [`PATIENCE`] only ends a wait for what
//! will never come.

pub mod hostile;
mod lines;
mod premises;
mod server;
mod watch;

pub use lines::Lines;
pub use premises::{Premises, program};
pub use server::Server;
pub use watch::Watch;

use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

/// After this a wait is given up; nothing that is waited for takes a tenth of it, even on a machine with much else to do.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A number that whoever runs a long trial may choose by a variable of this name.
pub fn chosen(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// What cannot be tried on a developer's machine. Where everything has to be there (`.ci/run`), that is a failure.
pub fn skipped(why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
    eprintln!("SKIPPED: {why}");
}

/// A companion that is asked half a second after the last word.
pub const QUICK: &str = "name = \"Aria\"\ntext_lull_timeout = 0.05\ninterjection = \"average\"\n";

/// A program that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// The one JSON object that it printed.
    pub fn object(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command to its end.
pub async fn ran(mut command: Command) -> Ran {
    let output = timeout(PATIENCE, command.output()).await.expect("the program ends").expect("the program can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
