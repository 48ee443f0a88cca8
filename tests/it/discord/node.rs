//! Clients of other makes: programs of Node that read commands and write events, each as a line of JSON.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::harness::PATIENCE;

/// A running program. It ends when this is dropped.
pub struct Node {
    _child: Child,
    input: ChildStdin,
    events: watch::Receiver<Vec<Value>>,
}

impl Node {
    /// Starts a program of `tests/`. A script in `.ci` installs its packages, and names their folder in the variable.
    ///
    /// # Panics
    ///
    /// The variable is not set, or Node cannot be started.
    pub fn start(program: &str, variable: &str, set: &[(&str, &str)]) -> Self {
        assert!(std::env::var_os(variable).is_some(), "{variable} is not set: run the script in .ci that sets it");
        let mut command = Command::new("node");
        command.arg(format!("{}/tests/{program}", env!("CARGO_MANIFEST_DIR"))).envs(set.iter().copied()).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Node can be started");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (sender, events) = watch::channel(Vec::new());
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                sender.send_modify(|events| events.push(event));
            }
        });
        Self { _child: child, input, events }
    }

    pub async fn command(&mut self, command: &Value) {
        self.input.write_all(format!("{command}\n").as_bytes()).await.expect("the client runs");
    }

    /// The number of events so far.
    pub fn count(&self) -> usize {
        self.events.borrow().len()
    }

    /// Waits until the closure finds something in the events after the first `since`.
    ///
    /// # Panics
    ///
    /// Nothing is found in time. The message names what was awaited, and lists the events.
    pub async fn until<T>(&mut self, what: &str, since: usize, find: impl Fn(&[Value]) -> Option<T>) -> T {
        let mut found = None;
        let searching = self.events.wait_for(|events| {
            found = events.get(since..).and_then(&find);
            found.is_some()
        });
        let is_found = matches!(timeout(PATIENCE, searching).await, Ok(Ok(_)));
        let newest: Vec<String> = self.events.borrow().iter().rev().take(20).map(Value::to_string).collect();
        assert!(is_found, "waited in vain for {what}; the newest events, the last one first:\n{}", newest.join("\n"));
        found.expect("that ended the wait")
    }
}
